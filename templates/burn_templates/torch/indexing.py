"""Helpers that read and write parts of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _positive(indices: Tensor, extent: int) -> Tensor:
    """Return int64 indices of which those below 0 counted from the end."""
    indices = indices.long()
    return torch.where(indices < 0, indices + extent, indices)


def _gather(x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Return x.gather(dim, indices), where indices may be negative."""
    return x.gather(dim, _positive(indices, x.shape[dim]))


def _scatter(
    x: Tensor, dim: int, indices: Tensor, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    """Return x with updates at the indices, or combined with what is there."""
    indices = _positive(indices, x.shape[dim])
    if reduction == "none":
        return x.scatter(dim, indices, updates)
    names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
    return x.scatter_reduce(dim, indices, updates, names[reduction])


def _gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Return the slices of x that the last axis of indices names."""
    places = indices.shape[:-1]
    key = []
    for axis in range(batch_dims):
        shape = [1] * len(places)
        shape[axis] = places[axis]
        key.append(torch.arange(places[axis], device=x.device).reshape(shape))
    return x[(*key, *indices.long().unbind(-1))]


def _scatter_nd(
    x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    """Return x with updates at the slices that the last axis of indices names."""
    depth = indices.shape[-1]
    flat = x.reshape(-1, *x.shape[depth:])
    row = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device)
    for axis in range(depth):
        row = row * x.shape[axis] + _positive(indices[..., axis], x.shape[axis])
    rows = updates.reshape(-1, *x.shape[depth:])
    if reduction == "none":
        return flat.index_put((row.reshape(-1),), rows).reshape(x.shape)
    names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
    wide = row.reshape(-1, *[1] * (rows.ndim - 1)).expand(rows.shape)
    return flat.scatter_reduce(0, wide, rows, names[reduction]).reshape(x.shape)


def _slice(x: Tensor, *parts: Any) -> Tensor:
    """Return x[parts], where steps may be negative."""
    if ... in parts:
        at = parts.index(...)
        missing = x.ndim - len(parts) + 1
        parts = (*parts[:at], *[slice(None)] * missing, *parts[at + 1 :])
    for axis, part in enumerate(parts):
        places = range(x.shape[axis])[part]
        if len(places) != x.shape[axis] or places.step != 1:
            index = torch.tensor(list(places), dtype=torch.int64, device=x.device)
            x = x.index_select(axis, index)
    return x


def _slice_axes(
    x: Tensor,
    starts: list[int] | tuple[int, ...],
    ends: list[int] | tuple[int, ...],
    *,
    dims: list[int] | tuple[int, ...] | None = None,
    steps: list[int] | tuple[int, ...] | None = None,
) -> Tensor:
    """Return x from starts to before ends by steps along dims, the first ones."""
    axes = range(len(starts)) if dims is None else dims
    steps = [1] * len(starts) if steps is None else steps
    for dim, start, end, step in zip(axes, starts, ends, steps, strict=True):
        beyond = step < 0 and start < -x.shape[dim]
        places = range(x.shape[dim])[0 if beyond else start : end : step]
        index = torch.tensor(list(places), dtype=torch.int64, device=x.device)
        x = x.index_select(dim, index)
    return x


def _nonzero(x: Tensor) -> Tensor:
    """Return the indices of the elements that are not 0: [rank, count]."""
    return x.reshape(x.shape or (1,)).nonzero().T


def _compress(x: Tensor, condition: Tensor, *, dim: int | None = None) -> Tensor:
    """Return the entries of x along dim where the vector condition is true."""
    chosen = condition.nonzero().squeeze(1)
    return x.flatten()[chosen] if dim is None else x.index_select(dim, chosen)


def _one_hot(
    indices: Tensor, depth: int, values: Tensor | None = None, *, dim: int = -1
) -> Tensor:
    """Return values[1] at indices along a new axis of depth, values[0] beside."""
    axis = dim % (indices.ndim + 1)
    shape = [1] * (indices.ndim + 1)
    shape[axis] = depth
    places = torch.arange(depth, device=indices.device).reshape(shape)
    index = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    if values is None:
        return torch.where(index == places, 1.0, 0.0)
    return torch.where(index == places, values[1], values[0])


def _tensor_scatter(
    cache: Tensor,
    update: Tensor,
    starts: Tensor | None = None,
    *,
    dim: int = -2,
    circular: bool = False,
) -> Tensor:
    """Return cache with update written from starts[batch] on along dim."""
    rows = cache.movedim(dim, 1)
    positions = torch.arange(update.shape[dim], device=cache.device).unsqueeze(0)
    if starts is not None:
        positions = positions + starts.unsqueeze(1)
    if circular:
        positions = positions % rows.shape[1]
    batch = torch.arange(rows.shape[0], device=cache.device).unsqueeze(1)
    return rows.index_put((batch, positions), update.movedim(dim, 1)).movedim(1, dim)


def _extend_cache(cache: Tensor, update: Tensor, starts: Tensor, length: int) -> Tensor:
    """Return cache [batch, heads, sequence, size] with update from starts on."""
    row = torch.arange(cache.shape[2], device=cache.device).reshape(-1, 1)
    cache = torch.where(row < starts.reshape(-1, 1, 1, 1), cache, 0)
    missing = cache.new_zeros(
        *cache.shape[:2], max(length - cache.shape[2], 0), cache.shape[3]
    )
    return _tensor_scatter(torch.cat([cache, missing], dim=2), update, starts)


def _topk(
    x: Tensor, k: int, *, dim: int = -1, largest: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest elements and their indices; of equal ones the first."""
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _unique(x: Tensor, *, sorted: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the different elements, where each is first, which is where, counts."""
    flat = x.flatten()
    values, inverse, counts = flat.unique(return_inverse=True, return_counts=True)
    index = torch.arange(flat.numel(), device=x.device)
    first = torch.full_like(counts, flat.numel())
    first = first.scatter_reduce(0, inverse, index, "amin")
    if not sorted:
        order = first.argsort()
        rank = order.argsort()
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return flat[first], first, inverse, counts


def _reverse_sequence(
    x: Tensor, lengths: Tensor, *, batch_dim: int = 1, time_dim: int = 0
) -> Tensor:
    """Return x with the first lengths[batch] steps of each batch in reverse."""
    shape = [1] * x.ndim
    shape[time_dim] = x.shape[time_dim]
    time = torch.arange(x.shape[time_dim], device=x.device).reshape(shape)
    shape = [1] * x.ndim
    shape[batch_dim] = x.shape[batch_dim]
    count = lengths.to(x.device).reshape(shape)
    index = torch.where(time < count, count - 1 - time, time)
    return x.gather(time_dim, index.expand(x.shape))


def _last_argmax(x: Tensor, dim: int | None, keepdim: bool = False) -> Tensor:
    """Return the last index of the largest element."""
    if dim is None:
        return x.numel() - 1 - x.flatten().flip(0).argmax()
    return x.shape[dim] - 1 - x.flip(dim).argmax(dim, keepdim=keepdim)


def _last_argmin(x: Tensor, dim: int | None, keepdim: bool = False) -> Tensor:
    """Return the last index of the smallest element."""
    if dim is None:
        return x.numel() - 1 - x.flatten().flip(0).argmin()
    return x.shape[dim] - 1 - x.flip(dim).argmin(dim, keepdim=keepdim)


def _non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    limit: int,
    iou_threshold: Tensor | float,
    score_threshold: Tensor | float | None = None,
    *,
    center: bool = False,
) -> Tensor:
    """Return [count, 3] rows of image, class and box that overlap no better one."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center:
        middle, half = first.flip(-1), second.flip(-1) / 2
        first, second = middle - half, middle + half
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    area = (high - low).prod(-1)
    rows = []
    for image in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            rating = scores[image, label]
            order = rating.argsort(descending=True, stable=True)
            if score_threshold is not None:
                order = order[rating[order] > score_threshold]
            kept: list[int] = []
            for box in order.tolist():
                if len(kept) == limit:
                    break
                start = torch.maximum(low[image, kept], low[image, box])
                end = torch.minimum(high[image, kept], high[image, box])
                shared = (end - start).clamp(min=0).prod(-1)
                union = area[image, kept] + area[image, box] - shared
                if not (shared > iou_threshold * union).any():
                    kept.append(box)
            rows += [[image, label, box] for box in kept]
    return torch.tensor(rows, dtype=torch.int64, device=boxes.device).reshape(-1, 3)
