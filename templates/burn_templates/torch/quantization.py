"""Helpers for quantized numbers: (x - zero_point) * scale."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _spread(values: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """Return scales or zero points in a shape that broadcasts to x."""
    if values.numel() == 1:
        return values.reshape(())
    axis = axis % x.ndim if x.ndim > 1 else 0
    if values.ndim == 1 and not block_size:
        return values.reshape(-1, *[1] * (x.ndim - axis - 1))
    extent = x.shape[axis]
    size = block_size or -(-extent // values.shape[axis])
    return values.repeat_interleave(size, axis).narrow(axis, 0, extent)


def _dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    axis: int = 1,
    block_size: int = 0,
) -> Tensor:
    """Return (x - zero_point) * scale; half types are rounded once."""
    work = torch.float32 if dtype.itemsize < 4 else dtype
    y = x.to(work)
    if zero_point is not None:
        y = y - _spread(zero_point, x, axis, block_size).to(work)
    return (y * _spread(scale, x, axis, block_size).to(work)).to(dtype)


def _saturated(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x as dtype, in its range; a NaN becomes the least integer."""
    if dtype.is_floating_point:
        largest = torch.finfo(dtype).max
        return x.clamp(-largest, largest).to(dtype)
    limits = torch.iinfo(dtype)
    return x.nan_to_num(nan=limits.min).clamp(limits.min, limits.max).to(dtype)


def _quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.uint8,
    axis: int = 1,
    block_size: int = 0,
) -> Tensor:
    """Return x / scale + zero_point, rounded to the nearest even integer."""
    quotient = x.float() / _spread(scale, x, axis, block_size).float()
    if not dtype.is_floating_point:
        quotient = torch.round(quotient)
    if zero_point is not None:
        quotient = quotient + _spread(zero_point, x, axis, block_size).float()
    return _saturated(quotient, dtype)


