"""Examples of the attention of ``com.microsoft``."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.nn.norm import attributes
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)

DOMAIN = "com.microsoft"
Names = dict[int, tuple[str | int, ...]]
Inputs = list[Array | None]


def fixed(inputs: Inputs) -> Names:
    """The extents of the operands as they are."""
    names: Names = {i: x.shape for i, x in enumerate(inputs) if x is not None}
    return names


def flags(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Ones, and zeros for about a third of the keys."""
    return np.asarray(generator(draw).random(shape) > 0.3).astype(np.int32)


def key_mask(draw: Draw, batch: int, rows: int, total: int) -> Array | None:
    """A mask of one of the kinds that attention with a projection takes."""
    kind = draw(st.sampled_from(["", "keys", "queries", "lengths", "ends"]))
    if kind == "keys":
        return flags(draw, (batch, total))
    if kind == "queries":
        return flags(draw, (batch, rows, total))
    if kind == "lengths":
        return integers(draw, (batch,), 1, total, np.int32)
    if kind == "ends":
        ends = integers(draw, (batch,), 1, total, np.int32)
        return np.concatenate([ends, ends // 2])
    return None


@case("Attention", domain=DOMAIN)
def attention(draw: Draw, version: int) -> Example:
    batch, (rows, past, inner) = 2, extents(draw, 3, 3, most=4)
    heads, size = extents(draw, 2, 2, most=3)
    features = (heads * size,) * 3
    attrs: dict[str, Any] = {"num_heads": heads}
    attrs |= attributes(draw, unidirectional=1, scale=0.7, mask_filter_value=-50.0)
    cached = draw(st.booleans())
    if not cached and draw(st.booleans()):
        features = (*features[:2], heads * draw(st.integers(1, 3)))
        attrs["qkv_hidden_sizes"] = features
    total = rows + (past if cached else 0)
    with_bias = draw(st.booleans())
    bias = floats(draw, (batch, heads, rows, total)) if with_bias else None
    inputs: Inputs = [
        floats(draw, (batch, rows, inner)),
        floats(draw, (inner, sum(features))),
        floats(draw, (sum(features),)),
        key_mask(draw, batch, rows, total),
        floats(draw, (2, batch, heads, past, size)) if cached else None,
        None if cached else bias,
    ]
    names = fixed(inputs)
    if inputs[3] is None and inputs[5] is None:
        names[0] = (batch, "rows", inner)
    return Example(
        attrs, inputs, 2 if cached else 1, symbols=names, rtol=1e-4, atol=1e-5
    )


def projected(draw: Draw, form: str, extents: tuple[int, int, int, int, int]) -> Inputs:
    """Queries, keys, values and their bias, of ``batch, heads, rows, columns, size``.

    ``form`` says which of them share an operand, or have their heads apart.
    """
    batch, heads, rows, columns, size = extents
    query = (batch, rows, heads * size)
    if form == "qkv":
        return [floats(draw, (batch, rows, heads, 3, size)), None, None, None]
    if form == "kv":
        keys = floats(draw, (batch, columns, heads, 2, size))
        return [floats(draw, query), keys, None, None]
    if form == "keys":
        apart = (batch, heads, columns, size)
        return [floats(draw, query), *(floats(draw, apart) for _ in "kv"), None]
    out = size if form == "past" else draw(st.integers(1, 3))
    bias = floats(draw, (heads * (2 * size + out),)) if draw(st.booleans()) else None
    return [
        floats(draw, query),
        floats(draw, (batch, columns, heads * size)),
        floats(draw, (batch, columns, heads * out)),
        bias,
    ]


@case("MultiHeadAttention", domain=DOMAIN)
def multi_head(draw: Draw, version: int) -> Example:
    batch, (rows, columns, past) = 2, extents(draw, 3, 3, most=4)
    heads, size = extents(draw, 2, 2, most=3)
    attrs: dict[str, Any] = {"num_heads": heads}
    attrs |= attributes(draw, scale=0.7, mask_filter_value=-50.0)
    form = draw(st.sampled_from(["apart", "keys", "qkv", "kv", "past"]))
    columns = rows if form in ("past", "qkv") else columns
    inputs = projected(draw, form, (batch, heads, rows, columns, size))
    expected = None
    total = columns + (past if form == "past" else 0)
    if form in ("qkv", "kv"):  # onnxruntime runs these on a GPU alone
        expected = [packed_result(inputs, heads, attrs.get("scale", size**-0.5))]
    else:
        shape = draw(st.sampled_from([(batch, total), (batch, rows, total)]))
        inputs.append(flags(draw, shape) if draw(st.booleans()) else None)
        bias = (draw(st.sampled_from([1, batch])), draw(st.sampled_from([1, heads])))
        with_bias = draw(st.booleans())
        inputs.append(floats(draw, (*bias, rows, total)) if with_bias else None)
    if form == "past":
        inputs += [floats(draw, (batch, heads, past, size)) for _ in "kv"]
    if rows == total and expected is None:
        attrs |= attributes(draw, unidirectional=1)
    return Example(
        attrs,
        inputs,
        3 if form == "past" else 1,
        expected=expected,
        symbols=fixed(inputs),
        rtol=1e-4,
        atol=1e-5,
    )


def packed_result(inputs: Inputs, heads: int, scale: float) -> Array:
    """Attention where queries, keys and values, or the last two, are one operand."""
    query, key = inputs[:2]
    assert query is not None
    if key is None:
        query, keys, values = (query[:, :, :, i] for i in range(3))
    else:
        query = query.reshape(*query.shape[:2], heads, -1)
        keys, values = key[:, :, :, 0], key[:, :, :, 1]
    weights = np.exp(np.einsum("bihd,bjhd->bhij", query, keys) * scale)
    weights = weights / weights.sum(-1, keepdims=True)
    out = np.einsum("bhij,bjhd->bihd", weights, values)
    return np.asarray(out.reshape(*out.shape[:2], -1)).astype(np.float32)


def _cached_lengths(draw: Draw, batch: int) -> tuple[int, Any, int, int]:
    """Return rows, the keys before them, the total, and the length of the cache."""
    first = draw(st.booleans())
    rows = draw(st.integers(2, 4)) if first else 1
    buffer = draw(st.integers(4, 6))
    if first:
        before = np.zeros(batch, np.int32)
        return rows, before, rows, draw(st.sampled_from([0, buffer]))
    before = integers(draw, (batch,), 1, buffer - 1, np.int32)
    total = int(before.max()) + rows
    return rows, before, total, total - rows + draw(st.sampled_from([0, 1]))


@case("GroupQueryAttention", domain=DOMAIN)
def group_query(draw: Draw, version: int) -> Example:
    batch, groups, size = 2, draw(st.sampled_from([1, 2])), 16
    heads = groups * draw(st.sampled_from([1, 2, 3]))
    attrs: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    attrs |= attributes(draw, scale=0.7, softcap=2.0, local_window_size=2)
    rows, before, total, past = _cached_lengths(draw, batch)
    lengths = (before + rows - 1).astype(np.int32)
    inputs: Inputs = [floats(draw, (batch, rows, heads * size)), None, None]
    if draw(st.booleans()):
        inputs[1:] = [floats(draw, (batch, rows, groups * size)) for _ in "kv"]
    else:
        inputs[0] = floats(draw, (batch, rows, (heads + 2 * groups) * size))
    inputs += [floats(draw, (batch, groups, past, size)) for _ in "kv"]
    inputs += [lengths, np.array(total, np.int32)]
    if draw(st.booleans()):
        attrs |= {"do_rotary": 1} | attributes(draw, rotary_interleaved=1)
        inputs += [floats(draw, (8, size // 2)) for _ in "cs"]
    if draw(st.booleans()):
        attrs |= attributes(draw, smooth_softmax=1)
    elif draw(st.booleans()):
        inputs += [None] * (11 - len(inputs))
        inputs.append(floats(draw, (heads,)))
    return Example(
        attrs,
        inputs,
        3,
        stored=frozenset(range(7, len(inputs))),
        symbols=fixed(inputs),
        rtol=1e-4,
        atol=1e-5,
    )


@case("RotaryEmbedding", domain=DOMAIN)
def rotary(draw: Draw, version: int) -> Example:
    batch, heads, length, pairs = extents(draw, 4, 4, least=2)
    attrs = attributes(draw, interleaved=1)
    rest = draw(st.sampled_from([0, 0, 2, 4]))
    size = 2 * pairs + rest
    if rest:
        attrs |= {"rotary_embedding_dim": 2 * pairs, "num_heads": heads}
    apart = not rest and draw(st.booleans())
    shape = (batch, heads, length, size) if apart else (batch, length, heads * size)
    positions = integers(draw, (batch, length), 0, 8)
    if draw(st.booleans()):
        positions = integers(draw, (1,), 0, 4)
    inputs: Inputs = [floats(draw, shape), positions]
    inputs += [floats(draw, (9, pairs)) for _ in "cs"]
    return Example(attrs, inputs, symbols=fixed(inputs), rtol=1e-4, atol=1e-5)
