"""Helpers for lists of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def _inserted(items: list[Tensor], item: Tensor, position: int) -> list[Tensor]:
    """Return a list with item in front of the one at position."""
    if not -len(items) <= position <= len(items):
        raise IndexError(f"no position {position} among {len(items)} items")
    at = position + len(items) if position < 0 else position
    return [*items[:at], item, *items[at:]]


def _erased(items: list[Tensor], position: int) -> list[Tensor]:
    """Return a list without the item at position."""
    left = list(items)
    del left[position]
    return left


def _stack_rows(
    rows: list[Tensor], shape: tuple[int, ...], *, dim: int = 0, dtype: torch.dtype
) -> Tensor:
    """Return rows side by side along a new axis; shape is that of a row if none is."""
    if rows:
        return torch.stack(rows, dim=dim)
    axis = dim % (len(shape) + 1)
    return torch.zeros((*shape[:axis], 0, *shape[axis:]), dtype=dtype)


def _fill_rows(rows: Tensor, length: int) -> Tensor:
    """Return rows and as many rows of 0 after them as it takes to make length."""
    missing = length - rows.shape[0]
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])


def _split_to_sequence(
    x: Tensor,
    sizes: int | list[int] | tuple[int, ...] = 1,
    *,
    dim: int = 0,
    keepdims: bool = True,
) -> list[Tensor]:
    """Return the pieces of x along dim, of sizes or of one size each."""
    pieces = x.split(sizes if isinstance(sizes, int) else list(sizes), dim=dim)
    return list(pieces) if keepdims else [piece.squeeze(dim) for piece in pieces]


def _element(value: Tensor | None) -> Tensor:
    """Return value, which is not None."""
    if value is None:
        raise ValueError("expected a value, got None")
    return value
