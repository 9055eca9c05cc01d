"""Parameters and buffers of standalone modules."""

from __future__ import annotations

from typing import Any, NamedTuple

from burn.dtypes import DType, name_of
from burn_import.standalone.thin.tensor import Tensor


class Deferred(NamedTuple):
    """The type of a value that the record has."""

    shape: tuple[int, ...]
    dtype: DType


class Box(Tensor):
    """A tensor of a module, whose elements come from the record."""

    #: Whether it is part of the record (a random state is not).
    recorded = True

    def __init__(self, value: Tensor | Deferred) -> None:
        self.held_value = value

    @property
    def value(self) -> Tensor:
        """The tensor held now.

        Raises:
            RuntimeError: the weights are not loaded.
        """
        if isinstance(self.held_value, Deferred):
            kind = f"{name_of(self.dtype)}{list(self.shape)}"
            raise RuntimeError(
                f"a {kind} is read before the weights are loaded: use load()"
            )
        return self.held_value

    def held(self) -> Tensor:
        """The tensor held now."""
        return self.value

    @property
    def data(self) -> Any:
        """The array."""
        return self.value.data

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.held_value.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.held_value.dtype

    def set(self, value: Tensor) -> None:
        """Hold ``value`` from now on.

        Raises:
            ValueError: the shape or dtype differs from that of the present value.
        """
        if value.shape != self.shape or value.dtype != self.dtype:
            raise ValueError(
                f"expected {self.dtype}{list(self.shape)}, "
                f"got {value.dtype}{list(value.shape)}"
            )
        self.held_value = Tensor(value.data)


class Parameter(Box):
    """A trained tensor of a module."""


class Buffer(Box):
    """A tensor of a module that is not trained."""

    def __init__(self, value: Tensor | Deferred, persistent: bool = True) -> None:
        super().__init__(value)


def note_replacement() -> None:
    """Do nothing: without plans, a module that was replaced is called at once."""
