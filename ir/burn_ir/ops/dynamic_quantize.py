"""Convolutions of floats in integers, which quantize their input by its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.options import non_default
from burn_ir.ops.quantize import Integers, expect_dtype, shift
from burn_ir.ops.support import present_operands
from burn_ir.ops.window import Ints


@operator
class DynamicQuantizeConv(
    Integers, Op, onnx="DynamicQuantizeConv", versions=(1,), domain="burn"
):
    """``Conv`` of ``x`` in uint8 and a weight in 8 bits.

    ``scale`` and ``zero_point`` are those of the weight, one number each; ``bias`` has
    a number for each output channel.
    """

    auto_pad: str = "NOTSET"
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def infer(
        self,
        x: Type,
        weight: Type,
        scale: Type,
        zero_point: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        expect_dtype(x, (dtypes.float32, dtypes.float64), "numbers")
        expect_dtype(scale, (x.dtype,), "a scale")
        for operand in (scale, zero_point):
            if operand is not None and operand.shape != ():
                raise InvalidOperand(f"expected one number, got {operand.name}")
        if zero_point is not None:
            expect_dtype(zero_point, (weight.dtype,), "a zero point")
        result = self.convolved(x.with_dtype(dtypes.uint8), weight)
        return result.with_dtype(x.dtype)

    def lower(
        self,
        x: Value,
        weight: Value,
        scale: Value,
        zero_point: Value = None,
        bias: Value = None,
    ) -> Value:
        x_scale, x_shift = ops.quantization_range(x)
        integers = ops.quantize(x, x_scale, x_shift)
        zeros = present_operands(shift(zero_point))
        steps = self.steps(x, weight)
        total = ops.integer_conv(integers, weight, x_shift, *zeros, **steps)
        result = total.cast(x.dtype) * (x_scale * scale)
        if bias is None:
            return result
        axes = tuple(range(1, len(weight.shape) - 1))
        return result + bias.unsqueeze(axes)

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        weight, scale, zero_point, bias = (*operands, None, None)[:4]
        if weight is None or scale is None or scale.known is None:
            return None
        conv = self.conv().layer(x, weight, bias)
        if conv is None or x.dtype != dtypes.float32:
            return None
        if zero_point is not None and zero_point.known is None:
            return None
        operands = (weight, scale, zero_point, bias)
        name = f"DynamicQuantized{conv.name}"
        return quantized_layer(name, conv.args, conv.options, operands)


def quantized_layer(
    name: str,
    sizes: tuple[Any, ...],
    options: Mapping[str, Any],
    operands: Sequence[Type | None],
) -> Layer:
    """Return the layer of the class ``name`` with quantized weights.

    ``operands`` are the types of its weight, scale, zero point and bias.
    """
    names = ("weight", "scale", "zero_point", "bias")
    types = dict(zip(names, operands, strict=True))
    weights = {
        parameter: position
        for position, (parameter, t) in enumerate(types.items(), 1)
        if t is not None
    }
    weight = types["weight"]
    assert weight is not None
    own = non_default(
        zero_point=("zero_point" in weights, False),
        weight_dtype=(weight.dtype, dtypes.int8),
    )
    tables = frozenset({"weight", "zero_point"} & weights.keys())
    return Layer(name, sizes, {**options, **own}, weights, tables=tables)
