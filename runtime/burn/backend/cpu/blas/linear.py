"""Linear layers of plans without an engine, as convolutions of one tap."""

from typing import Any

import numpy as np

from burn.backend.cpu.blas.convolution import KERNELS, finish
from burn.backend.cpu.blas.generated_convolution import (
    ending_of,
    generated,
    is_generated,
)
from burn.backend.cpu.blas.generated_rows import generated_row
from burn.backend.cpu.onednn.binding.capture import compact, noting
from burn.ops.fused import After, linear_then as linear_then_op
from burn.ops.matmul import linear as linear_op
from burn.ops.support import Array
from burn.ops.window import windows


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Compute :func:`burn.ops.linear` in a plan by one call, if supported."""
    out = generated_row(x, weight, bias)
    if out is None:
        out = _planned(x, weight, bias, None, ())
    return linear_op.kernel(x, weight, bias) if out is None else out


def linear_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Compute :func:`burn.ops.fused.linear_then` by one call, if supported."""
    out = generated_row(x, weight, bias, residual, after)
    if out is None:
        out = _planned(x, weight, bias, residual, after)
    if out is None:
        return linear_then_op.kernel(x, weight, bias, residual, after=after)
    return out


def _planned(
    x: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    after: After,
) -> Array | None:
    notes = noting()
    arrays = [a for a in (x, weight, bias, residual) if a is not None]
    if notes is None or {a.dtype for a in arrays} - {np.dtype(np.float32)}:
        return None
    features = x.shape[-1]
    if not x.size or not weight.size or features != weight.shape[-1]:
        return None
    if not is_generated(notes, weight, bias):
        return None
    rows = compact(x).reshape(1, -1, features)
    wins = windows((rows.shape[1],), (1,), 1, 0, 1)
    adds, limits, rest = ending_of(after)
    shape = (1, rows.shape[1], len(weight))
    lines: Any = None if residual is None else compact(residual).reshape(shape)
    given = (bias, lines if adds else None, wins, limits)
    out = generated(notes, rows, weight[..., None], *given)
    finish(out, None, lines, rest)
    return out.reshape(*x.shape[:-1], len(weight))


KERNELS |= {linear_op: linear, linear_then_op: linear_then}
