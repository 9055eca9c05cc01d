"""Attention that adds a learned number for how far tokens are apart, as in T5."""

from __future__ import annotations

from math import log

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel

TABLE = "relative_attention_bias.weight"
LOWEST = float(np.finfo(np.float32).min)


def distances(w: RecipeWriter, places: str, last: int, mask: str | None) -> str:
    """Return the bias of scores by the distance of tokens, ``[1, heads, ...]``.

    Distances of ``last`` and more are one. With a ``mask`` tokens look both ways, and
    what they do not see is added, too.
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
    """The row for each distance: one each for near ones, then wider and wider ones."""
    rows = w.shape(TABLE)[0]
    if not both:
        back = w.op("Neg", w.op("Min", distance, 0))
        return rows_of(w, back, rows, last)
    near = rows_of(w, w.op("Abs", distance), rows // 2, last)
    ahead = w.op("Cast", w.op("Greater", distance, 0), to=7)
    return w.add(near, w.op("Mul", ahead, rows // 2))


def rows_of(w: RecipeWriter, distance: str, rows: int, last: int) -> str:
    """The row of distances of 0 or more; half of the rows are for one distance each.

    Raises:
        InvalidModel: there are no rows for distances from there to ``last``.
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


def unscaled(
    w: RecipeWriter, x: str, other: str, mask: str, count: int, causal: bool = False
) -> str:
    """Attention to ``other``, of scores as they are: the weights hold their scale."""
    w.weights.ignore(w.key(TABLE))  # old files have one that nobody reads
    query = w.heads(w.linear("q", x), count)
    key, value = (w.heads(w.linear(name, other), count) for name in "kv")
    attended = w.attention(query, key, value, mask, 1.0, causal)
    return w.linear("o", w.merged(attended))
