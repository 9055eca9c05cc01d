"""Resampling in plans as products with weight matrices, axis by axis.

A matrix is mostly zeros, but oneDNN multiplies faster than NumPy gathers. Infinities
would make distant elements NaN, which is why eager calls gather.
"""

from math import prod
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.capture import Notes, compact, noting
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array, is_dense
from burn.backend.cpu.onednn.binding.operands import are_float32
from burn.backend.cpu.onednn.kernels.matmul import product
from burn.ops.resize import Options, Resampling, resamplings, resize as resize_op

# For larger extents multiplications by zero take longer than gathering.
_LONGEST = 128


@resize_op.on(Cpu)
def resize(
    x: Array, scales: Any = None, sizes: Any = None, roi: Any = None, **options: Any
) -> Array:
    """Compute :func:`burn.ops.resize` with oneDNN in plans if faster, or with NumPy."""
    notes, chosen = noting(), Options(**options)
    if notes is not None and _is_weighted(x, scales, sizes, chosen):
        steps = resamplings(x.shape, scales, sizes, None, chosen)
        out = _resample(notes, x, steps) if _is_faster(x, steps) else None
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


def _is_faster(x: Array, steps: list[Resampling]) -> bool:
    return bool(steps) and all(
        x.shape[step.axis] <= _LONGEST and len(step.taps) for step in steps
    )


def _resample(notes: Notes, x: Array, steps: list[Resampling]) -> Array | None:
    """Return ``x`` resampled axis by axis, in the memory order of ``x``."""
    if not is_dense(x):
        x = compact(x)
    order = sorted(range(x.ndim), key=lambda axis: (-x.strides[axis], axis))
    plain: Array | None = x.transpose(order)
    # The last axis first: there are more products of small matrices along it.
    for step in sorted(steps, key=lambda step: -order.index(step.axis)):
        if plain is None:
            return None
        matrix = step.matrix(x.shape[step.axis]).astype(np.float32)
        notes.keep(matrix)
        plain = _apply_matrix(matrix, plain, order.index(step.axis))
    return None if plain is None else plain.transpose(np.argsort(order).tolist())


def _apply_matrix(matrix: Array, x: Array, axis: int) -> Array | None:
    """Return ``matrix`` [results, extent] applied along an axis of row-major ``x``."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if prod(after) == 1:
        out = product(x.reshape(prod(before), x.shape[axis]), matrix.T)
    else:
        rows = x.reshape(prod(before), x.shape[axis], prod(after))
        out = product(matrix[None], rows)
    return None if out is None else out.reshape(*before, len(matrix), *after)
