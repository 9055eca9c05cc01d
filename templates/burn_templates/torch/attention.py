"""Helpers for attention."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _attention_scores(
    query: Tensor,
    key: Tensor,
    *,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    offset: Tensor | int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
) -> Tensor:
    """Return [batch, heads, rows, columns] products, with -inf for hidden keys."""
    if key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap > 0:
        scores = torch.tanh(scores / softcap) * softcap
    seen = _seen_keys(scores, offset, causal, window)
    column = torch.arange(scores.shape[-1], device=scores.device)
    if lengths is not None:
        seen = seen & (column < lengths.reshape(-1, 1, 1, 1))
    if mask is not None:
        missing = scores.shape[-1] - mask.shape[-1]
        if mask.dtype == torch.bool:
            seen = seen & F.pad(mask, (0, max(missing, 0)))
        else:
            mask = F.pad(mask, (0, max(missing, 0)), value=-math.inf)
            scores = scores + mask.to(scores.dtype)
    return scores.masked_fill(~seen, -math.inf)


def _seen_keys(
    scores: Tensor, offset: Tensor | int, causal: bool, window: tuple[int, int]
) -> Tensor:
    """Return which keys stand where queries may look, as far as places tell."""
    rows, columns = scores.shape[-2:]
    if isinstance(offset, Tensor):
        offset = offset.reshape(-1, 1, 1, 1)
    row = torch.arange(rows, device=scores.device).unsqueeze(-1) + offset
    column = torch.arange(columns, device=scores.device)
    left, right = window[0], 0 if causal else window[1]
    seen = torch.ones_like(row <= column)
    if right >= 0:
        seen = seen & (column <= row + right)
    if left >= 0:
        seen = seen & (column >= row - left)
    return seen


def _attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    sink: Tensor | None = None,
    offset: Tensor | int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
) -> Tensor:
    """Return what each query takes of each value; 0 where it sees no key."""
    scores = _attention_scores(
        query,
        key,
        mask=mask,
        lengths=lengths,
        offset=offset,
        scale=scale,
        softcap=softcap,
        causal=causal,
        window=window,
    )
    if sink is not None:
        column = sink.reshape(1, -1, 1, 1).to(scores.dtype)
        scores = torch.cat([scores, column.expand(*scores.shape[:3], 1)], dim=-1)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = F.softmax(scores.masked_fill(hidden, 0.0), dim=-1)
    weights = weights.masked_fill(hidden, 0.0)
    return weights if sink is None else weights[..., :-1]


def _weighted_values(weights: Tensor, value: Tensor) -> Tensor:
    """Return weights @ value, where several heads may share values."""
    if value.shape[1] != weights.shape[1]:
        value = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
    return weights @ value


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    sink: Tensor | None = None,
    offset: Tensor | int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
) -> Tensor:
    """Return softmax(query @ key.mT * scale + mask) @ value, of [batch, heads, ...]."""
    one_head = query.ndim == 3
    if one_head:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
    weights = _attention_weights(
        query,
        key,
        mask=mask,
        lengths=lengths,
        sink=sink,
        offset=offset,
        scale=scale,
        softcap=softcap,
        causal=causal,
        window=window,
    )
    out = _weighted_values(weights, value)
    return out.squeeze(1) if one_head else out


def _rotary_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    *,
    interleaved: bool = False,
) -> Tensor:
    """Return x [batch, heads, sequence, size] with pairs of features turned."""
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    width = 2 * cos.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=-1)
    pair = [first * cos - second * sin, first * sin + second * cos]
    out = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat([out.to(x.dtype), rest], dim=-1)


class _Attention(nn.Module):
    """Attention whose weights are dropped with probability ``dropout`` in training."""

    def __init__(self, dropout: float = 0.0, **options: Any) -> None:
        super().__init__()
        self.dropout, self.options = dropout, options

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        has_one_head = query.ndim == 3
        if has_one_head:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
            mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
        weights = _attention_weights(query, key, mask=mask, **self.options)
        weights = F.dropout(weights, self.dropout, self.training)
        out = _weighted_values(weights, value)
        return out.squeeze(1) if has_one_head else out


def _causal_mask(layer: nn.MultiheadAttention, query: Tensor, key: Tensor) -> Tensor:
    """Return which keys are behind each query, with the layer's order of axes."""
    axis = 1 if layer.batch_first else 0
    shape = query.shape[axis], key.shape[axis]
    return torch.ones(shape, dtype=torch.bool, device=query.device).triu(1)
