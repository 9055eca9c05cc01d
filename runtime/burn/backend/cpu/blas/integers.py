"""Dynamic quantization in plans, and linear layers of its integers, for kernels.

oneDNN multiplies bytes on processors with instructions for it; on others a generated
kernel does. NumPy computes a call until its kernel replaces it, when a plan is first
repeated. Both have the bits of eager calls.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.blas.convolution import KERNELS, finish
from burn.backend.cpu.blas.generated_convolution import is_generated
from burn.backend.cpu.jit.integers.products import IntegerProduct, scratch_floats
from burn.backend.cpu.jit.integers.quantization import LANES, PARTS
from burn.backend.cpu.jit.pool import parallel_parts
from burn.backend.cpu.onednn.binding.capture import (
    Notes,
    compact,
    do,
    empty_as,
    noting,
)
from burn.backend.cpu.onednn.binding.memory import is_dense
from burn.dtypes import DType, float32, int8, int32, uint8
from burn.ops.exact_integer import integer_matmul
from burn.ops.fused import After
from burn.ops.qdq_layers import (
    Integers,
    Limits,
    Scaling,
    linear_of_integers as linear_of_integers_op,
)
from burn.ops.quantize import (
    Shift,
    quantization_range as quantization_range_op,
    quantize as quantize_op,
)
from burn.ops.support import Array

_BYTES = (int8, uint8)


def quantization_range(x: Array) -> tuple[Array, Array]:
    """Compute :func:`burn.ops.quantization_range` in a plan by calls with kernels."""
    notes = _generating()
    if notes is None or x.dtype != float32 or x.size < LANES:
        results: tuple[Array, Array] = quantization_range_op.kernel(x)
        return results
    x = x if is_dense(x) else compact(x)
    extremes = notes.empty((min(PARTS, x.size // LANES), 2), x.dtype)
    scale, zero_point = notes.empty((), x.dtype), notes.empty((), np.dtype(uint8))
    do(partial(write_extremes, x, extremes))
    do(partial(write_scale, extremes, scale, zero_point))
    return scale, zero_point


def quantize(
    x: Array,
    scale: Array,
    zero_point: Shift = None,
    *,
    dtype: DType = uint8,
    **options: Any,
) -> Array:
    """Compute :func:`burn.ops.quantize` in a plan by one call, if supported.

    It supports one scale, and results of 8 bits.
    """
    is_plain = options.get("precision", float32) == float32
    is_plain = is_plain and not options.get("block_size", 0)
    is_supported = (
        is_plain
        and _generating() is not None
        and (dtype in _BYTES and x.size >= LANES and is_dense(x))
        and (x.dtype == float32 and _is_one(scale, float32))
        and (zero_point is None or _is_one(zero_point, dtype))
    )
    if not is_supported:
        return quantize_op.kernel(x, scale, zero_point, dtype=dtype, **options)
    out: Array = empty_as(x, np.dtype(dtype))
    do(partial(round_to_bytes, x, scale, zero_point, out))
    return out


def _is_one(x: Any, dtype: DType) -> bool:
    """Return whether ``x`` is an array of one number of a dtype."""
    return isinstance(x, np.ndarray) and x.size == 1 and x.dtype == dtype


def linear_of_integers(
    x: Integers,
    weight: Integers,
    bias: Array | None = None,
    residual: Array | Integers | None = None,
    result: Scaling | None = None,
    limits: Limits | None = None,
    *,
    after: After = (),
    dtype: DType = float32,
) -> Array:
    """Compute :func:`burn.ops.qdq_layers.linear_of_integers` in a plan by one call.

    It supports constant weights and results in float32; others are NumPy's.
    """
    out = None
    if result is None and limits is None and not isinstance(residual, tuple):
        out = _product(x, weight, bias)
    if out is None:
        return linear_of_integers_op.kernel(
            *(x, weight, bias, residual, result, limits), after=after, dtype=dtype
        )
    if after:
        other = None if residual is None else compact(residual)
        finish(out, None, other, after)
    return out


def _product(x: Integers, weight: Integers, bias: Array | None) -> Array | None:
    """Return the product in float32 with its bias, None if there is no kernel."""
    (numbers, scale, shift), (matrix, scales, shifts) = x, weight
    notes = _generating()
    if notes is None or not is_generated(notes, matrix, bias):
        return None
    if not all(part is None or notes.is_constant(part) for part in (scales, shifts)):
        return None
    if not _is_supported(numbers, shift, matrix, shifts) or not _is_one(scale, float32):
        return None
    outputs, depth = matrix.shape
    if np.size(scales) not in (1, outputs):
        return None
    rows = compact(numbers).reshape(-1, depth)
    factors = notes.empty((outputs,), scale.dtype)
    do(partial(np.multiply, scale.reshape(()), scales.reshape(-1), out=factors))
    parts = parallel_parts(len(rows) * outputs)
    size = parts * scratch_floats(len(rows))
    scratch = notes.workspaces.shared("integers", (size,))[:size]
    out: Array = notes.empty((len(rows), outputs), scale.dtype)
    given = IntegerProduct(rows, shift, matrix, shifts, factors, bias, out, scratch)
    do(partial(multiply_integers, given))
    return out.reshape(*numbers.shape[:-1], outputs)


def _is_supported(
    numbers: Array, shift: Array | None, matrix: Array, shifts: Array | None
) -> bool:
    """Return whether kernels multiply numbers and a matrix with these zero points."""
    if numbers.dtype not in _BYTES or matrix.dtype != int8 or matrix.ndim != 2:
        return False
    if not numbers.size or not matrix.size or numbers.shape[-1] != matrix.shape[1]:
        return False
    return _is_one(shift, int32) and (shifts is None or shifts.size == 1)


def _generating() -> Notes | None:
    """Return the plan that is being bound, if it has generated kernels."""
    notes = noting()
    return notes if notes is not None and notes.workspaces.is_generated else None


# The calls by NumPy.


def write_extremes(x: Array, extremes: Array) -> None:
    """Write the least and the largest number of ``x`` to all rows of ``extremes``."""
    extremes[:, 0], extremes[:, 1] = x.min(), x.max()


def write_scale(extremes: Array, scale: Array, zero_point: Array) -> None:
    """Write the scale and the zero point of a range."""
    scale[...], zero_point[...] = quantization_range_op.kernel(extremes)


def round_to_bytes(
    x: Array, scale: Array, zero_point: Array | None, out: Array
) -> None:
    """Write quantized numbers to ``out``."""
    np.copyto(out, quantize_op.kernel(x, scale, zero_point, dtype=out.dtype))


def multiply_integers(given: IntegerProduct) -> None:
    """Write a product of integers, in float32 with its factors and bias."""
    total = integer_matmul.kernel(
        given.x, given.weight.T, given.zero_point, given.weight_zero_point
    )
    np.multiply(total.astype(np.float32), given.factors, out=given.out)
    if given.bias is not None:
        np.add(given.out, given.bias, out=given.out)


KERNELS |= {
    quantization_range_op: quantization_range,
    quantize_op: quantize,
    linear_of_integers_op: linear_of_integers,
}
