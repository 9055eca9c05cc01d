"""Sequences: Python lists of tensors, and optional values.

These are functions on lists, composed of primitives for the tensors, so gradients flow
through the items.
"""

from __future__ import annotations

from typing import Any

from burn import dtypes
from burn.dtypes import DType
from burn.methods import SPELLINGS, Spelling
from burn.ops.creation import array, full
from burn.ops.padding import pad, stack
from burn.ops.shape import split as split_sizes
from burn.ops.support import Array
from burn.primitive import composite
from burn.tensor import Tensor


@composite
def sequence(items: list[Any]) -> list[Any]:
    """Return a list of ``items``."""
    return list(items)


@composite
def sequence_at(sequence: Any, position: Any) -> Any:
    """Return the item at ``position``, an integer or a one-element tensor.

    Negative positions count from the end.

    Raises:
        IndexError: the position is out of range.
    """
    return sequence[position]


@composite
def sequence_joined(sequence: list[Any], other: list[Any]) -> list[Any]:
    """Return a list of the items of both."""
    return sequence + other


SPELLINGS["sequence"] = Spelling("argument", "")
SPELLINGS["sequence_at"] = Spelling("index", "[]", 20)
SPELLINGS["sequence_joined"] = Spelling("infix", "+", 12)


@composite
def sequence_insert(sequence: Any, item: Any, position: Any) -> list[Any]:
    """Return a list with ``item`` inserted before the one at ``position``.

    Raises:
        IndexError: ``position`` is outside [-n, n] for n items.
    """
    index, size = int(position), len(sequence)
    if not -size <= index <= size:
        raise IndexError(f"expected a position in [{-size}, {size}], got {index}")
    index += size if index < 0 else 0
    return [*sequence[:index], item, *sequence[index:]]


@composite
def sequence_erase(sequence: Any, position: Any = -1) -> list[Any]:
    """Return a list without the item at ``position``.

    Raises:
        IndexError: the position is out of range.
    """
    left = list(sequence)
    del left[int(position)]
    return left


@composite
def sequence_length(sequence: Any) -> Tensor:
    """Return the number of items, an int64 tensor of rank 0."""
    return array(len(sequence))


@composite
def sequence_reversed(sequence: list[Any]) -> list[Any]:
    """Return the items in reverse order."""
    return sequence[::-1]


@composite
def stack_rows(
    rows: Any, shape: Any, *, axis: int = 0, dtype: DType = dtypes.float32
) -> Tensor:
    """Return ``rows`` stacked along a new axis; without rows, an empty tensor.

    ``shape`` and ``dtype`` are those of a row, with 0 for extents that only rows
    define.
    """
    if rows:
        return stack(rows, axis)
    new_axis = axis % (len(shape) + 1)
    return full((*shape[:new_axis], 0, *shape[new_axis:]), 0, dtype=dtype)


@composite
def fill_rows(rows: Array, length: Any) -> Tensor:
    """Return ``rows`` followed by zero rows up to ``length``."""
    return pad(rows, [0, int(length) - rows.shape[0]], axes=[0])


@composite
def split_to_sequence(
    x: Array, sizes: Any = 1, axis: int = 0, *, keepdims: bool = True
) -> list[Tensor]:
    """Return a list of pieces of ``x`` along ``axis``, of ``sizes`` or one size each.

    The last of equal pieces may be smaller. Without ``keepdims`` pieces of size 1 lose
    the axis.
    """
    extent = x.shape[axis]
    several = isinstance(sizes, list | tuple) or getattr(sizes, "ndim", 0) == 1
    if several:
        lengths = [int(size) for size in sizes]
    else:
        size = int(sizes)
        lengths = [min(size, extent - at) for at in range(0, extent, size)]
    if not lengths:
        return []
    pieces = split_sizes(x, lengths, axis)
    return list(pieces) if keepdims else [piece.squeeze(axis) for piece in pieces]


@composite
def absent() -> Any:
    """Return None, an absent optional value."""
    return None


@composite
def element(value: Any) -> Any:
    """Return ``value``, which must not be None.

    Raises:
        ValueError: ``value`` is None.
    """
    if value is None:
        raise ValueError("expected a value, got None")
    return value


@composite
def has_element(value: Any) -> Tensor:
    """Return whether ``value`` is not None, a bool tensor of rank 0."""
    return array(value is not None, dtype=dtypes.bool_)
