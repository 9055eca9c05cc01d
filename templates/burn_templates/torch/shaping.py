"""Helpers that rearrange, pad and reduce."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def _reshape(x: Tensor, shape: list[int] | tuple[int, ...]) -> Tensor:
    """Return x in shape, where an extent of 0 is that of x."""
    return x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)])


def _expand(x: Tensor, shape: list[int] | tuple[int, ...]) -> Tensor:
    """Return x broadcast to shape, where -1 and 1 keep the extent of x."""
    target = [1 if extent == -1 else extent for extent in shape]
    return x.expand(torch.broadcast_shapes(x.shape, target))


def _unsqueeze(x: Tensor, dims: list[int] | tuple[int, ...]) -> Tensor:
    """Return x with axes of extent 1 inserted, so that they stand at dims."""
    rank = x.ndim + len(dims)
    for dim in sorted(dim % rank for dim in dims):
        x = x.unsqueeze(dim)
    return x


def _reversed_axes(x: Tensor) -> Tensor:
    """Return x with its axes in reverse."""
    return x.permute(*range(x.ndim)[::-1])


def _pad(
    x: Tensor,
    pads: list[int] | tuple[int, ...],
    value: Tensor | float = 0,
    *,
    dims: list[int] | tuple[int, ...] | None = None,
    mode: str = "constant",
) -> Tensor:
    """Return x with pads elements before and after dims; negative ones crop."""
    axes = [dim % x.ndim for dim in (range(x.ndim) if dims is None else dims)]
    for number, axis in enumerate(axes):
        before, after = pads[number], pads[number + len(axes)]
        if mode == "constant":
            widths = [0, 0] * (x.ndim - 1 - axis) + [before, after]
            number_or_item = value.item() if isinstance(value, Tensor) else value
            x = F.pad(x, widths, value=number_or_item)
            continue
        x = x.narrow(axis, max(-before, 0), x.shape[axis] - max(-before, 0))
        x = x.narrow(axis, 0, x.shape[axis] - max(-after, 0))
        extent = x.shape[axis]
        index = torch.arange(-max(before, 0), extent + max(after, 0), device=x.device)
        if mode == "edge":
            index = index.clamp(0, extent - 1)
        elif mode == "wrap":
            index = index % extent
        else:
            period = max(2 * (extent - 1), 1)
            index = (index % period).minimum(-index % period)
        x = x.index_select(axis, index)
    return x


def _same_padded(
    x: Tensor,
    kernel: tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    dilation: int | tuple[int, ...] = 1,
    lower: bool = False,
    value: float = 0.0,
) -> Tensor:
    """Return x padded so that there is one window for every stride."""
    rank = len(kernel)
    steps = (stride,) * rank if isinstance(stride, int) else stride
    gaps = (dilation,) * rank if isinstance(dilation, int) else dilation
    pads: list[int] = []
    for extent, size, step, gap in zip(x.shape[2:], kernel, steps, gaps, strict=True):
        count = -(-extent // step)
        total = max((count - 1) * step + gap * (size - 1) + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        pads = [*((large, small) if lower else (small, large)), *pads]
    return F.pad(x, pads, value=value)


def _depth_to_space(x: Tensor, size: int) -> Tensor:
    """Return [n, size * size * c, h, w] as [n, c, h * size, w * size]."""
    n, channels, height, width = x.shape
    x = x.reshape(n, size, size, channels // size**2, height, width)
    x = x.permute(0, 3, 4, 1, 5, 2)
    return x.reshape(n, channels // size**2, height * size, width * size)


def _space_to_depth(x: Tensor, size: int) -> Tensor:
    """Return [n, c, h * size, w * size] as [n, size * size * c, h, w]."""
    n, channels, height, width = x.shape
    x = x.reshape(n, channels, height // size, size, width // size, size)
    x = x.permute(0, 3, 5, 1, 2, 4)
    return x.reshape(n, channels * size**2, height // size, width // size)


def _eye(
    rows: int,
    columns: int,
    k: int = 0,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Tensor:
    """Return ones on the k-th diagonal of a matrix of zeros."""
    row = torch.arange(rows, device=device).unsqueeze(1)
    return (torch.arange(columns, device=device) == row + k).to(dtype)


def _prod(
    x: Tensor,
    dims: int | list[int] | tuple[int, ...] | None,
    *,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the product over several axes."""
    axes = [dims] if isinstance(dims, int) else dims or range(x.ndim)
    for dim in sorted((dim % x.ndim for dim in axes), reverse=True):
        x = x.prod(dim, keepdim=keepdim, dtype=dtype)
    return x