def _quantization_range(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scale and the uint8 zero point that make the most of 8 bits."""
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = torch.where(high == low, torch.ones_like(low), (high - low) / 255)
    return scale, torch.round((-low / scale).clamp(0, 255)).to(torch.uint8)


def _shifted(x: Tensor, zero_point: Tensor | None) -> Tensor:
    """Return x - zero_point in float64, which has every sum of products of 8 bits."""
    if zero_point is None:
        return x.double()
    one = zero_point.reshape(()) if zero_point.numel() == 1 else zero_point
    return x.double() - one.double()


def _rows(values: Tensor | None) -> Tensor | None:
    """Return numbers for rows [n] as a column [n, 1]."""
    if values is None or values.ndim != 1 or values.numel() == 1:
        return values
    return values.unsqueeze(1)


def _channels(values: Tensor | None, rank: int) -> Tensor | None:
    """Return numbers for channels [c] as [c, 1, ...]."""
    if values is None or values.numel() == 1:
        return values
    return values.reshape(-1, *[1] * (rank - 1))


def _integer_matmul(
    x: Tensor,
    y: Tensor,
    x_zero_point: Tensor | None = None,
    y_zero_point: Tensor | None = None,
) -> Tensor:
    """Return (x - x_zero_point) @ (y - y_zero_point) of integers, in int32."""
    total = _shifted(x, _rows(x_zero_point)) @ _shifted(y, y_zero_point)
    return total.long().to(torch.int32)


def _convolved(x: Tensor, weight: Tensor, padding: Any, **options: Any) -> Tensor:
    """Return the convolution over one, two or three axes."""
    rank = x.ndim - 2
    sides = (padding,) * rank if isinstance(padding, int) else padding
    pairs = [(side, side) if isinstance(side, int) else side for side in sides]
    x = F.pad(x, [side for pair in reversed(pairs) for side in pair])
    return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, weight, **options)


def _integer_conv(
    x: Tensor,
    weight: Tensor,
    x_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    *,
    padding: Any = 0,
    **options: Any,
) -> Tensor:
    """Return the convolution of integers less their zero points, in int32."""
    taps = _shifted(weight, _channels(weight_zero_point, weight.ndim))
    total = _convolved(_shifted(x, x_zero_point), taps, padding, **options)
    return total.round().long().to(torch.int32)


def _quantized_matmul(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    scale: Tensor,
    zero_point: Tensor | None,
    *,
    dtype: torch.dtype = torch.uint8,
) -> Tensor:
    """Return the product of two quantized matrices, quantized."""
    total = _shifted(x, _rows(x_zero_point)) @ _shifted(y, y_zero_point)
    rows = _rows(x_scale)
    factor = (x_scale if rows is None else rows).float() * y_scale.float()
    out = torch.round(total * (factor / scale.float()).double())
    return _saturated(out if zero_point is None else out + zero_point, dtype)


def _quantized_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    weight: Tensor,
    weight_scale: Tensor,
    weight_zero_point: Tensor | None,
    scale: Tensor,
    zero_point: Tensor | None,
    bias: Tensor | None = None,
    *,
    padding: Any = 0,
    dtype: torch.dtype = torch.uint8,
    **options: Any,
) -> Tensor:
    """Return the convolution of two quantized tensors, quantized."""
    taps = _shifted(weight, _channels(weight_zero_point, weight.ndim))
    total = _convolved(_shifted(x, x_zero_point), taps, padding, **options)
    if bias is not None:
        total = total + bias.double().reshape(-1, *[1] * (x.ndim - 2))
    each = weight_scale.float()
    if each.numel() > 1:
        each = each.reshape(-1, *[1] * (x.ndim - 2))
    factor = x_scale.float().reshape(()) * each / scale.float().reshape(())
    out = torch.round(total * factor.double())
    return _saturated(out if zero_point is None else out + zero_point, dtype)


class _DynamicQuantizedLinear(nn.Module):
    """x @ w + bias in integers of 8 bits, with the scale of x from its range."""

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
        super().__init__()
        each = (out_features,) if per_channel else ()
        shape = in_features, out_features
        self.weight = nn.Buffer(torch.zeros(shape, dtype=weight_dtype))
        self.scale = nn.Buffer(torch.ones(each))
        zeros = torch.zeros(each, dtype=weight_dtype) if zero_point else None
        self.register_buffer("zero_point", zeros)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        scale, shift = _quantization_range(x)
        integers = _quantize(x, scale, shift)
        total = _integer_matmul(integers, self.weight, shift, self.zero_point)
        y = total.float() * (scale * self.scale)
        return y if self.bias is None else y + self.bias


class _DynamicQuantizedConv(nn.Module):
    """A convolution in integers of 8 bits, with the scale of x from its range."""

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
        zero_point: bool = False,
        weight_dtype: torch.dtype = torch.int8,
    ) -> None:
        super().__init__()
        kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else kernel_size
        shape = out_channels, in_channels // groups, *kernel
        self.weight = nn.Buffer(torch.zeros(shape, dtype=weight_dtype))
        self.scale = nn.Buffer(torch.ones(()))
        zeros = torch.zeros((), dtype=weight_dtype) if zero_point else None
        self.register_buffer("zero_point", zeros)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.padding = padding
        self.steps = {"stride": stride, "dilation": dilation, "groups": groups}

    def forward(self, x: Tensor) -> Tensor:
        scale, shift = _quantization_range(x)
        operands = _quantize(x, scale, shift), self.weight, shift, self.zero_point
        total = _integer_conv(*operands, padding=self.padding, **self.steps)
        y = total.float() * (scale * self.scale)
        return y if self.bias is None else y + _channels(self.bias, x.ndim - 1)


def _unpack(x: Tensor, bits: int) -> Tensor:
    """Return unsigned integers of few bits, the lowest bits of each byte first."""
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=x.device)
    return ((x.unsqueeze(-1) >> shifts) & (2**bits - 1)).flatten(-2)


class _QuantizedLinear(nn.Module):
    """x @ w.mT + bias, with w in blocks of integers of 2, 4 or 8 bits."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        bits: int = 4,
        block_size: int = 32,
        zero_point: str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.in_features, self.bits, self.block_size = in_features, bits, block_size
        blocks = -(-in_features // block_size)
        shape, each = (out_features, blocks), block_size * bits // 8
        self.weight = nn.Buffer(torch.zeros(*shape, each, dtype=torch.uint8))
        self.scale = nn.Buffer(torch.ones(shape, dtype=dtype))
        zeros = torch.zeros(shape, dtype=dtype) if zero_point == "float" else None
        if zero_point == "packed":
            packed = out_features, -(-blocks * bits // 8)
            zeros = torch.zeros(packed, dtype=torch.uint8)
        self.register_buffer("zero_point", zeros)
        self.bias = None
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        integers = _unpack(self.weight.flatten(1), self.bits)[:, : self.in_features]
        zeros = self.zero_point
        if zeros is None:
            zeros = torch.full_like(self.scale, 2 ** (self.bits - 1))
        elif zeros.dtype == torch.uint8:
            zeros = _unpack(zeros, self.bits)[:, : self.scale.shape[1]]
        options = {"dtype": x.dtype, "block_size": self.block_size}
        return F.linear(
            x, _dequantize(integers, self.scale, zeros, **options), self.bias
        )
