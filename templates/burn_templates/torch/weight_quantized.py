"""Helpers for float layers with quantized weights, and for quantized activations."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from burn_templates.torch.quantization import (
    _channels,
    _convolved,
    _dequantize,
    _quantize,
)


class _QuantizeDequantize(nn.Module):
    """x rounded to the numbers that a quantized dtype represents."""

    def __init__(
        self, quantized_dtype: torch.dtype = torch.uint8, zero_point: bool = True
    ) -> None:
        super().__init__()
        self.quantized_dtype = quantized_dtype
        self.scale = nn.Buffer(torch.ones(()))
        zeros = torch.zeros((), dtype=quantized_dtype) if zero_point else None
        self.register_buffer("zero_point", zeros)

    def forward(self, x: Tensor) -> Tensor:
        dtype = self.quantized_dtype
        integers = _quantize(x, self.scale, self.zero_point, dtype=dtype)
        return _dequantize(integers, self.scale, self.zero_point)


class _WeightQuantized(nn.Module):
    """The weight of a layer in integers, with one scale or one for each row."""

    def __init__(
        self,
        shape: tuple[int, ...],
        per_channel: bool,
        zero_point: bool,
        weight_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        each = shape[:1] if per_channel else ()
        self.weight = nn.Buffer(torch.zeros(shape, dtype=weight_dtype))
        self.scale = nn.Buffer(torch.ones(each))
        zeros = torch.zeros(each, dtype=weight_dtype) if zero_point else None
        self.register_buffer("zero_point", zeros)

    def dequantized(self) -> Tensor:
        return _dequantize(self.weight, self.scale, self.zero_point, axis=0)


class _WeightQuantizedLinear(_WeightQuantized):
    """x @ w.mT + bias, with w in integers."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        per_channel: bool = False,
        zero_point: bool = False,
        weight_dtype: torch.dtype = torch.int8,
    ) -> None:
        shape = out_features, in_features
        super().__init__(shape, per_channel, zero_point, weight_dtype)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.dequantized(), self.bias)


class _WeightQuantizedEmbedding(_WeightQuantized):
    """Rows of a table in integers, dequantized after the lookup."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        weight_dtype: torch.dtype = torch.uint8,
        *,
        zero_point: bool = True,
    ) -> None:
        shape = num_embeddings, embedding_dim
        super().__init__(shape, False, zero_point, weight_dtype)

    def forward(self, indices: Tensor) -> Tensor:
        return _dequantize(self.weight[indices], self.scale, self.zero_point)


class _WeightQuantizedConv(_WeightQuantized):
    """A convolution with a weight in integers."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        rank: int,
        per_channel: bool = False,
        zero_point: bool = False,
        weight_dtype: torch.dtype = torch.int8,
    ) -> None:
        kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else kernel_size
        shape = out_channels, in_channels // groups, *kernel
        super().__init__(shape, per_channel, zero_point, weight_dtype)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.padding = padding
        self.steps = {"stride": stride, "dilation": dilation, "groups": groups}

    def forward(self, x: Tensor) -> Tensor:
        y = _convolved(x, self.dequantized(), self.padding, **self.steps)
        return y if self.bias is None else y + _channels(self.bias, x.ndim - 1)
