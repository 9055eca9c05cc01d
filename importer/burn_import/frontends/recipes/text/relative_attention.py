"""Attention with learned biases by relative position, as in T5."""

from __future__ import annotations

from math import log

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel

TABLE = "relative_attention_bias.weight"
LOWEST = float(np.finfo(np.float32).min)


def distances(w: RecipeWriter, places: str, last: int, mask: str | None) -> str:
    """Return the bias of scores by relative position, ``[1, heads, ...]``.

    Distances of ``last`` or more share one bias. With a ``mask`` attention is
    bidirectional, and the bias includes the mask.
    """
    ahead, here = (w.op("Unsqueeze", places, [axis]) for axis in (0, 1))
    rows = buckets(w, w.op("Sub", ahead, here), last, both=mask is not None)
    with w.module("relative_attention_bias", "Embedding"):
        weights = w.op("Gather", w.weight("weight"), rows)
    bias = w.op("Unsqueeze", w.op("Transpose", weights, perm=(2, 0, 1)), [0])
    if mask is None:
        return bias
    return w.op("Where", mask, bias, LOWEST, name="mask")


def buckets(w: RecipeWriter, distance: str, last: int, both: bool) -> str:
    """Return the bucket of each distance: exact if near, logarithmic if far."""
    rows = w.shape(TABLE)[0]
    if not both:
        back = w.op("Neg", w.op("Min", distance, 0))
        return rows_of(w, back, rows, last)
    near = rows_of(w, w.op("Abs", distance), rows // 2, last)
    ahead = w.op("Cast", w.op("Greater", distance, 0), to=7)
    return w.add(near, w.op("Mul", ahead, rows // 2))


def rows_of(w: RecipeWriter, distance: str, rows: int, last: int) -> str:
    """Return the bucket of non-negative distances; half of the buckets are exact.

    Raises:
        InvalidModel: ``last`` is not above the exact distances.
    """
    exact = rows // 2
    table = f"weight {shown(w.key(TABLE))} has {rows} rows for each direction"
    if not 0 < exact < last:
        raise InvalidModel(
            f"config 'relative_attention_max_distance': expected more than {exact}, "
            f"and rows for both near and far, since {table}, got {last}"
        )
    ratio = w.op("Div", w.op("Cast", w.op("Max", distance, exact), to=1), exact * 1.0)
    steps = w.op("Div", w.op("Log", ratio), log(last / exact))
    far = w.op("Cast", w.op("Mul", steps, float(rows - exact)), to=7)
    far = w.op("Min", w.add(far, exact), rows - 1)
    return w.op("Where", w.op("Less", distance, exact), distance, far)


def attend(
    w: RecipeWriter, x: str, other: str, mask: str, count: int, causal: bool = False
) -> str:
    """Apply attention to ``other`` without scaling, as in T5."""
    w.weights.ignore(w.key(TABLE))  # unused in old files
    query = w.heads(w.linear("q", x), count)
    key, value = (w.heads(w.linear(name, other), count) for name in "kv")
    attended = w.attention(query, key, value, mask, 1.0, causal)
    return w.linear("o", w.merged(attended))
