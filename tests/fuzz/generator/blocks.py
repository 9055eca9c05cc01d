"""Blocks of networks on sequences and images, decomposed as exporters do it.

A block is a function from a module under construction (:class:`Layers`) and a value to
a value of the same shape. What it draws from ``m.rng`` decides on its structure: the
same stream makes the same block with other weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.generator.layers import Layers


@dataclass(frozen=True)
class Shape:
    """What blocks know of the values that they get: the width, and what may mask.

    ``mask`` is an input of floats (batch, seq) that are 1 or 0, if there is one.
    """

    width: int
    mask: str | None = None


Block = Callable[[Layers, str, Shape], str]


def linear(m: Layers, x: str, size: int, result: int, bias: bool = True) -> str:
    """A product with a weight: turned by the exporter or in the graph, or Gemm."""
    way = m.rng.choice(("turned", "transpose", "turned", "gemm", "einsum"))
    if way == "gemm" and m.builder.opset >= 11:
        weight = m.weight("weight", result, size)
        rows = m.op("Reshape", x, m.ints(-1, size))
        operands = [weight, m.weight("bias", result)] if bias else [weight]
        y = m.op("Gemm", rows, *operands, transB=1)
        return m.op("Reshape", y, m.op("Concat", *_leading(m, x, result), axis=0))
    if way == "einsum" and m.builder.opset >= 12:
        weight = m.weight("weight", result, size)
        y = m.op("Einsum", x, weight, equation="bsd,ed->bse")
    elif way == "transpose":
        weight = m.op("Transpose", m.weight("weight", result, size), perm=[1, 0])
        y = m.op("MatMul", x, weight)
    else:
        y = m.op("MatMul", x, m.weight("turned", size, result))
    if not bias:
        return y
    operands = [y, m.weight("bias", result)]
    return m.op("Add", *(operands[::-1] if m.rng.random() < 0.5 else operands))


def _leading(m: Layers, x: str, size: int) -> list[str]:
    return [m.extent(x, 0), m.extent(x, 1), m.ints(size)]


def activation(m: Layers, x: str) -> str:
    """An activation, as one node or decomposed."""
    way = m.rng.choice(("relu", "gelu", "gelu", "tanh gelu", "silu", "tanh", "sigmoid"))
    if way in ("relu", "tanh", "sigmoid"):
        return m.op(way.capitalize(), x)
    if way == "silu":
        return m.op("Mul", x, m.op("Sigmoid", x))
    if way == "gelu":
        if m.builder.opset >= 20 and m.rng.random() < 0.5:
            return m.op("Gelu", x)
        erf = m.op("Erf", m.op("Div", x, m.const(math.sqrt(2))))
        both = m.op("Mul", x, m.op("Add", erf, m.const(1)))
        return m.op("Mul", both, m.const(0.5))
    cube = m.op("Pow", x, m.const(3))
    inner = m.op("Add", x, m.op("Mul", cube, m.const(0.044715)))
    tanh = m.op("Tanh", m.op("Mul", inner, m.const(math.sqrt(2 / math.pi))))
    half = m.op("Mul", x, m.const(0.5))
    return m.op("Mul", half, m.op("Add", tanh, m.const(1)))


def norm(m: Layers, x: str, shape: Shape) -> str:
    """A norm over the last axis: of layers or RMS, as one node or decomposed."""
    rms = m.rng.random() < 0.4
    scale = m.weight("weight", shape.width, around=1)
    epsilon = m.rng.choice((1e-5, 1e-6, 1e-12 if not rms else 1e-6))
    whole = m.rng.random() < 0.4
    if not rms and whole and m.builder.opset >= 17:
        bias = m.weight("bias", shape.width)
        return m.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)
    if rms and whole and m.builder.opset >= 23:
        return m.op("RMSNormalization", x, scale, axis=-1, epsilon=epsilon)
    centered = x if rms else m.op("Sub", x, m.mean(x))
    square = m.op("Pow", centered, m.const(2))
    if m.rng.random() < 0.3:
        square = m.op("Mul", centered, centered)
    variance = m.op("Add", m.mean(square), m.const(epsilon))
    if rms and m.rng.random() < 0.6:
        y = m.op("Mul", x, m.op("Reciprocal", m.op("Sqrt", variance)))
    else:
        y = m.op("Div", centered, m.op("Sqrt", variance))
    y = m.op("Mul", *((scale, y) if rms else (y, scale)))
    return y if rms else m.op("Add", y, m.weight("bias", shape.width))


def mlp(m: Layers, x: str, shape: Shape) -> str:
    """Two linear layers, or three with a gate."""
    hidden = shape.width * m.rng.choice((1, 2, 3))
    bias = m.rng.random() < 0.8
    up = linear(m.inside("fc1"), x, shape.width, hidden, bias)
    y = activation(m.inside("act"), up)
    if m.rng.random() < 0.3:
        gate = linear(m.inside("gate"), x, shape.width, hidden, bias)
        y = m.op("Mul", y, gate)
    return linear(m.inside("fc2"), y, hidden, shape.width, bias)


def attention(m: Layers, x: str, shape: Shape) -> str:
    """Attention with heads, and a mask of one kind or none."""
    heads = m.rng.choice([n for n in (1, 2, 4) if shape.width % n == 0])
    size = shape.width // heads
    bias = m.rng.random() < 0.7
    q, k, v = _projected(m, x, shape.width, bias)
    q, k, v = (_heads(m, y, x, heads, size) for y in (q, k, v))
    last = [0, 1, 3, 2]
    keys = m.op("Transpose", k, perm=last)
    way = m.rng.choice(("after", "before", "both"))
    root = math.sqrt(size)
    if way == "before":
        q = m.op("Div", q, m.const(root))
    elif way == "both":
        q = m.op("Mul", q, m.const(1 / math.sqrt(root)))
        keys = m.op("Mul", keys, m.const(1 / math.sqrt(root)))
    scores = m.op("MatMul", q, keys)
    if way == "after":
        scores = m.op("Div", scores, m.const(root))
    weights = m.op("Softmax", masked(m, scores, x, shape), axis=3)
    joined = m.op("Transpose", m.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = m.reshape(joined, x, None, None, shape.width)
    return linear(m.inside("out_proj"), y, shape.width, shape.width, bias)


def _projected(m: Layers, x: str, width: int, bias: bool) -> tuple[str, str, str]:
    if m.rng.random() < 0.7:
        q, k, v = (
            linear(m.inside(f"{name}_proj"), x, width, width, bias) for name in "qkv"
        )
        return q, k, v
    joined = linear(m.inside("qkv"), x, width, 3 * width, bias)
    if m.builder.opset >= 13 and m.rng.random() < 0.5:
        split = m.ints(width, width, width)
        q, k, v = m.ops("Split", [joined, split], 3, axis=2)
    elif m.builder.opset >= 10:
        q, k, v = (m.cut(joined, i * width, (i + 1) * width, 2) for i in range(3))
    else:
        q, k, v = m.ops("Split", [joined], 3, axis=2, split=[width] * 3)
    return q, k, v


def _heads(m: Layers, y: str, like: str, heads: int, size: int) -> str:
    parts = m.reshape(y, like, None, None, heads, size)
    return m.op("Transpose", parts, perm=[0, 2, 1, 3])


def masked(m: Layers, scores: str, x: str, shape: Shape) -> str:
    """Scores (batch, heads, queries, keys) with a mask."""
    ways = ["none", "causal"]
    ways += ["added", "chosen"] if shape.mask is not None else []
    way = m.rng.choice(ways)
    if way == "none":
        return scores
    if way == "causal":
        return _causal(m, scores, x)
    assert shape.mask is not None
    mask = m.along("Unsqueeze", shape.mask, (1, 2))
    lowest = m.rng.choice((-10000.0, -1e4, float(np.finfo(np.float32).min)))
    if way == "added":
        hidden = m.op("Sub", m.const(1), mask)
        return m.op("Add", scores, m.op("Mul", hidden, m.const(lowest)))
    hidden = m.op("Less", mask, m.const(0.5))
    return m.op("Where", hidden, m.const(lowest), scores)


def _causal(m: Layers, scores: str, x: str) -> str:
    """A mask of the keys after each query: stored for 16 places, or computed."""
    seq = m.extent(x, 1)
    lowest = m.rng.choice((-1e4, float(np.finfo(np.float32).min), -math.inf))
    if m.builder.opset >= 14 and m.rng.random() < 0.5:
        square = m.op("Concat", seq, seq, axis=0)
        fill = helper.make_tensor("value", TensorProto.FLOAT, [1], [lowest])
        full = m.op("ConstantOfShape", square, value=fill)
        return m.op("Add", scores, m.op("Trilu", full, m.const(1, np.int64), upper=1))
    stored = m.stored("bias", np.tril(np.ones((1, 1, 16, 16), np.bool_)))
    if m.builder.opset < 10:
        return scores
    rows = m.cut(m.cut(stored, 0, seq, 2), 0, seq, 3)
    return m.op("Where", rows, scores, m.const(lowest))


def recurrent(m: Layers, x: str, shape: Shape) -> str:
    """An LSTM or a GRU with its batch first, as PyTorch's exporter writes it."""
    kind, gates = m.rng.choice((("LSTM", 4), ("GRU", 3)))
    width = shape.width
    both = width % 2 == 0 and m.rng.random() < 0.3
    ways, hidden = (2, width // 2) if both else (1, width)
    rows = m.op("Transpose", x, perm=[1, 0, 2])
    state = m.op(
        "ConstantOfShape",
        m.op("Concat", m.ints(ways), m.extent(x, 0), m.ints(hidden), axis=0),
        value=helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0]),
    )
    operands = [
        rows,
        m.weight("W", ways, gates * hidden, width),
        m.weight("R", ways, gates * hidden, hidden),
        m.weight("B", ways, 2 * gates * hidden),
        "",
        *([state, state] if kind == "LSTM" else [state]),
    ]
    attrs = {"direction": "bidirectional"} if both else {}
    if kind == "GRU" and m.rng.random() < 0.7:
        attrs["linear_before_reset"] = 1  # type: ignore[assignment]
    y = m.op(kind, *operands, hidden_size=hidden, **attrs)
    if both:
        turned = m.op("Transpose", y, perm=[2, 0, 1, 3])
        return m.reshape(turned, x, None, None, width)
    return m.op("Transpose", m.along("Squeeze", y, (1,)), perm=[1, 0, 2])


