"""Attention as one primitive, which plans use in place of several."""

import numpy as np

from burn.ops import bounds
from burn.ops.attention import masked_softmax
from burn.ops.softmax import softmax
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import PLAN_ONLY, primitive


@primitive(removable=True, bound=bounds.attended, no_gradient=PLAN_ONLY)
def scaled_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    scale: float,
    causal: bool = False,
    empty_is_zero: bool = True,
) -> Array:
    """Return ``softmax(query @ key.mT * scale + mask) @ value``: ``[..., rows, size]``.

    Half types are computed in float32 and rounded once. ``mask`` broadcasts to the
    scores: True marks visible keys, a float mask is added. With ``causal`` row ``i``
    sees the first ``i + 1`` keys. A row without visible keys is 0, or NaN without
    ``empty_is_zero``. Keys and values may have fewer heads than queries; consecutive
    query heads share one.
    """
    if query.ndim == 4 and query.shape[1] != key.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = (np.repeat(x, repeats, axis=1) for x in (key, value))
    scores = np.matmul(accumulate(query), np.swapaxes(accumulate(key), -2, -1))
    scores = scores * scores.dtype.type(scale)
    xp = namespace(scores)
    if causal:
        rows, columns = scores.shape[-2:]
        seen = xp.arange(columns) <= xp.arange(rows)[:, None]
        scores = xp.where(seen, scores, scores.dtype.type(-np.inf))
    if mask is not None and mask.dtype == np.bool_:
        scores = xp.where(mask, scores, scores.dtype.type(-np.inf))
    elif mask is not None:
        scores = scores + accumulate(mask)
    weights = masked_softmax.kernel(scores) if empty_is_zero else softmax.kernel(scores)
    return np.matmul(weights, accumulate(value)).astype(query.dtype, copy=False)
