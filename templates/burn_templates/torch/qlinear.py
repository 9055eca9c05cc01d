"""Helpers for layers of quantized inputs, weights and results."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from burn_templates.torch.quantization import _quantized_conv, _quantized_matmul


class _QLinear(nn.Module):
    """The scales and zero points of input, weight and result."""

    def __init__(
        self,
        shape: tuple[int, ...],
        each: tuple[int, ...],
        x_dtype: torch.dtype,
        weight_dtype: torch.dtype,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.x_scale = nn.Buffer(torch.ones(()))
        self.x_zero_point = nn.Buffer(torch.zeros((), dtype=x_dtype))
        self.weight = nn.Buffer(torch.zeros(shape, dtype=weight_dtype))
        self.weight_scale = nn.Buffer(torch.ones(each))
        self.weight_zero_point = nn.Buffer(torch.zeros(each, dtype=weight_dtype))
        self.scale = nn.Buffer(torch.ones(()))
        self.zero_point = nn.Buffer(torch.zeros((), dtype=dtype))

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        weight = self.weight, self.weight_scale, self.weight_zero_point
        return *weight, self.scale, self.zero_point


class _QLinearMatMul(_QLinear):
    """x @ weight of quantized matrices, quantized again."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        per_channel: bool = False,
        x_dtype: torch.dtype = torch.uint8,
        weight_dtype: torch.dtype = torch.uint8,
        dtype: torch.dtype = torch.uint8,
    ) -> None:
        each = (out_features,) if per_channel else ()
        shape = in_features, out_features
        super().__init__(shape, each, x_dtype, weight_dtype, dtype)

    def forward(self, x: Tensor) -> Tensor:
        numbers = x, self.x_scale, self.x_zero_point, *self.weights()
        return _quantized_matmul(*numbers, dtype=self.dtype)


class _QLinearConv(_QLinear):
    """A convolution of a quantized input and weight, quantized again."""

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
        x_dtype: torch.dtype = torch.uint8,
        weight_dtype: torch.dtype = torch.uint8,
        dtype: torch.dtype = torch.uint8,
    ) -> None:
        kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else kernel_size
        shape = out_channels, in_channels // groups, *kernel
        each = (out_channels,) if per_channel else ()
        super().__init__(shape, each, x_dtype, weight_dtype, dtype)
        zeros = torch.zeros(out_channels, dtype=torch.int32) if bias else None
        self.register_buffer("bias", zeros)
        self.steps = {"stride": stride, "dilation": dilation, "groups": groups}
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        numbers = x, self.x_scale, self.x_zero_point, *self.weights()
        options = {"dtype": self.dtype, "padding": self.padding, **self.steps}
        return _quantized_conv(*numbers, self.bias, **options)
