"""Column sums as products of a row of ones and a matrix.

They take a third of NumPy's time, with the same accuracy.
"""

from math import prod
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import DST, SRC, WEIGHTS
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty, noting
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array, address, strided
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    Ready,
    described,
)
from burn.ops.broadcast import broadcast_axes, sum_to as sum_to_op
from burn.ops.reduction import sum as sum_op
from burn.ops.support import axes_of

#: NumPy is as quick with fewer elements, with fewer rows, or with fewer columns.
_ELEMENTS, _ROWS, _COLUMNS = 1 << 16, 64, 16
#: Rows of so many columns, or twice as many and so on, begin in one set of the cache:
#: half of that is taken at a time.
_ALIASED = 512


@sum_op.on(Cpu)
def sum(x: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Compute :func:`burn.ops.sum` with oneDNN if that is faster, else with NumPy."""
    axes = axes_of(axis, x.ndim)
    sums = _columns(x, axes)
    if sums is None:
        return sum_op.kernel(x, axis, keepdims=keepdims)
    if keepdims:
        shape = [1 if a in axes else extent for a, extent in enumerate(x.shape)]
        return sums.reshape(shape)
    return sums


@sum_to_op.on(Cpu)
def sum_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    """Compute :func:`burn.ops.sum_to` with oneDNN if that is faster, else with
    NumPy.
    """
    sums = _columns(x, broadcast_axes(shape, x.shape))
    if sums is None:
        return sum_to_op.kernel(x, shape=shape)
    return sums.reshape(shape)


def _columns(x: Array, axes: tuple[int, ...]) -> Array | None:
    """Return the sum over ``axes``; None unless it is a column sum."""
    if x.dtype != FLOAT32 or x.size < _ELEMENTS or not axes:
        return None
    order = sorted(range(x.ndim), key=lambda a: -x.strides[a])
    kept = order[len(axes) :]
    if {*kept} & {*axes} or kept != sorted(kept):
        return None
    if not x.transpose(order).flags.c_contiguous:
        return None
    shape = tuple(x.shape[a] for a in kept)
    columns = prod(shape)
    rows = x.size // columns
    session = current()
    if session is None or rows < _ROWS or columns < _COLUMNS:
        return None

    def make(primitives: Primitives) -> "_Sum | None":
        return _prepare(primitives, rows, columns)

    key = ("columns", rows, columns)
    kernel: _Sum | None = session.primitives.get(key, make, x.size * 4)
    return None if kernel is None else kernel.run(x, shape)


class _Sum(Ready):
    """The product of a row of ones and a matrix."""

    __slots__ = ("_ones",)

    def __init__(self, prepared: Prepared, rows: int) -> None:
        super().__init__(prepared)
        self._ones = np.ones(rows, FLOAT32)

    def run(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return the column sums of ``x``, of ``shape``."""
        out, notes = empty(shape), noting()
        if notes is not None:
            notes.keep(self._ones)
        self._prepared.run(address(self._ones), address(x), address(out))
        return out


def _prepare(primitives: Primitives, rows: int, columns: int) -> _Sum | None:
    api, width = primitives.api, columns
    if columns % _ALIASED == 0:
        width = _ALIASED // 2
    parts = columns // width
    ones = strided(api, (1, 1, rows), (rows, rows, 1))
    matrix = strided(api, (parts, rows, width), (width, columns, 1))
    sums = strided(api, (parts, 1, width), (width, width, 1))
    description = described(api, "matmul", api.engine, ones, matrix, None, sums)
    if description is None:
        return None
    operands: Operands = [(SRC, ones), (WEIGHTS, matrix), (DST, sums)]
    return _Sum(primitives.prepared(description, operands), rows)
