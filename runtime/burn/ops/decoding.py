"""Fused primitives for decoders that compute one token at a time."""

from typing import Literal

import numpy as np

from burn.ops import activation
from burn.ops.fused import After, apply_after
from burn.ops.fused_attention import scaled_attention
from burn.ops.layer_norm import layer_norm, rms_norm
from burn.ops.matmul import linear
from burn.ops.support import Array, accumulate
from burn.primitive import PLAN_ONLY, primitive

#: The kind of norm over the last axis; empty for none.
Norm = Literal["", "layer", "rms"]


@primitive(outputs=2, removable=True, no_gradient=PLAN_ONLY)
def cached_attention(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None = None,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    scale: float,
    empty_is_zero: bool = True,
) -> tuple[Array, Array]:
    """Return attention of one query per head over a cache and a new key and value.

    ``query`` is ``[batch, heads, 1, size]``, ``key`` and ``value`` ``[batch, groups, 1,
    size]``, the cache ``[batch, groups, length, size]``. ``mask`` broadcasts to
    ``[batch, heads, 1, length + 1]``; the new key is the last. With ``cos`` and
    ``sin``, which broadcast to ``[batch, 1, 1, size / 2]``, query and key are rotated
    first; the second result is the key after that. The other arguments are those of
    :func:`scaled_attention`.
    """
    if cos is not None and sin is not None:
        query, key = _rotated(query, cos, sin), _rotated(key, cos, sin)
    repeats = query.shape[1] // key.shape[1]
    keys = np.concatenate([past_key, key], axis=2)
    values = np.concatenate([past_value, value], axis=2)
    if repeats > 1:
        keys, values = (np.repeat(x, repeats, axis=1) for x in (keys, values))
    out = scaled_attention.kernel(
        *(query, keys, values, mask), scale=scale, empty_is_zero=empty_is_zero
    )
    return out, key


def _rotated(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    first, second = accumulate(x[..., :half]), accumulate(x[..., half:])
    parts = [first * cos - second * sin, first * sin + second * cos]
    return np.concatenate(parts, axis=-1).astype(x.dtype, copy=False)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def row_linear(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
) -> Array:
    """Return :func:`linear` of the norm of a few rows, with the epilogue ``after``.

    ``x`` is ``[..., inputs]``. With ``gate``, a weight of the same shape, the product
    is multiplied by the SiLU of the product with ``gate``.
    """
    if norm == "layer":
        x = layer_norm.kernel(x, norm_weight, norm_bias, epsilon=epsilon)
    elif norm == "rms":
        x = rms_norm.kernel(x, norm_weight, epsilon=epsilon)
    out = linear.kernel(x, weight, bias)
    if gate is not None:
        out = activation.silu.kernel(linear.kernel(x, gate)) * out
    return apply_after(out, residual, after)