def _all(
    x: Tensor, dims: list[int] | tuple[int, ...] | None, *, keepdim: bool = False
) -> Tensor:
    """Return whether all elements are true over several axes."""
    for dim in sorted((dim % x.ndim for dim in dims or range(x.ndim)), reverse=True):
        x = x.all(dim, keepdim=keepdim)
    return x


def _any(
    x: Tensor, dims: list[int] | tuple[int, ...] | None, *, keepdim: bool = False
) -> Tensor:
    """Return whether any element is true over several axes."""
    for dim in sorted((dim % x.ndim for dim in dims or range(x.ndim)), reverse=True):
        x = x.any(dim, keepdim=keepdim)
    return x


def _cumsum(
    x: Tensor,
    dim: int,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return running sums, without the element itself if exclusive."""
    x = x.flip(dim) if reverse else x
    out = x.cumsum(dim, dtype=dtype)
    if exclusive:
        zero = torch.zeros_like(out.narrow(dim, 0, min(1, out.shape[dim])))
        kept = out.narrow(dim, 0, max(out.shape[dim] - 1, 0))
        out = torch.cat([zero, kept], dim=dim)
    return out.flip(dim) if reverse else out


def _cumprod(
    x: Tensor,
    dim: int,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return running products, without the element itself if exclusive."""
    x = x.flip(dim) if reverse else x
    out = x.cumprod(dim, dtype=dtype)
    if exclusive:
        one = torch.ones_like(out.narrow(dim, 0, min(1, out.shape[dim])))
        kept = out.narrow(dim, 0, max(out.shape[dim] - 1, 0))
        out = torch.cat([one, kept], dim=dim)
    return out.flip(dim) if reverse else out


def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    """Return x, times slope where it is below 0; slope broadcasts to x."""
    return torch.where(x < 0, x * slope, x)


def _quick_gelu(x: Tensor) -> Tensor:
    """Return x * sigmoid(1.702 * x), an approximation of GELU."""
    return x * torch.sigmoid(1.702 * x)


def _shrink(x: Tensor, *, bias: float, lambd: float) -> Tensor:
    """Return x moved towards 0 by bias, and 0 within lambd of it."""
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, x * 0))


def _softmax(x: Tensor, dims: list[int] | tuple[int, ...]) -> Tensor:
    """Return the softmax over several axes together."""
    return _log_softmax(x, dims).exp()


def _log_softmax(x: Tensor, dims: list[int] | tuple[int, ...]) -> Tensor:
    """Return the logarithm of the softmax over several axes together."""
    return x - torch.logsumexp(x, tuple(dims), keepdim=True)


def _layer_norm(
    x: Tensor,
    axis: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float,
) -> Tensor:
    """Return x with mean 0 and variance 1 over the axes from axis on."""
    shape = x.shape[axis:]
    if weight is not None and weight.shape != shape:
        weight = weight.expand(shape)
    if bias is not None and bias.shape != shape:
        bias = bias.expand(shape)
    return F.layer_norm(x, shape, weight, bias, eps)


def _rms_norm(
    x: Tensor, axis: int, weight: Tensor | None = None, *, eps: float
) -> Tensor:
    """Return x with root mean square 1 over the axes from axis on."""
    out = F.rms_norm(x, x.shape[axis:], eps=eps)
    return out if weight is None else out * weight


def _gradient(
    function: Callable[..., Tensor], inputs: list[Tensor], others: list[Tensor]
) -> tuple[Tensor, ...]:
    """Return the derivatives of a sum of results by each of inputs."""
    with torch.enable_grad():
        leaves = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        total = function(*leaves, *others).sum()
        return tuple(torch.autograd.grad(total, leaves, create_graph=True))
