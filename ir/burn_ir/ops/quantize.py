"""Quantization, dequantization and quantized products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.conv import Convolving, extents_like
from burn_ir.ops.matmul import MatMul
from burn_ir.ops.options import non_default
from burn_ir.ops.qlinear_layers import qlinear_layer
from burn_ir.ops.support import (
    are_unequal_numbers,
    element_type,
    present_operands,
    shape_of,
)
from burn_ir.static import static

#: Dtypes that can be quantized, and dtypes of scales.
NUMBERS = (
    dtypes.float32,
    dtypes.float64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.int32,
)
#: Dtypes of quantized values.
QUANTIZED = (
    *(dtypes.int2, dtypes.int4, dtypes.int8, dtypes.int16),
    *(dtypes.uint2, dtypes.uint4, dtypes.uint8, dtypes.uint16),
    *(d for d in dtypes.FLOAT8 if d != dtypes.float8_e8m0fnu),
)


def expect_dtype(x: Type, allowed: tuple[DType, ...], label: str) -> None:
    """Check that the dtype of ``x`` is among ``allowed``.

    Raises:
        InvalidOperand: it is not.
    """
    if x.dtype not in allowed:
        names = ", ".join(dtypes.name_of(d) for d in allowed)
        raise InvalidOperand(f"expected {label} of {names}, got {x.name}")


def check_pair(scale: Type, zero_point: Type | None, apart: bool = False) -> None:
    """Check that scale and zero point have compatible shapes.

    A vector of one number is equivalent to a scalar. With ``apart``, one may be a
    scalar where the other is a vector, as in onnxruntime.

    Raises:
        InvalidOperand: they have not.
    """
    if zero_point is None or scale.shape is None or zero_point.shape is None:
        return
    first, second = (() if s == (1,) else s for s in (scale.shape, zero_point.shape))
    if apart and () in (first, second):
        return
    if not _may_agree(first, second):
        raise InvalidOperand(
            f"expected a zero point of the shape of the scale, got {zero_point.name} "
            f"and {scale.name}"
        )


def _may_agree(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Return whether shapes may be equal, scalars and one-element vectors alike."""
    if () in (first, second):
        rest = first + second
        return not rest or (len(rest) == 1 and not isinstance(rest[0], int))
    return len(first) == len(second) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(first, second, strict=True)
    )


