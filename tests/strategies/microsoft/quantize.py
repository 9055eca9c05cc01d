"""Examples of onnxruntime's quantized operators."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn import dtypes
from burn.dtypes import DType
from tests.strategies.elementwise import broadcastable
from tests.strategies.quantize import (
    OCTETS,
    convolution,
    limits,
    matrices,
    numbers_of,
    octets,
    scales,
    zero_point,
)
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)

DOMAIN = "com.microsoft"


def granular(draw: Draw, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
    """The shape of a scale: one for all, or one along an axis, and attributes."""
    if draw(st.booleans()):
        return (), {}
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return (shape[axis],), {"axis": axis}


@case("QuantizeLinear", domain=DOMAIN)
def quantize_linear(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from([*OCTETS, dtypes.uint16, dtypes.int16]))
    shape = extents(draw)
    size, attrs = granular(draw, shape)
    operands = [
        *(floats(draw, shape) * np.float32(8), scales(draw, size)),
        numbers_of(draw, size, dtype),
    ]
    return Example(attrs, operands, smooth=False, resizable=not attrs)


@case("DequantizeLinear", domain=DOMAIN)
def dequantize_linear(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from([*OCTETS, dtypes.uint16, dtypes.int16]))
    shape = extents(draw)
    size, attrs = granular(draw, shape)
    x = numbers_of(draw, shape, dtype)
    operands = [x, scales(draw, size), numbers_of(draw, size, dtype)]
    return Example(attrs, operands, resizable=not attrs)


def parameters(draw: Draw, dtype: DType, factor: float = 1.0) -> tuple[Array, Array]:
    """A scale and a zero point of a whole tensor."""
    return scales(draw, (), factor=factor), zero_point(draw, dtype)


@case("QLinearAdd", "QLinearMul", domain=DOMAIN)
def binary(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    shape = extents(draw)
    x, y = (numbers_of(draw, s, dtype) for s in (shape, broadcastable(draw, shape)))
    operands: list[Array | None] = [
        *(x, *parameters(draw, dtype), y, *parameters(draw, dtype)),
        *parameters(draw, dtype, 4.0),
    ]
    return Example({}, operands, resizable=y.ndim > 1)


def unary(
    draw: Draw, attrs: Any, factor: float = 1.37, optional: bool = True
) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    x = numbers_of(draw, extents(draw), dtype)
    operands: list[Array | None] = [
        *(x, *parameters(draw, dtype), *parameters(draw, dtype, factor)),
    ]
    if optional and draw(st.booleans()):
        operands[2] = None
    return Example(attrs, operands)


@case("QLinearSigmoid", domain=DOMAIN)
def sigmoid(draw: Draw, version: int) -> Example:
    return unary(draw, {}, 0.05)


@case("QLinearLeakyRelu", domain=DOMAIN)
def leaky_relu(draw: Draw, version: int) -> Example:
    return unary(draw, {"alpha": draw(st.sampled_from([0.01, 0.21]))})


@case("QLinearSoftmax", domain=DOMAIN)
def softmax(draw: Draw, version: int) -> Example:
    attrs = {
        "axis": draw(st.integers(-3, 2)),
        "opset": draw(st.sampled_from([11, 13])),
    }
    dtype = draw(st.sampled_from(OCTETS))
    x = numbers_of(draw, extents(draw, least=2), dtype)
    # onnxruntime has this output scale in mind, with which 1 is out of range.
    output = np.array(1 / 256, np.float32), np.array(dtypes.integer_limits(dtype).min)
    operands = [x, *parameters(draw, dtype, 0.05), output[0], output[1].astype(dtype)]
    return Example(attrs, operands)


@case("QLinearReduceMean", domain=DOMAIN)
def reduce_mean(draw: Draw, version: int) -> Example:
    axes = draw(st.sampled_from([(1,), (-1, 0), (0, 2)]))
    attrs = {"axes": axes, "keepdims": draw(st.integers(0, 1))}
    example = unary(draw, attrs, optional=False)
    x, scale, shift, y_scale, y_shift = (np.asarray(a) for a in example.inputs)
    mean = (x.astype(np.float64) - shift).mean(axes, keepdims=bool(attrs["keepdims"]))
    y = np.rint(mean * (scale.astype(np.float64) / y_scale)) + y_shift
    low, high = limits(x.dtype)
    return replace(example, expected=[np.clip(y, low, high).astype(x.dtype)])


@case("QLinearGlobalAveragePool", domain=DOMAIN)
def global_average_pool(draw: Draw, version: int) -> Example:
    attrs = {"channels_last": draw(st.integers(0, 1))}
    return with_halves(draw, unary(draw, attrs, optional=False))


def with_halves(draw: Draw, example: Example) -> Example:
    """``example``, perhaps with one scale for both sides: averages half way occur."""
    if not draw(st.booleans()):
        return example
    x, scale, zero, _, result_zero = example.inputs
    return replace(example, inputs=[x, scale, zero, scale, result_zero])


@case("QLinearAveragePool", domain=DOMAIN)
def average_pool(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    x = numbers_of(draw, (2, 5, 6, 7), dtype)
    attrs: dict[str, Any] = {
        "kernel_shape": (2, draw(st.integers(3, 4))),
        "count_include_pad": draw(st.integers(0, 1)),
        "channels_last": draw(st.integers(0, 1)),
    }
    if draw(st.booleans()):
        attrs |= {"strides": (2, 1), "pads": (1, 0, 1, 2)}
    operands = [x, *parameters(draw, dtype), *parameters(draw, dtype, 1.37)]
    names = {0: ("batch", 5, 6, 7)}
    return with_halves(draw, Example(attrs, operands, symbols=names))


@case("QLinearWhere", domain=DOMAIN)
def where(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    shape = extents(draw)
    condition = integers(draw, broadcastable(draw, shape), 0, 1, bool)
    x, y = (numbers_of(draw, s, dtype) for s in (shape, broadcastable(draw, shape)))
    operands = [
        *(condition, x, *parameters(draw, dtype), y, *parameters(draw, dtype)),
        *parameters(draw, dtype),
    ]
    # onnxruntime wants all of them stored.
    stored = frozenset([2, 3, 5, 6, 7, 8])
    return Example({}, operands, always_stored=stored, resizable=y.ndim > 1)


@case("QLinearConcat", domain=DOMAIN)
def concat(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    shape = list(extents(draw))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    operands: list[Array] = [*parameters(draw, dtype)]
    for extent in (2, 3):
        shape[axis] = extent
        operands += [numbers_of(draw, tuple(shape), dtype), *parameters(draw, dtype)]
    return Example({"axis": axis}, operands, stored=frozenset([0, 1, 3, 4, 6, 7]))


@case("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_to_float(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, y = matrices(draw, second)
    each = (y.shape[-1],) if y.ndim == 2 and draw(st.booleans()) else ()
    operands: list[Array | None] = [x, y, scales(draw, ()), scales(draw, each)]
    if draw(st.booleans()):
        operands += [zero_point(draw, dtypes.uint8), zero_point(draw, second, each)]
        if draw(st.booleans()):
            operands.append(floats(draw, y.shape[-1:]))
    return Example({}, operands, resizable=False, atol=1e-4)


@case("QAttention", domain=DOMAIN)
def attention(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    batch, (rows, past, inner) = 2, extents(draw, 3, 3, most=4)
    heads, size = extents(draw, 2, 2, most=3)
    features = 3 * heads * size
    total = rows + past
    operands: list[Array | None] = [
        octets(draw, (batch, rows, inner), dtypes.uint8),
        octets(draw, (inner, features), second),
        floats(draw, (features,)),
        *(scales(draw, ()), scales(draw, ())),
        integers(draw, (batch, total), 0, 1, np.int32),
        *(zero_point(draw, dtypes.uint8), zero_point(draw, second)),
        floats(draw, (2, batch, heads, past, size)),
    ]
    attrs: dict[str, Any] = {"num_heads": heads}
    if draw(st.booleans()):
        attrs["unidirectional"] = 1
    names = {i: x.shape for i, x in enumerate(operands) if x is not None}
    return Example(attrs, operands, 2, symbols=names, rtol=1e-3, atol=1e-4)


@case("DynamicQuantizeLSTM", domain=DOMAIN)
def lstm(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    time, batch, inner, hidden = extents(draw, 4, 4, most=4)
    each = (count, 4 * hidden) if draw(st.booleans()) else (count,)
    shift = zero_point(draw, second, (count,))
    if second == dtypes.int8:  # onnxruntime has no other
        shift = np.zeros_like(shift)
    # A zero point for each channel is one number: onnxruntime refuses others.
    shifts = shift if len(each) == 1 else np.full(each, shift[0])
    operands: list[Array | None] = [
        floats(draw, (time, batch, inner)),
        octets(draw, (count, inner, 4 * hidden), second),
        octets(draw, (count, hidden, 4 * hidden), second),
        floats(draw, (count, 8 * hidden)) if draw(st.booleans()) else None,
        None,
        *(floats(draw, (count, batch, hidden)), floats(draw, (count, batch, hidden))),
        None,
        *(
            scales(draw, each, factor=0.1),
            shifts,
            scales(draw, each, factor=0.1),
            shifts,
        ),
    ]
    names = {i: x.shape for i, x in enumerate(operands) if x is not None}
    attrs = {"direction": direction, "hidden_size": hidden}
    stored = frozenset([1, 2, 8, 9, 10, 11])
    # A rounding that falls to the other side moves a result by a step of 8 bits.
    return Example(
        attrs, operands, 3, stored, stored, symbols=names, smooth=False, atol=5e-3
    )


@case("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_matmul(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, y = matrices(draw, second)
    given = floats(draw, x.shape)
    each = (y.shape[-1],) if y.ndim == 2 and draw(st.booleans()) else ()
    operands: list[Array | None] = [given, y, scales(draw, each)]
    if draw(st.booleans()):
        operands.append(zero_point(draw, second, each))
        if draw(st.booleans()):
            operands.append(floats(draw, y.shape[-1:]))
    return Example({}, operands, smooth=False, resizable=False, atol=1e-4)


@case("MatMulInteger16", domain=DOMAIN)
def matmul_integer16(draw: Draw, version: int) -> Example:
    *batch, rows, inner, columns = extents(draw, 4, 5)
    x = integers(draw, (*batch, rows, inner), -9000, 9000, np.int16)
    return Example({}, [x, integers(draw, (inner, columns), -9000, 9000, np.int16)])


@case("MulInteger", domain=DOMAIN)
def mul_integer(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(OCTETS))
    shape = extents(draw)
    x, y = (numbers_of(draw, s, dtype) for s in (shape, broadcastable(draw, shape)))
    x_shift, y_shift = zero_point(draw, dtype), zero_point(draw, dtype)
    shifted = [(x, x_shift), (y, y_shift)]
    product = np.prod([a.astype(np.int32) - b for a, b in shifted[:1]], axis=0)
    expected = product * (y.astype(np.int32) - y_shift)
    operands = [x, x_shift, y, y_shift]
    wide = expected.astype(np.int32)
    return Example({}, operands, expected=[wide], resizable=y.ndim > 1)


@case("QGemm", domain=DOMAIN)
def gemm(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    rows, inner, columns = extents(draw, 3, 3)
    attrs = {
        "transA": draw(st.integers(0, 1)),
        "transB": draw(st.integers(0, 1)),
        "alpha": draw(st.sampled_from([1.0, 0.7])),
    }
    x = octets(draw, (rows, inner), dtypes.uint8)
    y = octets(draw, (inner, columns), second)
    each = (columns,) if draw(st.booleans()) else ()
    operands: list[Array | None] = [
        *(x.T.copy() if attrs["transA"] else x, *parameters(draw, dtypes.uint8)),
        y.T.copy() if attrs["transB"] else y,
        *(scales(draw, each), zero_point(draw, second, each)),
        integers(draw, (columns,), -900, 900, np.int32),
    ]
    if draw(st.booleans()):
        operands += parameters(draw, dtypes.uint8, 3.0)
    return Example(attrs, operands, resizable=False)


@case("QLinearConv", domain=DOMAIN)
def conv(draw: Draw, version: int) -> Example:
    x, weight, attrs = convolution(draw, dtypes.int8)
    if draw(st.booleans()):
        attrs["channels_last"] = 1
        x = x.transpose(0, 2, 3, 1).copy()
    each = weight.shape[:1] if draw(st.booleans()) else ()
    operands = [
        *(x, *parameters(draw, dtypes.uint8)),
        *(weight, scales(draw, each), np.zeros(each, np.int8)),
        *parameters(draw, dtypes.uint8, 3.0),
    ]
    return Example(attrs, operands, resizable=False)


@case("MatMulNBits", domain=DOMAIN)
def matmul_nbits(draw: Draw, version: int) -> Example:
    bits = draw(st.sampled_from([2, 4, 8]))
    size, blocks = draw(st.sampled_from([16, 32])), draw(st.integers(1, 3))
    rows, lacking = draw(st.integers(1, 5)), draw(st.integers(0, 7))
    columns = size * blocks - lacking
    packed = integers(draw, (rows, blocks, size * bits // 8), 0, 255, np.uint8)
    operands: list[Array | None] = [
        floats(draw, (*extents(draw, 2, 3), columns)),
        packed,
        scales(draw, (rows * blocks,)),
    ]
    kind = draw(
        st.sampled_from(["", "packed", "float"] if bits == 4 else ["", "packed"])
    )
    if kind == "packed":
        width = -(-blocks * bits // 8)
        operands.append(integers(draw, (rows * width,), 0, 255, np.uint8))
    elif kind == "float":
        operands.append(np.abs(floats(draw, (rows * blocks,))))
    if draw(st.booleans()):  # matrices, a row for each output
        operands[2:] = [x.reshape(rows, -1) for x in operands[2:] if x is not None]
    attrs = {"K": columns, "N": rows, "bits": bits, "block_size": size}
    names = {0: ("a", "b", "c", columns)[-operands[0].ndim :]}  # type: ignore[union-attr]
    names |= {i: x.shape for i, x in enumerate(operands) if i and x is not None}
    return Example(attrs, operands, symbols=names, rtol=1e-4, atol=1e-4)


@case("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(draw: Draw, version: int) -> Example:
    bits, size, blocks = draw(st.sampled_from([4, 8])), 16, draw(st.integers(1, 3))
    count = draw(st.integers(2, 6))
    octets = (count, blocks * size * bits // 8)
    operands: list[Array | None] = [
        integers(draw, octets, 0, 255, np.uint8),
        integers(draw, extents(draw, 1, 3), 0, count - 1),
        scales(draw, (count, blocks)),
    ]
    if draw(st.booleans()):
        width = -(-blocks * bits // 8)
        operands.append(integers(draw, (count, width), 0, 255, np.uint8))
    attrs = {"bits": bits, "block_size": size, "gather_axis": 0, "quantize_axis": 1}
    return Example(
        attrs,
        operands,
        resizable=False,
        always_stored=frozenset({0, len(operands) - 1} - {2}),
    )
