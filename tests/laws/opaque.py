"""Tensors whose contents may not be read before they are computed."""

from typing import Any

import numpy as np

from burn import Tensor
from burn.backend.base import Backend, map_structure
from burn.backend.cpu import Cpu
from burn.primitive import RECORDER
from burn_ir import Undecided
from tests.laws.models import mapped


class Hidden:
    """A tensor that shows its type only if it is an operand."""

    def __init__(self, tensor: Tensor, shows_type: bool) -> None:
        self.tensor = tensor
        self.shows_type = shows_type
        self.known = None

    def _shown(self) -> Tensor:
        if not self.shows_type:
            raise Undecided("a lower may not know the type of an intermediate")
        return self.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shown().shape

    @property
    def dtype(self) -> Any:
        return self._shown().dtype


class Opaque(Backend):
    """Runs on ``Cpu()``, but keeps what it computes to itself."""

    level = 2
    keeps_composites = True

    def call(self, primitive: Any, args: Any, static: Any) -> Any:
        inner = [map_structure(_tensor, arg) for arg in args]
        token = RECORDER.set(None)
        try:
            return map_structure(_hide, primitive(*inner, **static))
        finally:
            RECORDER.reset(token)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        raise Undecided("nothing can be stored here")

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        raise Undecided("the contents are known only when the model runs")

    @property
    def inner(self) -> Backend:
        return Cpu()


OPAQUE = Opaque()


def hide(value: Any) -> Any:
    """A tensor (or list) as an operand that shows its type and nothing else."""
    return mapped(lambda tensor: Tensor(Hidden(tensor, True), OPAQUE), value)


def reveal(value: Any) -> Any:
    """Return the computed value."""
    return mapped(_tensor, value)


def _tensor(value: Any) -> Any:
    if isinstance(value, Tensor) and isinstance(value.data, Hidden):
        return value.data.tensor
    return value


def _hide(value: Any) -> Any:
    return Tensor(Hidden(value, False), OPAQUE) if isinstance(value, Tensor) else value
