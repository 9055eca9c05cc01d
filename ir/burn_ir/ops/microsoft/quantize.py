"""onnxruntime's operators on quantized tensors: dequantize, compute, requantize."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.conv import extents_like
from burn_ir.ops.options import non_default, one
from burn_ir.ops.pool import AveragePool
from burn_ir.ops.quantize import DequantizeLinear, QuantizeLinear, expect_dtype, shift
from burn_ir.ops.shape import Concat
from burn_ir.ops.support import axes_from, present_operands
from burn_ir.ops.window import Ints
from burn_ir.types import broadcast

DOMAIN = "com.microsoft"
OCTETS = (dtypes.int8, dtypes.uint8)


def expect_octets(*operands: Type | None) -> None:
    """Check that all present operands have one dtype of 8 bits.

    Raises:
        InvalidOperand: they are not.
    """
    present = [t for t in operands if t is not None]
    for operand in present:
        expect_dtype(operand, OCTETS, "8 bits")
        expect_dtype(operand, (present[0].dtype,), "one dtype")


def expect_single(*operands: Type | None) -> None:
    """Check that all present scales and zero points are single numbers.

    Raises:
        InvalidOperand: one has more axes or elements.
    """
    for operand in operands:
        if operand is None or operand.shape is None or not operand.shape:
            continue
        count = operand.shape[0]
        if operand.rank > 1 or (isinstance(count, int) and count != 1):
            raise InvalidOperand(f"expected one number, got {operand.name}")


def real(x: Value, scale: Value, zero_point: Value) -> Value:
    """Return the dequantized values."""
    return ops.dequantize(x, scale, *present_operands(shift(zero_point)))


def quantized(y: Value, scale: Value, zero_point: Value, like: Value) -> Value:
    """Return ``y`` quantized to the dtype of ``like``."""
    options = non_default(dtype=(like.dtype, dtypes.uint8))
    return ops.quantize(y, scale, *present_operands(shift(zero_point)), **options)


def quantized_sum(y: Value, scale: Value, zero_point: Value, like: Value) -> Value:
    """Return ``y`` quantized, rounded after the zero point is added in float32.

    Ties, including those from rounding of the sum, go to the even integer, as in
    onnxruntime.
    """
    zero_point = shift(zero_point)
    if zero_point is None:
        return quantized(y, scale, None, like)
    return quantized(y / scale + zero_point.cast(dtypes.float32), 1.0, None, like)


@operator
class MicrosoftQuantizeLinear(Op, onnx="QuantizeLinear", domain=DOMAIN, versions=(1,)):
    axis: int | None = None

    def infer(self, x: Type, scale: Type, zero_point: Type | None = None) -> Type:
        return self._standard().infer(x, scale, zero_point)

    def lower(self, x: Value, scale: Value, zero_point: Value = None) -> Value:
        return self._standard().lower(x, scale, zero_point)

    def _standard(self) -> QuantizeLinear:
        return QuantizeLinear(axis=1 if self.axis is None else self.axis)


@operator
class MicrosoftDequantizeLinear(
    Op, onnx="DequantizeLinear", domain=DOMAIN, versions=(1,)
):
    axis: int | None = None

    def infer(self, x: Type, scale: Type, zero_point: Type | None = None) -> Type:
        return self._standard().infer(x, scale, zero_point)

    def lower(self, x: Value, scale: Value, zero_point: Value = None) -> Value:
        return self._standard().lower(x, scale, zero_point)

    def _standard(self) -> DequantizeLinear:
        return DequantizeLinear(axis=1 if self.axis is None else self.axis)


class Binary:
    """An operator on two quantized operands with broadcasting."""

    def infer(
        self,
        x: Type,
        x_scale: Type,
        x_zero_point: Type | None,
        y: Type,
        y_scale: Type,
        y_zero_point: Type | None,
        scale: Type,
        zero_point: Type | None = None,
    ) -> Type:
        expect_octets(x, x_zero_point, y, y_zero_point, zero_point)
        expect_single(x_scale, x_zero_point, y_scale, y_zero_point, scale, zero_point)
        return Type(x.dtype, broadcast(x, y))


@operator
class QLinearAdd(Binary, Op, onnx="QLinearAdd", domain=DOMAIN, versions=(1,)):
    def lower(self, *operands: Value) -> Value:
        total = real(*operands[:3]) + real(*operands[3:6])
        return quantized_sum(total, *_output_quantization(operands[6:]), operands[0])


@operator
class QLinearMul(Binary, Op, onnx="QLinearMul", domain=DOMAIN, versions=(1,)):
    def lower(self, *operands: Value) -> Value:
        product = real(*operands[:3]) * real(*operands[3:6])
        return quantized_sum(product, *_output_quantization(operands[6:]), operands[0])


def _output_quantization(operands: Sequence[Value]) -> tuple[Value, Value]:
    """Return the final scale and zero point, which may be missing."""
    return operands[0], operands[1] if len(operands) > 1 else None


class Unary:
    """An operator on one quantized operand."""

    def infer(
        self,
        x: Type,
        x_scale: Type,
        x_zero_point: Type | None,
        scale: Type,
        zero_point: Type | None = None,
    ) -> Type:
        expect_octets(x, x_zero_point, zero_point)
        expect_single(x_scale, x_zero_point, scale, zero_point)
        return x.with_shape(self.shape(x))

    def shape(self, x: Type) -> tuple[Dim, ...] | None:
        """Return the shape of the result."""
        return x.shape

    def lower(
        self,
        x: Value,
        x_scale: Value,
        x_zero_point: Value,
        scale: Value,
        zero_point: Value = None,
    ) -> Value:
        y = self.apply(real(x, x_scale, x_zero_point), x)
        return self.quantized(y, scale, zero_point, x)

    def quantized(
        self, y: Value, scale: Value, zero_point: Value, like: Value
    ) -> Value:
        """Return ``y`` quantized to the dtype of ``like``."""
        return quantized(y, scale, zero_point, like)

    def apply(self, y: Value, x: Value) -> Value:
        """Return the function of ``y``, the dequantized operand ``x``."""
        raise NotImplementedError


@operator
class QLinearSigmoid(Unary, Op, onnx="QLinearSigmoid", domain=DOMAIN, versions=(1,)):
    def apply(self, y: Value, x: Value) -> Value:
        return ops.sigmoid(y)


@operator
class QLinearLeakyRelu(
    Unary, Op, onnx="QLinearLeakyRelu", domain=DOMAIN, versions=(1,)
):
    alpha: float = 0.01

    def apply(self, y: Value, x: Value) -> Value:
        return ops.leaky_relu(y, **non_default(alpha=(self.alpha, 0.01)))


@operator
class QLinearSoftmax(Unary, Op, onnx="QLinearSoftmax", domain=DOMAIN, versions=(1,)):
    opset: int
    axis: int = -1

    def shape(self, x: Type) -> tuple[Dim, ...] | None:
        if x.shape is not None:
            x.axes(self.axis)
        return x.shape

    def apply(self, y: Value, x: Value) -> Value:
        axes: int | tuple[int, ...] = self.axis
        if self.opset < 13:  # over all axes from the given one on
            axes = axes_from(x, self.axis)
        return ops.softmax(y, **non_default(axis=(axes, -1)))


@operator
class QLinearReduceMean(
    Unary, Op, onnx="QLinearReduceMean", domain=DOMAIN, versions=(1,)
):
    axes: Ints
    keepdims: int

    def shape(self, x: Type) -> tuple[Dim, ...] | None:
        if x.shape is None:
            return None
        reduced = x.axes(self.axes)
        dims = [1 if i in reduced else d for i, d in enumerate(x.shape)]
        others = [d for i, d in enumerate(dims) if self.keepdims or i not in reduced]
        return tuple(others)

    def apply(self, y: Value, x: Value) -> Value:
        return y.mean(self.axes, keepdims=bool(self.keepdims))


@operator
class QLinearGlobalAveragePool(
    Unary, Op, onnx="QLinearGlobalAveragePool", domain=DOMAIN, versions=(1,)
):
    channels_last: int = 0

    def shape(self, x: Type) -> tuple[Dim, ...] | None:
        if x.shape is None:
            return None
        if x.rank < 3:
            raise InvalidOperand(f"expected rank 3 or more, got {x.name}")
        space = self._space(x.rank)
        return tuple(1 if i in space else d for i, d in enumerate(x.shape))

    def lower(
        self,
        x: Value,
        x_scale: Value,
        x_zero_point: Value,
        scale: Value,
        zero_point: Value = None,
    ) -> Value:
        # Integers are summed and scaled by one factor, as in onnxruntime, so that ties
        # between two results are exact.
        space = self._space(len(x.shape))
        shifts = present_operands(shift(x_zero_point))
        numbers = x.cast(dtypes.int32)
        for zero in shifts:
            numbers = numbers - zero.cast(dtypes.int32)
        total = numbers.sum(space, keepdims=True).cast(dtypes.float32)
        step = x_scale / (scale * prod(x.shape[axis] for axis in space))
        return quantized(total * step, 1.0, zero_point, x)

    def _space(self, rank: int) -> tuple[int, ...]:
        return tuple(range(1, rank - 1) if self.channels_last else range(2, rank))


@operator
class QLinearAveragePool(
    Unary, Op, onnx="QLinearAveragePool", domain=DOMAIN, versions=(1,)
):
    kernel_shape: Ints
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    channels_last: int = 0
    count_include_pad: int = 0
    pads: Ints | None = None
    strides: Ints | None = None

    def shape(self, x: Type) -> tuple[Dim, ...] | None:
        if x.shape is None or not self.channels_last:
            return self._pool().pooled(x).shape
        first = x.with_shape((x.shape[0], x.shape[-1], *x.shape[1:-1]))
        dims = self._pool().pooled(first).dims
        return (dims[0], *dims[2:], dims[1])

    def lower(self, x: Value, *parameters: Value) -> Value:
        if tuple(self._space(x)) == self.kernel_shape and "padding" not in (
            self._pool().geometry.options(self._space(x))
        ):
            # onnxruntime's other kernel, which rounds differently.
            whole = QLinearGlobalAveragePool(channels_last=self.channels_last)
            return whole.lower(x, *parameters)
        return super().lower(x, *parameters)

    def _space(self, x: Value) -> tuple[Any, ...]:
        dims = extents_like(x, (1, 1, *self.kernel_shape))
        return tuple(dims[1:-1] if self.channels_last else dims[2:])

    def quantized(
        self, y: Value, scale: Value, zero_point: Value, like: Value
    ) -> Value:
        return quantized_sum(y, scale, zero_point, like)

    def apply(self, y: Value, x: Value) -> Value:
        rank = len(self.kernel_shape) + 2
        options: dict[str, Any] = {"kernel_size": one(self.kernel_shape)}
        options |= self._pool().geometry.options(self._space(x))
        options |= non_default(count_include_pad=(bool(self.count_include_pad), False))
        if not self.channels_last:
            return ops.avg_pool(y, **options)
        first = y.permute(0, rank - 1, *range(1, rank - 1))
        return ops.avg_pool(first, **options).permute(0, *range(2, rank), 1)

    def _pool(self) -> AveragePool:
        return AveragePool(
            kernel_shape=self.kernel_shape,
            auto_pad=self.auto_pad,
            ceil_mode=self.ceil_mode,
            pads=self.pads,
            strides=self.strides,
        )


@operator
class QLinearWhere(Op, onnx="QLinearWhere", domain=DOMAIN, versions=(1,)):
    def infer(
        self,
        condition: Type,
        x: Type,
        x_scale: Type,
        x_zero_point: Type,
        y: Type,
        y_scale: Type,
        y_zero_point: Type,
        scale: Type,
        zero_point: Type,
    ) -> Type:
        expect_dtype(condition, (dtypes.bool_,), "a condition")
        expect_octets(x, x_zero_point, y, y_zero_point, zero_point)
        expect_single(x_scale, x_zero_point, y_scale, y_zero_point, scale, zero_point)
        return Type(x.dtype, broadcast(condition, x, y))

    def lower(self, condition: Value, *operands: Value) -> Value:
        chosen = ops.where(condition, real(*operands[:3]), real(*operands[3:6]))
        return quantized(chosen, *_output_quantization(operands[6:]), operands[0])


@operator
class QLinearConcat(Op, onnx="QLinearConcat", domain=DOMAIN, versions=(1,)):
    axis: int

    def infer(self, scale: Type, zero_point: Type, *operands: Type) -> Type:
        if not operands or len(operands) % 3:
            raise InvalidOperand(
                f"expected a scale and a zero point for each tensor, got "
                f"{len(operands)} operands"
            )
        expect_octets(zero_point, *operands[::3], *operands[2::3])
        expect_single(scale, zero_point, *operands[1::3], *operands[2::3])
        return Concat(axis=self.axis).infer(*operands[::3])

    def lower(self, scale: Value, zero_point: Value, *operands: Value) -> Value:
        parts = [real(*operands[i : i + 3]) for i in range(0, len(operands), 3)]
        joined = ops.concat(parts, **non_default(axis=(self.axis, 0)))
        return quantized(joined, scale, zero_point, zero_point)
