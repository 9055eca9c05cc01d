"""Float operators of static quantization: rounded values and quantized weights.

Passes replace ``QuantizeLinear`` and ``DequantizeLinear`` by them, so that each is a
module of ``burn.nn`` with its scale and zero point.
"""

from __future__ import annotations

from collections.abc import Sequence

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.conv import Conv, Convolving
from burn_ir.ops.dynamic_quantize import quantized_layer
from burn_ir.ops.fused import Linear
from burn_ir.ops.indexing import Gather
from burn_ir.ops.options import non_default
from burn_ir.ops.quantize import DequantizeLinear, QuantizeLinear, expect_dtype

#: Dtypes of integers whose quantization is symmetric if zero points are 0.
SIGNED = (dtypes.int4, dtypes.int8, dtypes.int16)
#: Dtypes of quantized weights.
WEIGHTS = (
    *SIGNED,
    *(dtypes.uint4, dtypes.uint8, dtypes.uint16),
    *(dtypes.float8_e4m3fn, dtypes.float8_e5m2),
)


@operator
class QuantizeDequantize(Op, onnx="QuantizeDequantize", versions=(1,), domain="burn"):
    """``x``, quantized and dequantized by one scale and zero point.

    ``output_dtype`` is that of the integers if there is no zero point.
    """

    output_dtype: int = 0

    def infer(self, x: Type, scale: Type, zero_point: Type | None = None) -> Type:
        for operand in (scale, zero_point):
            if operand is not None and operand.shape != ():
                raise InvalidOperand(f"expected one number, got {operand.name}")
        expect_dtype(scale, (x.dtype,), "a scale")
        integers = self._quantizer().infer(x, scale, zero_point)
        return DequantizeLinear().infer(integers, scale, zero_point)

    def lower(self, x: Value, scale: Value, zero_point: Value = None) -> Value:
        integers = self._quantizer().lower(x, scale, zero_point)
        return DequantizeLinear().lower(integers, scale, zero_point)

    def layer(
        self, x: Type, scale: Type, zero_point: Type | None = None
    ) -> Layer | None:
        if scale.known is None or zero_point is not None and zero_point.known is None:
            return None
        integers = self._quantizer().target(zero_point)
        arguments = () if integers == dtypes.uint8 else (integers,)
        options = non_default(
            zero_point=(zero_point is not None, True),
            dtype=(scale.dtype, dtypes.float32),
        )
        weights = {"scale": 1} if zero_point is None else {"scale": 1, "zero_point": 2}
        tables = frozenset({"zero_point"} & weights.keys())
        return Layer("QuantizeDequantize", arguments, options, weights, tables=tables)

    def _quantizer(self) -> QuantizeLinear:
        return QuantizeLinear(output_dtype=self.output_dtype)


def dequantized_type(weight: Type, scale: Type, zero_point: Type | None) -> Type:
    """Return the type of a dequantized weight.

    The scale is one number, or one for each index of the first axis.

    Raises:
        InvalidOperand: the operands do not fit.
    """
    expect_dtype(weight, WEIGHTS, "a quantized weight")
    expect_dtype(scale, (dtypes.float32, dtypes.float64), "a scale")
    if scale.rank > 1:
        raise InvalidOperand(f"expected one number or a vector, got {scale.name}")
    return DequantizeLinear(axis=0).infer(weight, scale, zero_point)


def dequantized(weight: Value, scale: Value, zero_point: Value) -> Value:
    """Return a dequantized weight."""
    return DequantizeLinear(axis=0).lower(weight, scale, zero_point)


def weight_quantized_layer(
    op: Linear | Conv, x: Type, operands: Sequence[Type | None]
) -> Layer | None:
    """Return the layer of quantized weights for the float operator ``op``, or None.

    ``operands`` are the types of its weight, scale, zero point and bias.
    """
    weight, scale, zero_point, bias = (*operands, None, None)[:4]
    if not _are_stored(weight, scale, zero_point, bias):
        return None
    assert weight is not None and scale is not None
    layer = op.layer(x, weight, bias)
    if layer is None:
        return None
    options = {**layer.options, **non_default(per_channel=(scale.rank > 0, False))}
    stored = weight, scale, zero_point, bias
    return quantized_layer(f"WeightQuantized{layer.name}", layer.args, options, stored)


def _are_stored(*operands: Type | None) -> bool:
    """Return whether a layer of float32 can have these operands: constants.

    The zero point has the shape of the scale.
    """
    _, scale, zero_point = operands[:3]
    assert scale is not None
    if zero_point is not None and zero_point.shape != scale.shape:
        return False
    if scale.dtype != dtypes.float32:
        return False
    return all(t is None or t.known is not None for t in operands)


@operator
class WeightQuantizedLinear(
    Op, onnx="WeightQuantizedLinear", versions=(1,), domain="burn"
):
    """``Linear`` with a quantized weight [out, in]."""

    def infer(
        self,
        x: Type,
        weight: Type,
        scale: Type,
        zero_point: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        return Linear().infer(x, dequantized_type(weight, scale, zero_point), bias)

    def lower(
        self,
        x: Value,
        weight: Value,
        scale: Value,
        zero_point: Value = None,
        bias: Value = None,
    ) -> Value:
        return Linear().lower(x, dequantized(weight, scale, zero_point), bias)

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        return weight_quantized_layer(Linear(), x, operands)


@operator
class WeightQuantizedConv(
    Convolving, Op, onnx="WeightQuantizedConv", versions=(1,), domain="burn"
):
    """``Conv`` with a quantized weight."""

    def infer(
        self,
        x: Type,
        weight: Type,
        scale: Type,
        zero_point: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        weight = dequantized_type(weight, scale, zero_point)
        return self.conv().infer(x, weight, bias)

    def lower(
        self,
        x: Value,
        weight: Value,
        scale: Value,
        zero_point: Value = None,
        bias: Value = None,
    ) -> Value:
        return self.conv().lower(x, dequantized(weight, scale, zero_point), bias)

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        return weight_quantized_layer(self.conv(), x, operands)


@operator
class WeightQuantizedEmbedding(
    Op, onnx="WeightQuantizedEmbedding", versions=(1,), domain="burn"
):
    """The dequantized rows ``indices`` of a quantized matrix with one scale."""

    def infer(
        self, indices: Type, weight: Type, scale: Type, zero_point: Type | None = None
    ) -> Type:
        if weight.rank != 2 or scale.shape != ():
            shown = f"{weight.name} and {scale.name}"
            raise InvalidOperand(f"expected a matrix and one number, got {shown}")
        return Gather().infer(dequantized_type(weight, scale, zero_point), indices)

    def lower(
        self, indices: Value, weight: Value, scale: Value, zero_point: Value = None
    ) -> Value:
        rows = ops.take(weight, indices)
        return DequantizeLinear().lower(rows, scale, zero_point)

    def layer(self, indices: Type, *operands: Type | None) -> Layer | None:
        weight, scale, zero_point = (*operands, None)[:3]
        if not _are_stored(weight, scale, zero_point) or indices.known is not None:
            return None
        assert weight is not None and weight.known is not None
        names = ("weight", "scale", "zero_point")[: 2 if zero_point is None else 3]
        options = non_default(zero_point=(zero_point is not None, True))
        parameters = {name: position for position, name in enumerate(names, 1)}
        tables = frozenset({"weight", "zero_point"} & parameters.keys())
        arguments = weight.known.shape
        if weight.dtype != dtypes.uint8:
            arguments += (weight.dtype,)
        name = "WeightQuantizedEmbedding"
        return Layer(name, arguments, options, parameters, tables=tables)
