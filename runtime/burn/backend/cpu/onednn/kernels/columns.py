"""Column sums as products of a row of ones and a matrix.

They take a third of NumPy's time. oneDNN adds the rows one after another, with a
rounding error that grows with their number. Consecutive rows are therefore columns of
their own, whose sums are added by NumPy.
"""

from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import DST, SRC, WEIGHTS
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import do, empty, noting
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
#: From so many rows on, a part of them is summed at a time.
_LONG = 512
#: Rows whose columns are a multiple of this begin in one set of the cache: half as many
#: columns are summed at a time.
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
    """Compute :func:`burn.ops.sum_to` with oneDNN if faster, else with NumPy."""
    sums = _columns(x, broadcast_axes(shape, x.shape))
    if sums is None:
        return sum_to_op.kernel(x, shape=shape)
    return sums.reshape(shape)


def _columns(x: Array, axes: tuple[int, ...]) -> Array | None:
    """Return the sum over ``axes``; None unless it is a column sum."""
    if x.dtype != FLOAT32 or x.size < _ELEMENTS or not axes:
        return None
    order = sorted(range(x.ndim), key=lambda a: -x.strides[a])
    others = order[len(axes) :]
    if {*others} & {*axes} or others != sorted(others):
        return None
    table = x.transpose(order)
    if not table.flags.c_contiguous:
        return None
    shape = tuple(x.shape[a] for a in others)
    columns = prod(shape)
    rows = x.size // columns
    session = current()
    if session is None or rows < _ROWS or columns < _COLUMNS:
        return None

    def make(primitives: Primitives) -> "_Sum | None":
        return _prepare(primitives, rows, columns)

    key = ("columns", rows, columns)
    kernel: _Sum | None = session.primitives.get(key, make, x.size * 4)
    if kernel is None:
        return None
    return kernel.run(table.reshape(rows, columns)).reshape(shape)


class _Sum(Ready):
    """The product of a row of ones and a matrix, of which ``parts`` rows are one."""

    __slots__ = ("_ones", "_parts")

    def __init__(self, prepared: Prepared, rows: int, parts: int) -> None:
        super().__init__(prepared)
        self._ones, self._parts = np.ones(rows, FLOAT32), parts

    def run(self, x: Array) -> Array:
        """Return the column sums of ``x``."""
        sums, notes = empty((self._parts, x.shape[1])), noting()
        if notes is not None:
            notes.keep(self._ones)
        self._prepared.run(address(self._ones), address(x), address(sums))
        if self._parts == 1:
            return sums[0]
        out = empty(x.shape[1:])
        do(partial(_add, sums, x[len(self._ones) * self._parts :], out))
        return out


def _add(sums: Array, rest: Array, out: Array) -> None:
    """Set ``out`` to the sum of the rows of ``sums`` and of ``rest``."""
    np.add.reduce(sums, axis=0, out=out)
    if len(rest):
        out += np.add.reduce(rest, axis=0)


def _prepare(primitives: Primitives, rows: int, columns: int) -> _Sum | None:
    parts = 1 if rows < _LONG else isqrt(rows) // 2
    rows, columns = rows // parts, columns * parts
    api, width = primitives.api, columns
    if columns % _ALIASED == 0:
        width = _ALIASED // 2
    pieces = columns // width
    ones = strided(api, (1, 1, rows), (rows, rows, 1))
    matrix = strided(api, (pieces, rows, width), (width, columns, 1))
    sums = strided(api, (pieces, 1, width), (width, width, 1))
    description = described(api, "matmul", api.engine, ones, matrix, None, sums)
    if description is None:
        return None
    operands: Operands = [(SRC, ones), (WEIGHTS, matrix), (DST, sums)]
    return _Sum(primitives.prepared(description, operands), rows, parts)
