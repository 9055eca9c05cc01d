"""Resampling in plans, axis by axis: as sums of lines, or as products with matrices.

Generated kernels sum lines. Without these, and where lines are elements, a matrix
of weights is multiplied, which is mostly zeros: oneDNN multiplies faster than NumPy
gathers. Where the other numbers are a narrow band, its blocks are multiplied by windows
of the operand. Infinities would make distant elements NaN, which is why eager calls
gather.
"""

import platform
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.blas.resampling import resample_lines
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.jit.operands import LEAST_LINE, MOST_TAPS
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.onednn.binding.capture import Notes, compact, noting
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array, is_dense
from burn.backend.cpu.onednn.binding.operands import are_float32
from burn.backend.cpu.onednn.kernels.matmul import product
from burn.ops.resize import Options, Resampling, resamplings, resize as resize_op

# For larger extents multiplications by zero take longer than gathering.
_LONGEST = 128
#: Matrices of bands are multiplied by windows of the operand if they are several times
#: as long as a band, and the operand has many elements. A window begins so many lines
#: after the one before it, or a few more.
_NARROW, _MANY, _STEP = 2, 16_384, 4


@resize_op.on(Cpu)
def resize(
    x: Array, scales: Any = None, sizes: Any = None, roi: Any = None, **options: Any
) -> Array:
    """Compute :func:`burn.ops.resize` with oneDNN in plans if faster, or with NumPy."""
    notes, chosen = noting(), Options(**options)
    if notes is not None and _is_weighted(x, scales, sizes, chosen):
        steps = resamplings(x.shape, scales, sizes, None, chosen)
        out = _resample(notes, x, steps) if _is_faster(notes, x, steps) else None
        if out is not None:
            return out
    return resize_op.kernel(x, scales, sizes, roi, **options)


def _is_weighted(x: Array, scales: Any, sizes: Any, chosen: Options) -> bool:
    """Return whether results are constant weighted sums of elements of ``x`` alone."""
    if current() is None or not are_float32(x) or not x.size:
        return False
    if chosen.mode == "nearest":
        return False
    if chosen.coordinate_transformation_mode == "tf_crop_and_resize":
        return False
    numbers = scales if sizes is None else sizes
    fixed = isinstance(numbers, list | tuple)
    return fixed and all(isinstance(number, int | float) for number in numbers)


def _is_faster(notes: Notes, x: Array, steps: list[Resampling]) -> bool:
    return bool(steps) and all(
        len(step.taps)
        and (
            x.shape[step.axis] <= _LONGEST
            or _is_banded(x, step)
            or _has_kernel(notes, step, size)
        )
        for step, _, size in _in_order(x, _memory_order(x), steps)
    )


def _has_kernel(notes: Notes, step: Resampling, size: int) -> bool:
    """Return whether a generated kernel sums lines of ``size`` elements."""
    is_generated = notes.workspaces.is_generated and platform.machine() in MEASURED
    return is_generated and size >= LEAST_LINE and step.taps.shape[1] <= MOST_TAPS


def _memory_order(x: Array) -> list[int]:
    """Return the axes from the outermost to the innermost in memory."""
    if not is_dense(x):
        return list(range(x.ndim))  # those of its copy
    return sorted(range(x.ndim), key=lambda axis: (-x.strides[axis], axis))


def _in_order(
    x: Array, order: list[int], steps: list[Resampling]
) -> Iterator[tuple[Resampling, int, int]]:
    """Yield the steps, their axes in ``order``, and the elements of a line along them.

    The last axis is first: there are more products of small matrices along it.
    """
    shape = [x.shape[axis] for axis in order]
    for step in sorted(steps, key=lambda step: -order.index(step.axis)):
        axis = order.index(step.axis)
        yield step, axis, prod(shape[axis + 1 :])
        shape[axis] = len(step.taps)