@dataclass(frozen=True)
class Granularity:
    """The scope of scales: per tensor, per axis, or per block."""

    axis: int
    block_size: int

    def check(self, x: Type, scale: Type, zero_point: Type | None) -> None:
        """Check that the operands match.

        Raises:
            InvalidOperand: they do not.
        """
        check_pair(scale, zero_point)
        if self.block_size < 0:
            raise InvalidOperand(
                f"expected a block_size of 0 or more, got {self.block_size}"
            )
        if x.shape is None or scale.shape is None or scale.shape in ((), (1,)):
            return
        if self.block_size or scale.rank > 1:
            self._check_blocks(x, scale)
            return
        axis = 0 if x.rank == 1 else x.axes(self.axis)[0]
        actual, expected = scale.dims[0], x.dims[axis]
        if are_unequal_numbers(actual, expected):
            raise InvalidOperand(
                f"expected {expected} scales for axis {self.axis} of {x.name}, "
                f"got {scale.name}"
            )

    def _check_blocks(self, x: Type, scale: Type) -> None:
        if scale.rank != x.rank:
            raise InvalidOperand(f"expected a scale of rank {x.rank}, got {scale.name}")
        axis = 0 if x.rank == 1 else x.axes(self.axis)[0]
        pairs = zip(x.dims, scale.dims, strict=True)
        for dimension, (extent, count) in enumerate(pairs):
            if not (isinstance(extent, int) and isinstance(count, int)):
                continue
            wanted = extent
            if dimension == axis:
                wanted = -(-extent // self.block_size) if self.block_size else count
            if count != wanted:
                raise InvalidOperand(
                    f"expected scales for blocks of {self.block_size} along axis "
                    f"{self.axis} of {x.name}, got {scale.name}"
                )

    def options(self, scale: Value) -> dict[str, Any]:
        """Return the keyword arguments of an operation that uses ``scale``."""
        if shape_of(scale) in ((), (1,)):
            return {}
        return non_default(axis=(self.axis, 1), block_size=(self.block_size, 0))


@operator
class QuantizeLinear(
    Op, onnx="QuantizeLinear", versions=(10, 13, 19, 21, 23, 24, 25, 28)
):
    axis: int = 1
    block_size: int = 0
    output_dtype: int = 0
    precision: int = 0
    saturate: int = 1

    def infer(self, x: Type, scale: Type, zero_point: Type | None = None) -> Type:
        expect_dtype(x, NUMBERS, "numbers")
        expect_dtype(scale, (*NUMBERS, dtypes.float8_e8m0fnu), "a scale")
        Granularity(self.axis, self.block_size).check(x, scale, zero_point)
        target = Type(self.target(zero_point))
        expect_dtype(target, QUANTIZED, "a quantized dtype")
        return x.with_dtype(target.dtype)

    def target(self, zero_point: Any) -> DType:
        """Return the dtype of the result."""
        asked = element_type(self.output_dtype) if self.output_dtype else None
        if zero_point is None:
            return asked or dtypes.uint8
        if asked is not None and asked != zero_point.dtype:
            raise InvalidOperand(
                f"expected a zero point of {dtypes.name_of(asked)}, the output_dtype, "
                f"got {dtypes.name_of(zero_point.dtype)}"
            )
        dtype: DType = zero_point.dtype
        return dtype

    def lower(self, x: Value, scale: Value, zero_point: Value = None) -> Value:
        target = self.target(zero_point)
        options = non_default(dtype=(target, dtypes.uint8))
        options |= Granularity(self.axis, self.block_size).options(scale)
        if dtypes.is_float(target):
            options |= non_default(saturate=(bool(self.saturate), True))
        options |= non_default(precision=(self.division(scale), dtypes.float32))
        return ops.quantize(x, scale, *present_operands(shift(zero_point)), **options)

    def division(self, scale: Any) -> DType:
        """Return the dtype of the quotient."""
        if self.precision:
            return element_type(self.precision)
        if scale.dtype not in NUMBERS[:4]:
            return dtypes.float32
        dtype: DType = scale.dtype
        return dtype


@operator
class DequantizeLinear(
    Op, onnx="DequantizeLinear", versions=(10, 13, 19, 21, 23, 24, 25, 28)
):
    axis: int = 1
    block_size: int = 0
    output_dtype: int = 0

    def infer(self, x: Type, scale: Type, zero_point: Type | None = None) -> Type:
        expect_dtype(x, (*QUANTIZED, dtypes.int32), "quantized numbers")
        expect_dtype(scale, (*NUMBERS[:4], dtypes.float8_e8m0fnu), "a scale")
        if zero_point is not None:
            expect_dtype(zero_point, (x.dtype,), "a zero point")
        Granularity(self.axis, self.block_size).check(x, scale, zero_point)
        target = scale.dtype
        if self.output_dtype:
            target = element_type(self.output_dtype)
        expect_dtype(Type(target), NUMBERS[:4], "a result")
        return x.with_dtype(target)

    def lower(self, x: Value, scale: Value, zero_point: Value = None) -> Value:
        target = element_type(self.output_dtype) if self.output_dtype else scale.dtype
        options = non_default(dtype=(target, dtypes.float32))
        options |= Granularity(self.axis, self.block_size).options(scale)
        return ops.dequantize(x, scale, *present_operands(shift(zero_point)), **options)


@operator
class DynamicQuantizeLinear(Op, onnx="DynamicQuantizeLinear", versions=(11,)):
    def infer(self, x: Type) -> tuple[Type, Type, Type]:
        expect_dtype(x, (dtypes.float32, dtypes.float64), "numbers")
        scale = Type(x.dtype, ())
        return x.with_dtype(dtypes.uint8), scale, scale.with_dtype(dtypes.uint8)

    def lower(self, x: Value) -> tuple[Value, Value, Value]:
        scale, zero_point = ops.quantization_range(x)
        return ops.quantize(x, scale, zero_point), scale, zero_point


@operator
class MatMulInteger(Op, onnx="MatMulInteger", versions=(10,)):
    def infer(
        self,
        x: Type,
        y: Type,
        x_zero_point: Type | None = None,
        y_zero_point: Type | None = None,
    ) -> Type:
        return product(x, y, x_zero_point, y_zero_point).with_dtype(dtypes.int32)

    def lower(
        self, x: Value, y: Value, x_zero_point: Value = None, y_zero_point: Value = None
    ) -> Value:
        zero_points = shift(x_zero_point), shift(y_zero_point)
        return ops.integer_matmul(x, y, *present_operands(*zero_points))


#: The dtypes of quantized matrices.
OCTETS = (
    *(dtypes.int8, dtypes.uint8),
    *(dtypes.float8_e4m3fn, dtypes.float8_e4m3fnuz),
    *(dtypes.float8_e5m2, dtypes.float8_e5m2fnuz),
)


def product(
    x: Type,
    y: Type,
    x_zero_point: Type | None = None,
    y_zero_point: Type | None = None,
    allowed: tuple[DType, ...] = (dtypes.int8, dtypes.uint8),
) -> Type:
    """Return the type of the product of quantized matrices, in the first's dtype.

    Raises:
        InvalidOperand: shapes or dtypes do not fit.
    """
    for operand, zero_point in ((x, x_zero_point), (y, y_zero_point)):
        expect_dtype(operand, allowed, "a quantized matrix")
        if zero_point is not None:
            expect_dtype(zero_point, (operand.dtype,), "a zero point")
    return MatMul().infer(x, y.with_dtype(x.dtype))


def shift(zero_point: Value) -> Value:
    """Return a zero point; None if it is known to be all zeros."""
    try:
        return zero_point if zero_point is None or static(zero_point).any() else None
    except Undecided:
        return zero_point


@operator
class QLinearMatMul(Op, onnx="QLinearMatMul", versions=(10, 21)):
    def infer(
        self,
        x: Type,
        x_scale: Type,
        x_zero_point: Type,
        y: Type,
        y_scale: Type,
        y_zero_point: Type,
        scale: Type,
        zero_point: Type,
    ) -> Type:
        check_pair(x_scale, x_zero_point, apart=True)
        check_pair(y_scale, y_zero_point, apart=True)
        expect_dtype(zero_point, OCTETS, "a zero point")
        result = product(x, y, x_zero_point, y_zero_point, OCTETS)
        return result.with_dtype(zero_point.dtype)

    def lower(self, *operands: Value) -> Value:
        options = non_default(dtype=(operands[-1].dtype, dtypes.uint8))
        return ops.quantized_matmul(*operands, **options)

    def layer(self, *operands: Type | None) -> Layer | None:
        weight = operands[3]
        if weight is None or weight.known is None or weight.known.ndim != 2:
            return None
        sizes = weight.known.shape
        return qlinear_layer("QLinearMatMul", sizes, {}, operands, sizes[1])


class Integers(Convolving):
    """Integer convolutions, with the attributes of ``Conv``."""

    def convolved(self, x: Type, weight: Type) -> Type:
        """Return the type of the result, with the dtype of ``x``."""
        for operand in (x, weight):
            expect_dtype(operand, OCTETS[:2], "8 bits")
        return self.conv().infer(x, weight.with_dtype(x.dtype))

    def steps(self, x: Value, weight: Value) -> dict[str, Any]:
        """Return the keyword arguments of the operation."""
        kernel = self.extents(weight)
        return self.conv().options(extents_like(x, kernel), kernel)


@operator
class ConvInteger(Integers, Op, onnx="ConvInteger", versions=(10,)):

    def infer(self, x: Type, weight: Type, *zero_points: Type | None) -> Type:
        for operand, zero_point in zip((x, weight), zero_points, strict=False):
            if zero_point is not None:
                expect_dtype(zero_point, (operand.dtype,), "a zero point")
        return self.convolved(x, weight).with_dtype(dtypes.int32)

    def lower(self, x: Value, weight: Value, *zero_points: Value) -> Value:
        steps = self.steps(x, weight)
        return ops.integer_conv(
            x, weight, *present_operands(*map(shift, zero_points)), **steps
        )


@operator
class QLinearConv(Integers, Op, onnx="QLinearConv", versions=(10,)):

    def infer(
        self,
        x: Type,
        x_scale: Type,
        x_zero_point: Type,
        weight: Type,
        weight_scale: Type,
        weight_zero_point: Type,
        scale: Type,
        zero_point: Type,
        bias: Type | None = None,
    ) -> Type:
        check_pair(weight_scale, weight_zero_point, apart=True)
        expect_dtype(zero_point, OCTETS[:2], "a zero point")
        if bias is not None:
            expect_dtype(bias, (dtypes.int32,), "a bias")
        return self.convolved(x, weight).with_dtype(zero_point.dtype)

    def lower(self, *operands: Value) -> Value:
        steps = self.steps(operands[0], operands[3])
        steps |= non_default(dtype=(operands[7].dtype, dtypes.uint8))
        return ops.quantized_conv(*present_operands(*operands), **steps)

    def layer(self, *operands: Type | None) -> Layer | None:
        x, weight, bias = operands[0], operands[3], (*operands, None)[8]
        assert x is not None and weight is not None
        conv = self.conv().layer(x, weight, bias)
        if conv is None:
            return None
        name = f"QLinear{conv.name}"
        return qlinear_layer(name, conv.args, conv.options, operands, conv.args[1])
