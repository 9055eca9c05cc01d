"""onnxruntime's products and convolutions of quantized tensors."""

from __future__ import annotations

from typing import Any, Literal

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.activation import outgrows
from burn_ir.ops.conv import Convolving, extents_like
from burn_ir.ops.dynamic_quantize import quantized_layer
from burn_ir.ops.microsoft.attention import FILTER, Attention
from burn_ir.ops.microsoft.quantize import DOMAIN, expect_octets
from burn_ir.ops.options import non_default
from burn_ir.ops.quantize import QLinearConv, expect_dtype, product, shift
from burn_ir.ops.support import present_operands
from burn_ir.types import broadcast


def _scaled(result: Type, *scales: Type) -> Type:
    """Return the type of ``result`` times scales, which broadcast to it.

    Raises:
        InvalidOperand: one does not.
    """
    shape = broadcast(result, *scales)
    if shape is not None and any(outgrows(result, scale) for scale in scales):
        shown = " and ".join(scale.name for scale in scales)
        raise InvalidOperand(f"expected scales that fit {result.name}, got {shown}")
    return result


@operator
class MatMulIntegerToFloat(
    Op, onnx="MatMulIntegerToFloat", domain=DOMAIN, versions=(1,)
):
    def infer(
        self,
        x: Type,
        y: Type,
        x_scale: Type,
        y_scale: Type,
        x_zero_point: Type | None = None,
        y_zero_point: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        expect_dtype(y_scale, (x_scale.dtype,), "a scale")
        result = product(x, y, x_zero_point, y_zero_point)
        return _scaled(result, x_scale, y_scale).with_dtype(x_scale.dtype)

    def lower(
        self,
        x: Value,
        y: Value,
        x_scale: Value,
        y_scale: Value,
        x_zero_point: Value = None,
        y_zero_point: Value = None,
        bias: Value = None,
    ) -> Value:
        zero_points = present_operands(shift(x_zero_point), shift(y_zero_point))
        total = ops.integer_matmul(x, y, *zero_points)
        if x_scale.dtype not in dtypes.HALVES:
            result = total.cast(x_scale.dtype) * (x_scale * y_scale)
        else:  # a sum may exceed the range of float16
            work = dtypes.float32
            scale = x_scale.cast(work) * y_scale.cast(work)
            result = (total.cast(work) * scale).cast(x_scale.dtype)
        return result if bias is None else result + bias


@operator
class QAttention(Op, onnx="QAttention", domain=DOMAIN, versions=(1,)):
    """Attention with a quantized projection."""

    num_heads: int
    do_rotary: Literal[0] = 0
    mask_filter_value: float = FILTER
    past_present_share_buffer: Literal[0] = 0
    scale: float = 0.0
    unidirectional: Literal[0, 1] = 0
    results: int = 1

    def infer(
        self,
        x: Type,
        weight: Type,
        bias: Type,
        x_scale: Type,
        weight_scale: Type,
        mask: Type | None = None,
        x_zero_point: Type | None = None,
        weight_zero_point: Type | None = None,
        past: Type | None = None,
    ) -> tuple[Type, ...]:
        product(x, weight, x_zero_point, weight_zero_point)
        real = x.with_dtype(bias.dtype), weight.with_dtype(bias.dtype)
        return self._real().infer(*real, bias, mask, past)

    def lower(
        self,
        x: Value,
        weight: Value,
        bias: Value,
        x_scale: Value,
        weight_scale: Value,
        mask: Value = None,
        x_zero_point: Value = None,
        weight_zero_point: Value = None,
        past: Value = None,
    ) -> Value:
        operands = (x, weight, x_scale, weight_scale, x_zero_point, weight_zero_point)
        joint = MatMulIntegerToFloat().lower(*operands, bias)
        return self._real().attend(joint, x.shape, mask, past)

    def _real(self) -> Attention:
        """Return the attention operator without quantization."""
        return Attention(
            num_heads=self.num_heads,
            mask_filter_value=self.mask_filter_value,
            scale=self.scale,
            unidirectional=self.unidirectional,
            results=self.results,
        )


@operator
class DynamicQuantizeMatMul(
    Op, onnx="DynamicQuantizeMatMul", domain=DOMAIN, versions=(1,)
):
    def infer(
        self,
        x: Type,
        y: Type,
        y_scale: Type,
        y_zero_point: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        expect_dtype(x, (dtypes.float32, dtypes.float64), "numbers")
        octets = x.with_dtype(dtypes.uint8)
        result = product(octets, y, None, y_zero_point)
        return _scaled(result, y_scale).with_dtype(x.dtype)

    def lower(
        self,
        x: Value,
        y: Value,
        y_scale: Value,
        y_zero_point: Value = None,
        bias: Value = None,
    ) -> Value:
        scale, zero_point = ops.quantization_range(x)
        octets = ops.quantize(x, scale, zero_point)
        rest = present_operands(shift(y_zero_point))
        total = ops.integer_matmul(octets, y, zero_point, *rest)
        result = total.cast(x.dtype) * (scale * y_scale)
        return result if bias is None else result + bias

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        weight, scale, zero_point, bias = (*operands, *(None,) * 3)[:4]
        present = [t for t in (weight, scale, zero_point, bias) if t is not None]
        if any(t.known is None for t in present) or weight is None or scale is None:
            return None
        if x.dtype != dtypes.float32 or weight.rank != 2 or scale.rank > 1:
            return None
        inner, outer = weight.dims
        if zero_point is not None and zero_point.shape != scale.shape:
            return None
        if scale.rank and scale.shape != (outer,):
            return None
        if bias is not None and bias.shape != (outer,):
            return None
        options = non_default(
            bias=(bias is not None, True), per_channel=(scale.rank == 1, False)
        )
        operands = (weight, scale, zero_point, bias)
        return quantized_layer(
            "DynamicQuantizedLinear", (inner, outer), options, operands
        )


@operator
class MatMulInteger16(Op, onnx="MatMulInteger16", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, y: Type) -> Type:
        words = (dtypes.int16, dtypes.uint16)
        return product(x, y, allowed=words).with_dtype(dtypes.int32)

    def lower(self, x: Value, y: Value) -> Value:
        return ops.integer_matmul(x, y)


@operator
class MulInteger(Op, onnx="MulInteger", domain=DOMAIN, versions=(1,)):
    def infer(
        self,
        x: Type,
        x_zero_point: Type | None,
        y: Type,
        y_zero_point: Type | None = None,
    ) -> Type:
        expect_octets(x, x_zero_point, y, y_zero_point)
        return Type(dtypes.int32, broadcast(x, y))

    def lower(
        self, x: Value, x_zero_point: Value, y: Value, y_zero_point: Value = None
    ) -> Value:
        return _centered(x, x_zero_point) * _centered(y, y_zero_point)


def _centered(x: Value, zero_point: Value) -> Value:
    wide = x.cast(dtypes.int32)
    if shift(zero_point) is None:
        return wide
    return wide - zero_point.cast(dtypes.int32)


@operator
class QGemm(Op, onnx="QGemm", domain=DOMAIN, versions=(1,)):
    alpha: float = 1.0
    transA: Literal[0, 1] = 0  # noqa: N815  ONNX's name
    transB: Literal[0, 1] = 0  # noqa: N815

    def infer(
        self,
        x: Type,
        x_scale: Type,
        x_zero_point: Type,
        y: Type,
        y_scale: Type,
        y_zero_point: Type,
        bias: Type | None = None,
        scale: Type | None = None,
        zero_point: Type | None = None,
    ) -> Type:
        if bias is not None:
            expect_dtype(bias, (dtypes.int32,), "a bias")
        left = _onnx_weight_type(x) if self.transA else x
        right = _onnx_weight_type(y) if self.transB else y
        result = product(left, right, x_zero_point, y_zero_point)
        if zero_point is not None:
            return result.with_dtype(zero_point.dtype)
        return result.with_dtype(x_scale.dtype if scale is None else dtypes.uint8)

    def lower(
        self,
        x: Value,
        x_scale: Value,
        x_zero_point: Value,
        y: Value,
        y_scale: Value,
        y_zero_point: Value,
        bias: Value = None,
        scale: Value = None,
        zero_point: Value = None,
    ) -> Value:
        left, right = x.mT if self.transA else x, y.mT if self.transB else y
        zero_points = present_operands(shift(x_zero_point), shift(y_zero_point))
        total = ops.integer_matmul(left, right, *zero_points)
        total = total if bias is None else total + bias
        factor = x_scale * y_scale
        factor = factor if self.alpha == 1 else factor * self.alpha
        result = total.cast(x_scale.dtype) * factor
        if scale is None:
            return result
        options: dict[str, Any] = {}
        if zero_point is not None:
            options = non_default(dtype=(zero_point.dtype, dtypes.uint8))
        return ops.quantize(
            result, scale, *present_operands(shift(zero_point)), **options
        )


def _onnx_weight_type(x: Type) -> Type:
    return x if x.shape is None else x.with_shape(x.shape[::-1])


@operator
class MicrosoftQLinearConv(
    Convolving, Op, onnx="QLinearConv", domain=DOMAIN, versions=(1,)
):
    channels_last: int = 0

    def infer(self, x: Type, *others: Type) -> Type:
        if not self.channels_last or x.shape is None:
            return self._standard().infer(x, *others)
        dims: tuple[Dim, ...] = (x.shape[0], x.shape[-1], *x.shape[1:-1])
        result = self._standard().infer(x.with_shape(dims), *others)
        if result.shape is None:
            return result
        return result.with_shape((result.shape[0], *result.shape[2:], result.shape[1]))

    def lower(self, x: Value, *others: Value) -> Value:
        if not self.channels_last:
            return self._standard().lower(x, *others)
        kernel = self._standard().extents(others[2])
        dims = extents_like(x, kernel)
        rank = len(dims)
        shape = (dims[0], dims[-1], *dims[1:-1])
        steps = self._standard().conv().options(shape, kernel)
        steps |= non_default(dtype=(others[6].dtype, dtypes.uint8))
        first = x.permute(0, rank - 1, *range(1, rank - 1))
        y = ops.quantized_conv(first, *present_operands(*others), **steps)
        return y.permute(0, *range(2, rank), 1)

    def _standard(self) -> QLinearConv:
        attrs = self.attrs()
        del attrs["channels_last"]
        return QLinearConv(**attrs)
