"""Examples of attention, rotary embedding and caches."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn import dtypes
from burn_ir import RawGraph, RawNode, Type
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

Names = dict[int, tuple[str | int, ...]]

HIDING = {"is_causal", "left_window_size", "right_window_size"}


def masks(draw: Draw, shape: tuple[int, ...], dtype: Any) -> Array:
    """A bool mask that hides about a third, or numbers to add to the scores."""
    kept = generator(draw).random(shape) > 0.3
    if draw(st.booleans()):
        return np.asarray(kept)
    return np.asarray(np.where(kept, floats(draw, shape), -np.inf)).astype(dtype)


def mask_shape(
    draw: Draw, batch: int, heads: int, rows: int, columns: int
) -> tuple[int, ...]:
    """A shape of rank 2 to 4 that broadcasts to the scores."""
    shape = [
        draw(st.sampled_from([batch, 1])),
        draw(st.sampled_from([heads, 1])),
        rows,  # onnxruntime does not broadcast along these
    ]
    return (*shape[draw(st.integers(0, 2)) :], columns)


def packed(x: Array) -> Array:
    """The array with its axis of heads merged into the features."""
    return np.ascontiguousarray(np.moveaxis(x, 1, 2)).reshape(*x.shape[::2][:2], -1)


@dataclass
class Sizes:
    """The extents of an attention."""

    batch: int
    heads: int
    groups: int
    rows: int
    columns: int
    size: int
    out: int
    past: int = 0


def operands(
    draw: Draw, n: Sizes, dtype: Any, *, cached: str
) -> tuple[list[Array | None], Names]:
    """The operands with an axis of heads, and the names of their axes."""
    inputs: list[Array | None] = [
        floats(draw, (n.batch, n.heads, n.rows, n.size), dtype),
        floats(draw, (n.batch, n.groups, n.columns, n.size), dtype),
        floats(draw, (n.batch, n.groups, n.columns, n.out), dtype),
        None,
    ]
    batch = n.batch if cached == "lengths" else "batch"
    names: Names = {
        0: (batch, n.heads, "rows", n.size),
        1: (batch, n.groups, "columns", n.size),
        2: (batch, n.groups, "columns", n.out),
    }
    if draw(st.booleans()):
        columns = n.columns + n.past
        shape = mask_shape(draw, n.batch, n.heads, n.rows, columns)
        inputs[3] = masks(draw, shape, dtype)
        wide = (1,) * (4 - len(shape)) + shape
        first = batch if wide[0] > 1 else 1
        rows = "rows" if wide[2] > 1 else 1
        names[3] = (first, wide[1], rows, wide[3])[4 - len(shape) :]
    if cached == "past":
        inputs.append(floats(draw, (n.batch, n.groups, n.past, n.size), dtype))
        inputs.append(floats(draw, (n.batch, n.groups, n.past, n.out), dtype))
        names[4] = ("batch", n.groups, "past", n.size)
        names[5] = ("batch", n.groups, "past", n.out)
    if cached == "lengths":
        inputs += [None, None, integers(draw, (n.batch,), 0, n.columns)]
        names[6] = (n.batch,)
    return inputs, names


def heads_inside(inputs: list[Array | None], names: Names) -> None:
    """Merge the heads of queries, keys and values into the features."""
    for i in range(3):
        x = inputs[i]
        assert x is not None
        inputs[i] = packed(x)
        names[i] = (names[i][0], names[i][2], x.shape[1] * x.shape[3])


@case("Attention")
def attention(draw: Draw, version: int) -> Example:
    rows, columns, past = extents(draw, 3, 3, most=4)
    groups, size, out = extents(draw, 3, 3, most=3)
    heads = groups * draw(st.sampled_from([1, 2, 3]))
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float16]))
    attrs = attributes(draw, scale=0.7, softcap=2.0, is_causal=1, softmax_precision=1)
    if version >= 25 and draw(st.booleans()):
        attrs |= attributes(draw, left_window_size=1, right_window_size=1)
    caches = ["", "past", "lengths"] if version > 23 else ["", "past"]
    cached = draw(st.sampled_from(caches))
    sizes = Sizes(2, heads, groups, rows, columns, size, out)
    if cached == "past":  # with other keys, onnxruntime counts from the last of them
        sizes.columns, sizes.past = rows, past
    inputs, names = operands(draw, sizes, dtype, cached=cached)
    # A cache that is given is asked for, and one that is kept elsewhere is not.
    least, most = {"": (1, 4), "past": (3, 4), "lengths": (1, 1)}[cached]
    outputs = draw(st.integers(least, most))
    if outputs == 4:
        # For minus infinity, onnxruntime has the least number.
        hides = inputs[3] is not None or {*attrs} & HIDING
        modes = [0, 1, 3] if hides else [0, 1, 2, 3]
        attrs["qk_matmul_output_mode"] = draw(st.sampled_from(modes))
    if draw(st.booleans()):
        attrs |= {"q_num_heads": heads, "kv_num_heads": groups}
        heads_inside(inputs, names)
    # Infinite scores, and a softmax in float32, have no derivative in float64.
    smooth = "softmax_precision" not in attrs and outputs < 4
    atol = 2e-3 if dtype == np.float16 else 1e-5
    return Example(
        attrs, inputs, outputs, symbols=names, smooth=smooth, rtol=1e-4, atol=atol
    )


@case("Attention", domain="burn")
def attention_with_dropout(draw: Draw, version: int) -> Example:
    """Attention of a module in evaluation, where nothing is dropped."""
    rows, columns = extents(draw, 2, 2, most=4)
    groups, size, out = extents(draw, 3, 3, most=3)
    heads = groups * draw(st.sampled_from([1, 2]))
    attrs = attributes(draw, scale=0.7, softcap=2.0, is_causal=1)
    attrs["dropout"] = draw(st.sampled_from([0.0, 0.3, 1.0]))
    sizes = Sizes(2, heads, groups, rows, columns, size, out)
    inputs, names = operands(draw, sizes, np.float32, cached="")
    if inputs[3] is None:
        inputs.pop()
    return Example(attrs, inputs, symbols=names, rtol=1e-4, atol=1e-5)


@case("RotaryEmbedding")
def rotary(draw: Draw, version: int) -> Example:
    batch, heads, length, pairs = extents(draw, 4, 4, least=2)
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float16]))
    attrs = attributes(draw, interleaved=1)
    rest = draw(st.sampled_from([0, 0, 2, 4]))
    if rest:
        attrs["rotary_embedding_dim"] = 2 * pairs
    size = 2 * pairs + rest
    x = floats(draw, (batch, heads, length, size), dtype)
    names: Names = {0: ("batch", heads, "length", size)}
    if rest or draw(st.booleans()):
        attrs["num_heads"] = heads
        x = packed(x)
        names = {0: ("batch", "length", heads * size)}
    if draw(st.booleans()):
        inputs = [x, *(floats(draw, (7, pairs), dtype) for _ in "cs")]
        inputs.append(integers(draw, (batch, length), 0, 6))
        names |= {1: (7, pairs), 2: (7, pairs), 3: ("batch", "length")}
    else:
        inputs = [x, *(floats(draw, (batch, length, pairs), dtype) for _ in "cs")]
        names |= {i: ("batch", "length", pairs) for i in (1, 2)}
    return Example(attrs, inputs, symbols=names, rtol=1e-4, atol=1e-5)


@case("TensorScatter")
def scatter(draw: Draw, version: int) -> Example:
    shape = extents(draw, 3, 4, least=2)
    axis = draw(st.integers(1, len(shape) - 1))
    longest = shape[axis]
    count = draw(st.integers(1, longest))
    mode = draw(st.sampled_from(["linear", "circular"]))
    attrs: dict[str, Any] = {"mode": mode} if mode == "circular" else {}
    if axis != len(shape) - 2 or draw(st.booleans()):
        attrs["axis"] = draw(st.sampled_from([axis, axis - len(shape)]))
    dtype = draw(st.sampled_from([np.float32, np.int32, np.float16, dtypes.bool_]))
    update = (*shape[:axis], count, *shape[axis + 1 :])
    inputs = [floats(draw, shape, dtype), floats(draw, update, dtype)]
    if draw(st.booleans()):
        last = longest - count if mode == "linear" else 2 * longest
        inputs.append(integers(draw, shape[:1], 0, last))
    names: Names = {
        i: tuple(n if a in (0, axis) else f"n{a}" for a, n in enumerate(x.shape))
        for i, x in enumerate(inputs)
    }
    return Example(attrs, inputs, symbols=names)


def modifier(draw: Draw, dtype: Any, shape: tuple[int, ...]) -> RawGraph:
    """A body that squeezes its input."""
    factor = np.array(draw(st.sampled_from([3.0, 0.5])), dtype)
    nodes = (
        RawNode("Mul", "", {}, ("x", "factor"), ("wide",)),
        RawNode("Tanh", "", {}, ("wide",), ("squeezed",)),
        RawNode("Mul", "", {}, ("squeezed", "factor"), ("y",)),
    )
    x, constants = {"x": Type(dtype, shape)}, {"factor": factor}
    return RawGraph("body", x, ("y",), nodes, constants)


@case("FlexAttention", domain="ai.onnx.preview")
def flexible(draw: Draw, version: int) -> Example:
    rows, columns, size, out = extents(draw, 4, 4, most=4)
    groups = draw(st.sampled_from([1, 2, 3]))
    heads = groups * draw(st.sampled_from([1, 2]))
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float16, np.float64]))
    attrs = attributes(draw, scale=0.7, softmax_precision=11)
    work = (
        np.float64
        if "softmax_precision" in attrs or dtype == np.float64
        else np.float32
    )
    for name in ("score_mod", "prob_mod"):
        if draw(st.booleans()):
            attrs[name] = modifier(draw, np.dtype(work), (2, heads, rows, columns))
    inputs = [
        floats(draw, (2, heads, rows, size), dtype),
        floats(draw, (2, groups, columns, size), dtype),
        floats(draw, (2, groups, columns, out), dtype),
    ]
    names: Names = {
        0: (2, heads, rows, "size"),
        1: (2, groups, columns, "size"),
        2: (2, groups, columns, "out"),
    }
    smooth = work == np.float64
    atol = 2e-3 if dtype == np.float16 else 1e-5
    return Example(attrs, inputs, symbols=names, smooth=smooth, rtol=1e-4, atol=atol)
