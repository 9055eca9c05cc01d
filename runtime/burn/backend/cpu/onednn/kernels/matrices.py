"""Matrices in memory: how oneDNN reads them, and when a copy is cheaper."""

from math import prod

from burn.backend.cpu.onednn.binding.api import Api
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    matrix_strides,
    row_major,
    strided,
)

#: The most multiplications of a tiny product, the number of such products that is worth
#: a copy, and the most elements that are copied.
_TINY, _MANY, _COPIED = 16_384, 4, 32_768


def operand(api: Api, array: Array, is_copied: bool) -> Handle:
    """Return the descriptor of matrices, or of a row-major copy of them."""
    steps = row_major(array.shape) if is_copied else _strides(array)
    return strided(api, array.shape, steps, array.dtype)


def _strides(array: Array) -> tuple[int, ...]:
    """Return the strides in elements of matrices for oneDNN."""
    size = array.dtype.itemsize
    return matrix_strides(array.shape, tuple(step // size for step in array.strides))


def is_readable(array: Array) -> bool:
    """Return whether oneDNN can read ``array`` as matrices by its strides."""
    if any(
        step <= 0 and extent > 1
        for step, extent in zip(array.strides, array.shape, strict=True)
    ):
        return False
    steps, extents = _strides(array)[-2:], array.shape[-2:]
    return any(steps[i] == 1 and steps[1 - i] >= extents[i] for i in (0, 1))


def are_tiny(x: Array, y: Array) -> bool:
    """Return whether copies of matrices are cheaper than strided reads."""
    each = x.shape[-2] * x.shape[-1] * y.shape[-1]
    many = min(prod(x.shape[:-2]), prod(y.shape[:-2])) >= _MANY
    return many and each <= _TINY and bool(max(x.size, y.size) <= _COPIED)


def has_few_gapped_rows(x: Array) -> bool:
    """Return whether ``x`` is rows with gaps in little memory, as one token of each
    sequence. The code for packed weights reads dense rows.
    """
    step = _strides(x)[-2]
    return bool(step > x.shape[-1] and step * x.shape[-2] <= _COPIED)
