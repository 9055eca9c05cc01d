"""Layers of quantized inputs, weights and results: the QOperator form of ONNX."""

from typing import TypeAlias

from burn import ops
from burn.box import Buffer
from burn.dtypes import DType, int32, uint8
from burn.nn import init
from burn.nn.module import Module
from burn.nn.quantized.windows import Windowed
from burn.ops.window import Extents, Padding
from burn.tensor import Tensor

#: An input, then its scale and zero point, those of the weight, and the result's.
_Operands: TypeAlias = tuple[
    Tensor, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer
]


class _QLinear(Module):
    """The base class: scales and zero points of input, weight and result.

    ``each`` is the shape of those of the weight.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        each: tuple[int, ...],
        x_dtype: DType,
        weight_dtype: DType,
        dtype: DType,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.x_scale = Buffer(init.constant((), 1.0))
        self.x_zero_point = Buffer(init.constant((), 0, x_dtype))
        self.weight = Buffer(init.constant(shape, 0, weight_dtype))
        self.weight_scale = Buffer(init.constant(each, 1.0))
        self.weight_zero_point = Buffer(init.constant(each, 0, weight_dtype))
        self.scale = Buffer(init.constant((), 1.0))
        self.zero_point = Buffer(init.constant((), 0, dtype))

    def operands(self, x: Tensor) -> _Operands:
        """Return the operands of a quantized product, without a bias."""
        weight = self.weight, self.weight_scale, self.weight_zero_point
        return x, self.x_scale, self.x_zero_point, *weight, self.scale, self.zero_point


class QLinearMatMul(_QLinear):
    """``x @ weight`` of quantized matrices, quantized again.

    Called with [..., in] of ``x_dtype`` it returns [..., out] of ``dtype``. ``weight``
    [in, out] is of ``weight_dtype``; its scale and zero point are one number, or [out]
    with ``per_channel``. Operator: ``QLinearMatMul`` of ONNX.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        per_channel: bool = False,
        x_dtype: DType = uint8,
        weight_dtype: DType = uint8,
        dtype: DType = uint8,
    ) -> None:
        each = (out_features,) if per_channel else ()
        shape = in_features, out_features
        super().__init__(shape, each, x_dtype, weight_dtype, dtype)
        self.in_features, self.out_features = in_features, out_features

    def __call__(self, x: Tensor) -> Tensor:
        return ops.quantized_matmul(*self.operands(x), dtype=self.dtype)

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}"


class _QLinearConv(Windowed, _QLinear):
    """The base class of quantized convolutions of ``rank`` axes."""

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
        per_channel: bool = False,
        x_dtype: DType = uint8,
        weight_dtype: DType = uint8,
        dtype: DType = uint8,
    ) -> None:
        shape = self.weight_shape(in_channels, out_channels, kernel_size, groups)
        each = (out_channels,) if per_channel else ()
        super().__init__(shape, each, x_dtype, weight_dtype, dtype)
        sizes = in_channels, out_channels, kernel_size
        self.set_window(*sizes, stride, padding, dilation, groups)
        self.bias = Buffer(init.constant((out_channels,), 0, int32)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return ops.quantized_conv(
            *self.operands(x),
            self.bias,
            **self.window,
            dtype=self.dtype,
        )


class QLinearConv1d(_QLinearConv):
    """:class:`Conv1d` of a quantized input and weight, quantized again.

    ``weight`` [O, C/groups, K] is of ``weight_dtype``, ``bias`` [O] of int32 in units
    of both scales. Operator: ``QLinearConv`` of ONNX.
    """

    rank = 1


class QLinearConv2d(_QLinearConv):
    """:class:`Conv2d` of a quantized input and weight, quantized again.

    ``weight`` [O, C/groups, KH, KW] is of ``weight_dtype``, ``bias`` [O] of int32 in
    units of both scales. Operator: ``QLinearConv`` of ONNX.
    """

    rank = 2


class QLinearConv3d(_QLinearConv):
    """:class:`Conv3d` of a quantized input and weight, quantized again.

    ``weight`` [O, C/groups, KD, KH, KW] is of ``weight_dtype``, ``bias`` [O] of int32
    in units of both scales. Operator: ``QLinearConv`` of ONNX.
    """

    rank = 3
