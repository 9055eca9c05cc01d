"""Helpers for resizing as ONNX defines it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _resize(
    x: Tensor,
    *,
    scales: list[float] | tuple[float, ...] | None = None,
    sizes: list[int] | tuple[int, ...] | None = None,
    roi: list[float] | tuple[float, ...] | None = None,
    axes: list[int] | tuple[int, ...] | None = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
) -> Tensor:
    """Return x resampled to sizes, or by scales, as the operator Resize of ONNX."""
    dims = [dim % x.ndim for dim in (range(x.ndim) if axes is None else axes)]
    extents = [x.shape[dim] for dim in dims]
    factors, targets = _targets(extents, scales, sizes, keep_aspect_ratio_policy)
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    out = x
    for number, dim in enumerate(dims):
        extent, factor, target = extents[number], factors[number], targets[number]
        if factor == 1.0 and target == extent and not crops:
            continue
        bounds = (0.0, 1.0) if roi is None else (roi[number], roi[number + len(dims)])
        length = extent * factor if sizes is None else target
        at = _coordinates(
            coordinate_transformation_mode, extent, target, factor, length, bounds
        )
        if mode == "nearest":
            taps = _nearest(at, nearest_mode, not crops).clamp(0, extent - 1).long()
            out = out.index_select(dim, taps.to(x.device))
        else:
            shrink = min(factor, 1.0) if antialias else 1.0
            options = mode, shrink, cubic_coeff_a, exclude_outside, antialias
            matrix = _weights(at, extent, *options).to(x.device, out.dtype)
            out = torch.tensordot(out, matrix, dims=([dim], [1])).movedim(-1, dim)
        if crops:
            outside = ((at < 0) | (at > extent - 1)).to(x.device)
            shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
            out = out.masked_fill(outside.reshape(shape), extrapolation_value)
    return out


def _targets(
    extents: list[int],
    scales: list[float] | tuple[float, ...] | None,
    sizes: list[int] | tuple[int, ...] | None,
    policy: str,
) -> tuple[list[float], list[int]]:
    """Return scales and sizes, after the policy on the aspect ratio."""
    if scales is not None:
        ratios = [float(scale) for scale in scales]
        return ratios, [math.floor(n * s) for n, s in zip(extents, ratios, strict=True)]
    assert sizes is not None
    ratios = [size / n for size, n in zip(sizes, extents, strict=True)]
    if policy == "stretch":
        return ratios, list(sizes)
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [scale] * len(extents), [math.floor(scale * n + 0.5) for n in extents]


def _coordinates(
    mode: str,
    extent: int,
    target: int,
    scale: float,
    length: float,
    bounds: tuple[float, float],
) -> Tensor:
    """Return where each result lies among the elements of an axis."""
    index = torch.arange(target, dtype=torch.float64)
    centered = (index + 0.5) / scale - 0.5
    last = extent - 1
    if mode == "half_pixel_symmetric":
        return centered + extent / 2 * (1 - target / (scale * extent))
    if mode == "pytorch_half_pixel":
        return centered if target > 1 else index * 0
    if mode == "asymmetric":
        return index / scale
    if mode == "align_corners":
        return index * last / (length - 1 or 1)
    if mode == "pytorch_align_corners":
        return index * last / max(target - 1, 1)
    if mode == "tf_crop_and_resize":
        start, end = bounds
        if target == 1:
            return index + 0.5 * (start + end) * last
        return start * last + index * (end - start) * last / (target - 1)
    return centered


def _nearest(at: Tensor, mode: str, exact: bool) -> Tensor:
    """Return coordinates rounded to elements."""
    if exact:  # a tie is a tie although scales are inexact
        at = torch.round(at * 2.0**16) * 2.0**-16
    if mode == "round_prefer_floor":
        return torch.ceil(at - 0.5)
    if mode == "round_prefer_ceil":
        return torch.floor(at + 0.5)
    return torch.floor(at) if mode == "floor" else torch.ceil(at)


def _weights(
    at: Tensor,
    extent: int,
    mode: str,
    shrink: float,
    a: float,
    exclude_outside: bool,
    antialias: bool,
) -> Tensor:
    """Return the weight of each element for each result: [results, extent]."""
    reach = (1 if mode == "linear" else 2) / shrink
    first = torch.floor(at - reach) + 1
    taps = first.unsqueeze(1) + torch.arange(math.ceil(2 * reach))
    d = (taps - at.unsqueeze(1)).abs() * shrink
    if mode == "linear":
        weights = (1.0 - d).clamp(min=0.0)
    else:
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        weights = torch.where(d <= 1, near, torch.where(d < 2, far, 0.0))
    if exclude_outside:
        weights = torch.where((taps < 0) | (taps > extent - 1), 0.0, weights)
    if exclude_outside or antialias:
        weights = weights / weights.sum(1, keepdim=True)
    dense = torch.zeros(len(at), extent, dtype=at.dtype)
    return dense.scatter_add(1, taps.clamp(0, extent - 1).long(), weights)
