"""Examples of attention, rotary embedding and caches."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn import dtypes
from burn_ir import RawGraph, RawNode, Type
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

Names = dict[int, tuple[str | int, ...]]


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
    """Heads, from an axis of their own, put among the features."""
    return np.ascontiguousarray(np.moveaxis(x, 1, 2)).reshape(*x.shape[::2][:2], -1)


@case("Attention")
def attention(draw: Draw, version: int) -> Example:
    batch, rows, columns, past = 2, *extents(draw, 3, 3, most=4)
    groups, size, out = extents(draw, 3, 3, most=3)
    heads = groups * draw(st.sampled_from([1, 2, 3]))
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float16]))
    attrs = attributes(draw, scale=0.7, softcap=2.0, is_causal=1, softmax_precision=1)
    if version >= 25 and draw(st.booleans()):
        attrs |= attributes(draw, left_window_size=1, right_window_size=1)
    caches = ["", "past", "lengths"] if version > 23 else ["", "past"]
    cached = draw(st.sampled_from(caches))
    if cached == "past":  # otherwise onnxruntime counts from the last key
        columns = rows
    total = columns + (past if cached == "past" else 0)
    inputs: list[Array | None] = [
        floats(draw, (batch, heads, rows, size), dtype),
        floats(draw, (batch, groups, columns, size), dtype),
        floats(draw, (batch, groups, columns, out), dtype),
        None,
    ]
    names: Names = {
        0: ("batch", heads, "rows", size),
        1: ("batch", groups, "columns", size),
        2: ("batch", groups, "columns", out),
    }
    if draw(st.booleans()):
        shape = mask_shape(draw, batch, heads, rows, total)
        inputs[3] = masks(draw, shape, dtype)
        wide = (1,) * (4 - len(shape)) + shape
        named = (
            "batch" if wide[0] > 1 else 1,
            wide[1],
            "rows" if wide[2] > 1 else 1,
            wide[3],
        )
        names[3] = named[4 - len(shape) :]
    if cached == "past":
        inputs.append(floats(draw, (batch, groups, past, size), dtype))
        inputs.append(floats(draw, (batch, groups, past, out), dtype))
        names[4] = ("batch", groups, "past", size)
        names[5] = ("batch", groups, "past", out)
    if cached == "lengths":
        inputs += [None, None, integers(draw, (batch,), 0, columns)]
        names = {i: (batch, *n[1:]) for i, n in names.items()}
        names[6] = (batch,)
    # A cache that is given is asked for, and one that is kept elsewhere is not.
    outputs = {
        "": st.integers(1, 4),
        "past": st.integers(3, 4),
        "lengths": st.just(1),
    }[cached]
    outputs = draw(outputs)
    if outputs == 4:
        attrs["qk_matmul_output_mode"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        attrs |= {"q_num_heads": heads, "kv_num_heads": groups}
        for i, count in ((0, heads), (1, groups), (2, groups)):
            x = inputs[i]
            assert x is not None
            inputs[i] = packed(x)
            names[i] = (names[i][0], names[i][2], count * x.shape[3])
    return Example(
        attrs,
        inputs,
        outputs,
        symbols=names,
        # In float64, the softmax would still be taken in float32; a sum of infinite
        # masks has no derivative.
        smooth="softmax_precision" not in attrs and outputs < 4,
        rtol=1e-4,
        atol=2e-3 if dtype == np.float16 else 1e-5,
    )


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
    """A body that squeezes what it is given."""
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
    return Example(attrs, inputs, symbols=names, smooth=smooth, rtol=1e-4, atol=1e-5)
