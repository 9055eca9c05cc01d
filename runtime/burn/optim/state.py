"""Training state in boxes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.box import Box
from burn.dtypes import DType, float64
from burn.tensor import Tensor, from_numpy

#: New values by box.
Values = dict[Box, Tensor]


class Stateful(ABC):
    """State that is saved and restored under string keys."""

    @abstractmethod
    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state from that of ``state_dict``, completely or not at all.

        Raises:
            ValueError: a key is missing or unknown, or a shape or dtype differs.
        """
        assign(self.fitted_state(state))


def innermost_device(backend: Backend) -> Backend:
    while backend.inner is not backend:
        backend = backend.inner
    return backend


def device_of(box: Box) -> Backend:
    """Return the device of the value of ``box``, under its tapes."""
    return innermost_device(box.held().backend)


def filled(
    shape: tuple[int, ...], value: float, dtype: DType, backend: Backend
) -> Tensor:
    return from_numpy(np.full(shape, value, dtype), backend)


def scalar(value: float, backend: Backend) -> Tensor:
    return filled((), value, float64, backend)


def scalar_box(value: float, backend: Backend) -> Box:
    """Return a box with a float64 scalar."""
    return Box(scalar(value, backend))


def fitted(
    boxes: Mapping[str, Box],
    state: Mapping[str, Any],
    owner: str,
    optional: Collection[str] = (),
) -> Values:
    """Return values for ``boxes`` from tensors or arrays by key, without setting them.

    Raises:
        ValueError: a key is unknown, or missing and not ``optional``, or a shape or
            dtype differs.
    """
    needed = boxes.keys() - set(optional)
    wrong = sorted(state.keys() - boxes.keys()) + sorted(needed - state.keys())
    if wrong:
        raise ValueError(f"expected the state of {owner}; differing: {wrong}")
    values = {}
    for key, value in state.items():
        box, array = boxes[key], np.array(value)  # a copy: boxes are updated in place
        if array.shape != box.shape or array.dtype != box.dtype:
            raise ValueError(
                f"{key}: expected {box.dtype}{list(box.shape)}, "
                f"got {array.dtype}{list(array.shape)}"
            )
        values[box] = from_numpy(array)
    return values


def assign(values: Values) -> None:
    """Set the boxes to their values, which were checked before."""
    for box, value in values.items():
        box.set(value)
