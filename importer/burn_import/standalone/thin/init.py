"""First values of parameters: none, they come from the record."""

from __future__ import annotations

from typing import Any

from burn.dtypes import DType, float32
from burn_import.standalone.thin.box import Buffer, Deferred, Parameter


def constant(shape: tuple[int, ...], value: float, dtype: DType = float32) -> Deferred:
    """The type of a value from the record."""
    return Deferred(tuple(shape), dtype)


def normal(
    shape: tuple[int, ...],
    std: float = 1.0,
    dtype: DType = float32,
    zero_row: int | None = None,
) -> Deferred:
    """The type of a value from the record."""
    return Deferred(tuple(shape), dtype)


def kaiming_uniform(
    shape: tuple[int, ...], fan_in: int, dtype: DType = float32
) -> Deferred:
    """The type of a value from the record."""
    return Deferred(tuple(shape), dtype)


def _drawn(shape: tuple[int, ...], dtype: DType, draw: Any) -> Deferred:
    """The type of a value from the record."""
    return Deferred(tuple(shape), dtype)


def parameter(*shape: int, dtype: DType = float32) -> Parameter:
    """A parameter outside of any layer."""
    return Parameter(Deferred(shape, dtype))


def buffer(*shape: int, dtype: DType = float32, persistent: bool = True) -> Buffer:
    """A buffer whose contents come from the record."""
    return Buffer(Deferred(shape, dtype))
