"""The backend interface: dispatch of primitive calls by level."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from burn.primitive import Primitive


def _without_kernels() -> None:
    """Register no kernels, for devices without their own."""


class Backend(ABC):
    """A dispatch target for primitive calls.

    ``level`` orders backends: host constants 0, devices 1, ``Autodiff`` one more than
    its inner backend. A call is dispatched to the backend of the argument with the
    highest level.
    """

    level: float = 1
    #: Whether it takes calls of composites as well, when it is the recorder.
    keeps_composites = False
    #: Whether calls return before their results exist: reading a value waits for them.
    is_asynchronous = False

    #: Registers the kernels of these devices; the package of a device sets its own.
    load_kernels: Callable[[], None] = staticmethod(_without_kernels)

    @abstractmethod
    def call(
        self,
        primitive: "Primitive[..., Any]",
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        """Run ``primitive`` on ``args`` and return its tensor, or tuple of tensors."""

    @abstractmethod
    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """Return this backend's data for a host array."""

    @abstractmethod
    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        """Return the host array for this backend's data."""

    def __copy__(self) -> "Backend":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backend":
        return self  # a device is not copied with its tensors

    @property
    def inner(self) -> "Backend":
        """The backend that runs the kernels: itself unless it is stacked on another."""
        return self

    def stands_for(self, other: "Backend") -> bool:
        """Return whether tensors here are on the same device as those of ``other``."""
        return other is self

    @property
    def tracks_gradients(self) -> bool:
        """Return whether parameters on this backend are trained."""
        return False

    def leaf(self, key: Any) -> Any:
        """Return a node of the tape whose gradient is stored under ``key``.

        Raises:
            TypeError: this backend does not track gradients.
        """
        raise TypeError(f"expected an Autodiff backend, got {self}")

    def backward(self, tensor: Any, gradient: Any) -> Any:
        """Return the gradients of ``tensor``, as ``Tensor.backward`` does.

        Raises:
            TypeError: this backend does not track gradients.
        """
        raise TypeError(
            f"expected a tensor on an Autodiff backend, got one on {self}, which "
            "depends on no parameter of a model in training; load the model with "
            "backend=Autodiff(Cpu()), and call it without nn.inference() and detach()"
        )


#: The types of arguments that :func:`map_structure` looks into.
STRUCTURES = (list, tuple, slice)


def map_structure(function: Callable[[Any], Any], value: Any) -> Any:
    """Return ``value`` with ``function`` applied to the leaves of lists and tuples."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map_structure(function, item) for item in value)
    if kind is slice:
        return slice(
            map_structure(function, value.start),
            map_structure(function, value.stop),
            map_structure(function, value.step),
        )
    return function(value)
