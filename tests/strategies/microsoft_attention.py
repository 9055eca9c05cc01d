"""Examples of the attention of ``com.microsoft``."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.norm import attributes
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
    kind = draw(st.sampled_from(["", "keys", "queries", "lengths", "ends", "square"]))
    if kind == "keys":
        return flags(draw, (batch, total))
    if kind == "queries":
        return flags(draw, (batch, rows, total))
    if kind == "square":
        return flags(draw, (batch, 1, total + 1, total + 1))
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
    inputs: Inputs = [
        floats(draw, (batch, rows, inner)),
        floats(draw, (inner, sum(features))),
        floats(draw, (sum(features),)),
        key_mask(draw, batch, rows, total),
        floats(draw, (2, batch, heads, past, size)) if cached else None,
        floats(draw, (batch, heads, rows, total)) if draw(st.booleans()) else None,
    ]
    names = fixed(inputs)
    if inputs[3] is None and inputs[5] is None:
        names[0] = (batch, "rows", inner)
    return Example(
        attrs, inputs, 2 if cached else 1, symbols=names, rtol=1e-4, atol=1e-5
    )


@case("MultiHeadAttention", domain=DOMAIN)
def multi_head(draw: Draw, version: int) -> Example:
    batch, (rows, columns, past) = 2, extents(draw, 3, 3, most=4)
    heads, size, out = extents(draw, 3, 3, most=3)
    attrs: dict[str, Any] = {"num_heads": heads}
    attrs |= attributes(draw, scale=0.7, mask_filter_value=-50.0)
    form = draw(st.sampled_from(["apart", "keys", "qkv", "kv", "past"]))
    inputs: Inputs = [floats(draw, (batch, rows, heads * size)), None, None, None]
    if form == "qkv":
        inputs[0], columns = floats(draw, (batch, rows, heads, 3, size)), rows
    elif form == "kv":
        inputs[1] = floats(draw, (batch, columns, heads, 2, size))
    elif form == "keys":
        inputs[1] = floats(draw, (batch, heads, columns, size))
        inputs[2] = floats(draw, (batch, heads, columns, out))
    else:
        columns = rows if form == "past" else columns
        inputs[1] = floats(draw, (batch, columns, heads * size))
        inputs[2] = floats(draw, (batch, columns, heads * out))
        if draw(st.booleans()):
            inputs[3] = floats(draw, (heads * (2 * size + out),))
    total = columns + (past if form == "past" else 0)
    shape = draw(st.sampled_from([(batch, total), (batch, rows, total)]))
    inputs.append(flags(draw, shape) if draw(st.booleans()) else None)
    bias = (draw(st.sampled_from([1, batch])), draw(st.sampled_from([1, heads])))
    with_bias = draw(st.booleans())
    inputs.append(floats(draw, (*bias, rows, total)) if with_bias else None)
    if form == "past":
        inputs.append(floats(draw, (batch, heads, past, size)))
        inputs.append(floats(draw, (batch, heads, past, out)))
    if rows == total and draw(st.booleans()):
        attrs["unidirectional"] = 1
    return Example(
        attrs,
        inputs,
        3 if form == "past" else 1,
        symbols=fixed(inputs),
        rtol=1e-4,
        atol=1e-5,
    )


@case("GroupQueryAttention", domain=DOMAIN)
def group_query(draw: Draw, version: int) -> Example:
    batch, groups, size = 2, draw(st.sampled_from([1, 2])), 8
    heads = groups * draw(st.sampled_from([1, 2, 3]))
    attrs: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    attrs |= attributes(draw, scale=0.7, softcap=2.0, local_window_size=2)
    first = draw(st.booleans())
    rows = draw(st.integers(2, 4)) if first else 1
    buffer = draw(st.integers(4, 6))
    if first:
        before = np.zeros(batch, np.int32)
        total, past = rows, draw(st.sampled_from([0, buffer]))
    else:
        before = integers(draw, (batch,), 1, buffer - 1, np.int32)
        total, past = int(before.max()) + rows, draw(st.sampled_from([0, 1]))
        past = total - rows + past
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
    return Example(
        attrs,
        inputs,
        3,
        stored=frozenset({7, 8}),
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
