"""Examples of float operators with quantized weights, and of rounded activations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn import dtypes
from tests.strategies.quantize import OCTETS, convolution, octets, scales, zero_point
from tests.strategies.registry import Array, Draw, Example, case, extents, floats


@case("QuantizeDequantize", domain="burn")
def quantize_dequantize(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw)) * 4
    dtype = draw(st.sampled_from(OCTETS))
    operands: list[Array | None] = [x, scales(draw, ())]
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        operands.append(zero_point(draw, dtype))
    elif dtype == dtypes.int8:
        attrs["output_dtype"] = 3
    return Example(attrs, operands, discrete=frozenset({0, 1}), resizable=False)


def weight_scales(draw: Draw, weight: Array) -> list[Array | None]:
    """Scale and zero point of a weight: one number, or one for each output."""
    each = weight.shape[:1] if draw(st.booleans()) else ()
    if draw(st.booleans()):
        return [scales(draw, each), None]
    return [scales(draw, each), np.full(each, zero_point(draw, weight.dtype))]


@case("WeightQuantizedLinear", domain="burn")
def weight_quantized_linear(draw: Draw, version: int) -> Example:
    *batch, rows, inner, outer = extents(draw, 3, 5)
    weight = octets(draw, (outer, inner), draw(st.sampled_from(OCTETS)))
    x = floats(draw, (*batch, rows, inner))
    operands: list[Array | None] = [x, weight, *weight_scales(draw, weight)]
    if draw(st.booleans()):
        operands.append(floats(draw, (outer,)))
    return Example({}, operands, resizable=False, atol=1e-3)


@case("WeightQuantizedConv", domain="burn")
def weight_quantized_conv(draw: Draw, version: int) -> Example:
    x, weight, attrs = convolution(draw, draw(st.sampled_from(OCTETS)))
    numbers = weight_scales(draw, weight)
    operands: list[Array | None] = [floats(draw, x.shape), weight, *numbers]
    if draw(st.booleans()):
        operands.append(floats(draw, weight.shape[:1]))
    return Example(attrs, operands, resizable=False, atol=1e-3)


@case("WeightQuantizedEmbedding", domain="burn")
def weight_quantized_embedding(draw: Draw, version: int) -> Example:
    rows, features, count = extents(draw, 3, 3)
    weight = octets(draw, (rows, features), draw(st.sampled_from(OCTETS)))
    indices = draw(st.lists(st.integers(0, rows - 1), min_size=count, max_size=count))
    operands: list[Array | None] = [np.array(indices, np.int64), weight]
    operands.append(scales(draw, ()))
    if draw(st.booleans()):
        operands.append(zero_point(draw, weight.dtype))
    return Example({}, operands, resizable=False)
