"""Simulated quantization: rounded values, and float layers of quantized weights."""

from burn import ops
from burn.box import Buffer, Parameter
from burn.dtypes import DType, float32, int8, uint8
from burn.nn import init
from burn.nn.module import Module
from burn.nn.quantized.windows import Windowed
from burn.ops.window import Extents, Padding
from burn.tensor import Tensor


class QuantizeDequantize(Module):
    """``x`` rounded to the numbers that ``quantized_dtype`` represents.

    ``scale`` is one number of ``dtype``, the dtype of ``x``; with ``zero_point``,
    ``zero_point`` is one of ``quantized_dtype``. Numbers out of range are clipped. Has
    no gradient. Operators: ``QuantizeLinear`` and ``DequantizeLinear`` of ONNX.
    """

    def __init__(
        self,
        quantized_dtype: DType = uint8,
        zero_point: bool = True,
        *,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        self.quantized_dtype, self.dtype = quantized_dtype, dtype
        self.scale = Buffer(init.constant((), 1.0, dtype))
        self.zero_point = (
            Buffer(init.constant((), 0, quantized_dtype)) if zero_point else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        numbers = self.scale, self.zero_point
        integers, floats = self.quantized_dtype, self.dtype
        y = ops.quantize(x, *numbers, dtype=integers, precision=floats)
        return ops.dequantize(y, *numbers, dtype=floats)

    def describe(self) -> str:
        return f"{self.quantized_dtype}, zero_point={self.zero_point is not None}"


class _WeightQuantized(Module):
    """The base class: ``weight`` of integers, ``scale`` and ``zero_point``."""

    def __init__(
        self,
        shape: tuple[int, ...],
        per_channel: bool,
        zero_point: bool,
        weight_dtype: DType,
    ) -> None:
        super().__init__()
        each = shape[:1] if per_channel else ()
        self.weight = Buffer(init.constant(shape, 0, weight_dtype))
        self.scale = Buffer(init.constant(each, 1.0))
        self.zero_point = (
            Buffer(init.constant(each, 0, weight_dtype)) if zero_point else None
        )

    def dequantized(self) -> Tensor:
        """Return the weight as float32."""
        return ops.dequantize(self.weight, self.scale, self.zero_point, axis=0)


class WeightQuantizedLinear(_WeightQuantized):
    """:class:`Linear` with a weight in integers, dequantized when it is called.

    ``weight`` [out, in] is of ``weight_dtype``; ``scale`` and, with ``zero_point``,
    ``zero_point`` are one number, or [out] with ``per_channel``. Compiled models
    compute the layer in integers if ``x`` is dequantized (:class:`QuantizeDequantize`).
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
        shape = out_features, in_features
        super().__init__(shape, per_channel, zero_point, weight_dtype)
        self.in_features, self.out_features = in_features, out_features
        self.bias = Parameter(init.constant((out_features,), 0.0)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return ops.linear(x, self.dequantized(), self.bias)

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class WeightQuantizedEmbedding(_WeightQuantized):
    """:class:`Embedding` with a table in integers, dequantized after the lookup.

    ``weight`` [rows, features] is of ``weight_dtype``; ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        weight_dtype: DType = uint8,
        *,
        zero_point: bool = True,
    ) -> None:
        shape = num_embeddings, embedding_dim
        super().__init__(shape, False, zero_point, weight_dtype)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim

    def __call__(self, indices: Tensor) -> Tensor:
        rows = ops.take(self.weight, indices)
        return ops.dequantize(rows, self.scale, self.zero_point)

    def describe(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class _WeightQuantizedConv(Windowed, _WeightQuantized):
    """The base class of convolutions of ``rank`` axes with quantized weights."""

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
        zero_point: bool = False,
        weight_dtype: DType = int8,
    ) -> None:
        shape = self.weight_shape(in_channels, out_channels, kernel_size, groups)
        super().__init__(shape, per_channel, zero_point, weight_dtype)
        sizes = in_channels, out_channels, kernel_size
        self.set_window(*sizes, stride, padding, dilation, groups)
        self.bias = Parameter(init.constant((out_channels,), 0.0)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return ops.conv(
            *(x, self.dequantized(), self.bias),
            **self.window,
        )


class WeightQuantizedConv1d(_WeightQuantizedConv):
    """:class:`Conv1d` with a weight in integers, dequantized when it is called.

    ``weight`` [O, C/groups, K] is of ``weight_dtype``; ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number, or [O] with ``per_channel``.
    """

    rank = 1


class WeightQuantizedConv2d(_WeightQuantizedConv):
    """:class:`Conv2d` with a weight in integers, dequantized when it is called.

    ``weight`` [O, C/groups, KH, KW] is of ``weight_dtype``; ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number, or [O] with ``per_channel``.
    """

    rank = 2


class WeightQuantizedConv3d(_WeightQuantizedConv):
    """:class:`Conv3d` with a weight in integers, dequantized when it is called.

    ``weight`` [O, C/groups, KD, KH, KW] is of ``weight_dtype``; ``scale`` and, with
    ``zero_point``, ``zero_point`` are one number, or [O] with ``per_channel``.
    """

    rank = 3