def _is_banded(x: Array, step: Resampling) -> bool:
    """Return whether a long axis is enlarged by a matrix of bands, line by line."""
    matrix = step.matrix(x.shape[step.axis])
    is_enlarged = x.size >= _MANY and len(matrix) > x.shape[step.axis]
    lines = is_dense(x) and x.strides[step.axis] > x.itemsize
    return is_enlarged and lines and _bands(matrix) is not None


def _resample(notes: Notes, x: Array, steps: list[Resampling]) -> Array | None:
    """Return ``x`` resampled axis by axis, in the memory order of ``x``."""
    order = _memory_order(x)
    if not is_dense(x):
        x = compact(x)
    plain: Array | None = x.transpose(order)
    for step, axis, size in _in_order(x, order, steps):
        if plain is None:
            return None
        if _has_kernel(notes, step, size):
            plain = resample_lines(notes, step, plain, axis)
            continue
        matrix = step.matrix(x.shape[step.axis]).astype(np.float32)
        notes.keep(matrix)
        plain = _apply_matrix(notes, matrix, plain, axis)
    return None if plain is None else plain.transpose(np.argsort(order).tolist())


def _apply_matrix(notes: Notes, matrix: Array, x: Array, axis: int) -> Array | None:
    """Return ``matrix`` [results, extent] applied along an axis of row-major ``x``."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if prod(after) == 1:
        out = product(x.reshape(prod(before), x.shape[axis]), matrix.T)
    else:
        rows = x.reshape(prod(before), x.shape[axis], prod(after))
        bands = _bands(matrix) if rows.size >= _MANY else None
        if bands is None:
            out = product(matrix[None], rows)
        else:
            out = _apply_bands(notes, bands, rows)
    return None if out is None else out.reshape(*before, len(matrix), *after)


class _Bands(NamedTuple):
    """Blocks [count, rows, columns] of a matrix that contain all but its zeros.

    Block ``i`` begins at column ``starts[i]``. Those from ``first`` before ``last``
    begin ``step`` columns after the one before.
    """

    blocks: Array
    starts: list[int]
    step: int
    first: int
    last: int


def _bands(matrix: Array) -> _Bands | None:
    """Return the bands of a matrix [results, extent], None if they are not narrow."""
    results, extent = matrix.shape
    most = range(max(extent // _STEP, 1), 0, -1)
    count = next(n for n in most if not (results % n or extent % n))
    step, parts = extent // count, matrix.reshape(count, results // count, extent)
    used, places = (parts != 0).any(axis=1), step * np.arange(count)
    lead = max(int((places - used.argmax(axis=1)).max()), 0)
    ends = extent - used[:, ::-1].argmax(axis=1)
    width = lead + max(int((ends - places).max()), step)
    if _NARROW * width > extent:
        return None
    starts = np.clip(places - lead, 0, extent - width)
    inside = np.flatnonzero(starts == places - lead)
    blocks = [m[:, at : at + width] for m, at in zip(parts, starts, strict=True)]
    span = (int(inside[0]), int(inside[-1]) + 1) if inside.size else (0, 0)
    return _Bands(np.stack(blocks), starts.tolist(), step, *span)


def _apply_bands(notes: Notes, bands: _Bands, rows: Array) -> Array | None:
    """Return the product of a matrix with ``rows`` [batch, extent, after]."""
    notes.keep(bands.blocks)
    count, _, width = bands.blocks.shape
    batch, _, after = rows.shape
    windows = notes.empty((batch, count, width, after), rows.dtype)
    image, line, element = rows.strides
    if bands.first < bands.last:
        inside = np.lib.stride_tricks.as_strided(
            rows[:, bands.starts[bands.first] :],
            (batch, bands.last - bands.first, width, after),
            (image, bands.step * line, line, element),
        )
        notes.assign(windows[:, bands.first : bands.last], inside)
    for index in (*range(bands.first), *range(bands.last, count)):
        start = bands.starts[index]
        notes.assign(windows[:, index], rows[:, start : start + width])
    return product(bands.blocks[None], windows)
