"""Layers with quantized weights, for inference."""

from typing import Literal

from burn import ops
from burn.box import Buffer, Parameter
from burn.dtypes import DType, float32, int8, uint8
from burn.nn import init
from burn.nn.module import Module
from burn.nn.quantized.windows import Windowed
from burn.ops.window import Extents, Padding
from burn.tensor import Tensor


class QuantizedLinear(Module):
    """``x @ w.mT + bias``, with ``w`` in integers of 2, 4 or 8 bits.

    Called with [..., in] it returns [..., out]. Each ``block_size`` neighboring numbers
    of a row of ``w`` have a scale. ``weight`` is uint8 [out, blocks, block_size bits /
    8], ``scale`` [out, blocks] of ``dtype``. ``zero_point`` tells how the zero points
    are stored: ``"packed"`` as the weight, [out, blocks bits / 8]; ``"float"`` as the
    scale; or None if all are ``2 ** (bits - 1)``. Operator: ``MatMulNBits`` of
    onnxruntime.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        bits: int = 4,
        block_size: int = 32,
        zero_point: Literal["packed", "float"] | None = None,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.bits, self.block_size = bits, block_size
        blocks = -(-in_features // block_size)
        shape = out_features, blocks, block_size * bits // 8
        self.weight = Buffer(init.constant(shape, 0, uint8))
        self.scale = Buffer(init.constant((out_features, blocks), 1.0, dtype))
        self.zero_point: Buffer | None = None
        if zero_point == "packed":
            packed = out_features, -(-blocks * bits // 8)
            self.zero_point = Buffer(init.constant(packed, 0, uint8))
        elif zero_point == "float":
            self.zero_point = Buffer(init.constant((out_features, blocks), 0.0, dtype))
        self.bias = (
            Parameter(init.constant((out_features,), 0.0, dtype)) if bias else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        terms = self.zero_point, None, self.bias
        return ops.matmul_nbits(x, self.weight, self.scale, *terms, bits=self.bits)

    def describe(self) -> str:
        sizes = f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"
        return f"{sizes}, bits={self.bits}, block_size={self.block_size}"


class DynamicQuantizedLinear(Module):
    """``x @ w + bias`` in integers of 8 bits, with the scale of ``x`` from its range.

    Called with [..., in] it returns [..., out]. ``weight`` [in, out] is of
    ``weight_dtype``; ``scale`` and, with ``zero_point``, ``zero_point`` are one number,
    or [out] with ``per_channel``. Operators: ``DynamicQuantizeLinear`` and
    ``MatMulInteger`` of ONNX.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        per_channel: bool = False,
        zero_point: bool = False,
        weight_dtype: DType = int8,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        each = (out_features,) if per_channel else ()
        shape = in_features, out_features
        self.weight = Buffer(init.constant(shape, 0, weight_dtype))
        self.scale = Buffer(init.constant(each, 1.0))
        self.zero_point = (
            Buffer(init.constant(each, 0, weight_dtype)) if zero_point else None
        )
        self.bias = Parameter(init.constant((out_features,), 0.0)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        scale, shift = ops.quantization_range(x)
        integers = ops.quantize(x, scale, shift)
        total = ops.integer_matmul(integers, self.weight, shift, self.zero_point)
        y = total.cast(x.dtype) * (scale * self.scale)
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class _DynamicQuantizedConv(Windowed):
    """The base class of dynamically quantized convolutions of ``rank`` axes."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Padding = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        zero_point: bool = False,
        weight_dtype: DType = int8,
    ) -> None:
        super().__init__()
        sizes = in_channels, out_channels, kernel_size
        self.set_window(*sizes, stride, padding, dilation, groups)
        shape = self.weight_shape(*sizes, groups)
        self.weight = Buffer(init.constant(shape, 0, weight_dtype))
        self.scale = Buffer(init.constant((), 1.0))
        self.zero_point = (
            Buffer(init.constant((), 0, weight_dtype)) if zero_point else None
        )
        self.bias = Parameter(init.constant((out_channels,), 0.0)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        scale, shift = ops.quantization_range(x)
        total = ops.integer_conv(
            *(ops.quantize(x, scale, shift), self.weight, shift, self.zero_point),
            **self.window,
        )
        y = total.cast(x.dtype) * (scale * self.scale)
        if self.bias is None:
            return y
        return y + self.bias.value.unsqueeze(tuple(range(1, self.rank + 1)))


class DynamicQuantizedConv1d(_DynamicQuantizedConv):
    """:class:`Conv1d` in integers of 8 bits, with the scale of ``x`` from its range.

    ``weight`` [O, C/groups, K] is of ``weight_dtype``, ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number.
    """

    rank = 1


class DynamicQuantizedConv2d(_DynamicQuantizedConv):
    """:class:`Conv2d` in integers of 8 bits, with the scale of ``x`` from its range.

    ``weight`` [O, C/groups, KH, KW] is of ``weight_dtype``, ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number.
    """

    rank = 2


class DynamicQuantizedConv3d(_DynamicQuantizedConv):
    """:class:`Conv3d` in integers of 8 bits, with the scale of ``x`` from its range.

    ``weight`` [O, C/groups, KD, KH, KW] is of ``weight_dtype``, ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number.
    """

    rank = 3
