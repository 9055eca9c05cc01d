"""The only mutable thing: a box that holds a tensor."""

from typing import TYPE_CHECKING, Any

from burn.methods import Methods

if TYPE_CHECKING:
    from burn.backend.base import Backend
    from burn.dtypes import DType
    from burn.tensor import Tensor


class Box(Methods):
    """A named place for a tensor: a parameter, a buffer, a statistic, a random state.

    Primitives read it as the tensor it holds. ``version`` counts the times it was set,
    so that whoever derived something from it knows when to do so again.
    """

    __slots__ = ("_value", "version")
    trainable = False

    def __init__(self, value: "Tensor") -> None:
        self.version = 0
        self._value = self._hold(value)

    def _hold(self, value: "Tensor") -> "Tensor":
        return value

    @property
    def value(self) -> "Tensor":
        """The tensor held now."""
        return self._value

    def set(self, value: "Tensor") -> None:
        """Hold ``value`` from now on, on the backend of before, without its tape.

        Raises:
            ValueError: the shape or dtype differs from what is held.
        """
        held = self._value
        if value.shape != held.shape or value.dtype != held.dtype:
            raise ValueError(
                f"expected {held.dtype}{list(held.shape)}, "
                f"got {value.dtype}{list(value.shape)}"
            )
        self._value = self._hold(value.detach().to(held.backend))
        self.version += 1

    def to(self, backend: "Backend") -> None:
        """Move what is held to ``backend``."""
        self._value = self._hold(self._value.detach().to(backend))
        self.version += 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> "DType":
        return self._value.dtype

    @property
    def backend(self) -> "Backend":
        return self._value.backend

    def numpy(self) -> Any:
        """The contents as a NumPy array."""
        return self._value.numpy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)})"


class Parameter(Box):
    """A box that training changes: on ``Autodiff`` its value is a leaf of the tape."""

    __slots__ = ()
    trainable = True

    def _hold(self, value: "Tensor") -> "Tensor":
        return value.leaf(self) if value.backend.tracks_gradients else value


class Buffer(Box):
    """A box that is part of the record but not trained."""

    __slots__ = ()