def filtered(m: Layers, x: str, shape: Shape) -> str:
    """A convolution along the sequence, of each channel alone or of all."""
    groups = m.rng.choice((1, shape.width))
    turned = m.op("Transpose", x, perm=[0, 2, 1])
    weight = m.weight("weight", shape.width, shape.width // groups, 3)
    operands = [turned, weight]
    if m.rng.random() < 0.7:
        operands.append(m.weight("bias", shape.width))
    y = m.op("Conv", *operands, kernel_shape=[3], pads=[1, 1], group=groups)
    return m.op("Transpose", activation(m, y), perm=[0, 2, 1])


def residual(m: Layers, x: str, shape: Shape) -> str:
    """A norm, a block and a sum with what came in; the norm may come last."""
    inner = m.rng.choice((attention, mlp, attention, mlp, recurrent, filtered))
    first = m.rng.random() < 0.7
    y = norm(m.inside("norm"), x, shape) if first else x
    y = m.op("Add", x, inner(m.inside(inner.__name__), y, shape))
    return y if first else norm(m.inside("norm"), y, shape)


def transformer(m: Layers, x: str, shape: Shape) -> str:
    """Attention and a perceptron, each with a norm and a residual."""
    before = m.rng.random() < 0.7
    for number, block in enumerate((attention, mlp), 1):
        name = f"norm{number}"
        y = norm(m.inside(name), x, shape) if before else x
        x = m.op("Add", x, block(m.inside(block.__name__), y, shape))
        x = x if before else norm(m.inside(name), x, shape)
    return x


SEQUENCE_BLOCKS: tuple[Block, ...] = (transformer, residual, residual, mlp, norm)


def image_block(m: Layers, x: str, shape: Shape) -> str:
    """Convolutions with norms, and a residual around them."""
    y = x
    for number in range(m.rng.randint(1, 2)):
        y = _convolved(m.inside(f"conv{number}"), y, shape.width)
        y = _normed(m.inside(f"bn{number}"), y, shape.width)
        if m.rng.random() < 0.8:
            y = m.op("Relu", y)
    way = m.rng.random()
    if way < 0.3:
        y = m.op("Mul", y, _excited(m.inside("se"), y, shape.width))
    return m.op("Add", x, y) if m.rng.random() < 0.6 else y


def _convolved(m: Layers, x: str, width: int) -> str:
    size = m.rng.choice((1, 3, 3))
    groups = m.rng.choice((1, 1, width))
    operands = [x, m.weight("weight", width, width // groups, size, size)]
    if m.rng.random() < 0.5:
        operands.append(m.weight("bias", width))
    pads = [size // 2] * 4
    return m.op("Conv", *operands, kernel_shape=[size, size], pads=pads, group=groups)


def _normed(m: Layers, x: str, width: int) -> str:
    way = m.rng.random()
    scale = m.weight("weight", width, around=1)
    bias = m.weight("bias", width)
    if way < 0.7:
        mean = m.weight("running_mean", width)
        spread = m.builder.rng.random(width).astype(np.float32) + 0.5
        variance = m.stored("running_var", spread)
        return m.op("BatchNormalization", x, scale, bias, mean, variance)
    if way < 0.85:
        return m.op("InstanceNormalization", x, scale, bias)
    groups = m.rng.choice([n for n in (1, 2, width) if width % n == 0])
    flat = m.op("Reshape", x, m.ints(0, groups, -1))
    ones = m.const(np.ones(groups)), m.const(np.zeros(groups))
    plain = m.op("InstanceNormalization", flat, *ones, epsilon=1e-5)
    y = m.op("Reshape", plain, m.op("Shape", x))
    column = np.asarray([width, 1, 1], np.int64)
    scale, bias = (m.op("Reshape", w, m.const(column, np.int64)) for w in (scale, bias))
    return m.op("Add", m.op("Mul", y, scale), bias)


def _excited(m: Layers, x: str, width: int) -> str:
    pooled = m.op("GlobalAveragePool", x)
    down = m.op("Conv", pooled, m.weight("down", 2, width, 1, 1), m.weight("b", 2))
    up = m.op("Conv", m.op("Relu", down), m.weight("up", width, 2, 1, 1))
    return m.op("Sigmoid", up)


def image_stage(m: Layers, x: str, shape: Shape) -> str:
    """One block, and seldom a pooling that keeps the size."""
    y = image_block(m, x, shape)
    if m.rng.random() < 0.15:
        pads = [1, 1, 1, 1]
        y = m.op("MaxPool", y, kernel_shape=[3, 3], pads=pads, strides=[1, 1])
    return y
