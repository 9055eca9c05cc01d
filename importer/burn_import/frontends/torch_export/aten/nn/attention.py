"""Scaled dot-product attention with any number of batch axes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.nn.activation import dropout, safe_softmax
from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: The rank of ONNX's operator: batch, heads, rows, features.
_RANK = 4


@rule("aten.scaled_dot_product_attention.default")
def attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Return attention of queries [..., heads, rows, size] to keys and values.

    With ``enable_gqa`` several query heads share one head of keys and values.

    Raises:
        UnsupportedModel: keys or a mask have other ranks, or there is dropout where
            heads are shared.
    """
    if dropout_p:
        if enable_gqa:
            raise UnsupportedModel(
                "attention with dropout is not supported if heads share keys"
            )
        mask = causal_mask(g, query, key) if is_causal else attn_mask
        return with_dropout(g, query, key, value, mask, dropout_p, scale)
    attrs: dict[str, Any] = {"is_causal": int(is_causal) or None, "scale": scale}
    operands = g.floats(query, key, value)
    check_ranks(query, key, value, attn_mask)
    if query.rank == _RANK:
        return g.op("Attention", *operands, attn_mask, **attrs)
    if query.rank < _RANK:
        return lift_rank(g, operands, attn_mask, attrs, enable_gqa)
    mask = None if attn_mask is None else mask_of_batches(g, attn_mask, query)
    merged = [merge_batches(g, x) for x in operands]
    output = g.op("Attention", *merged, mask, **attrs)
    shape = [g.extent(query, axis) for axis in range(query.rank - 1)]
    return g.op("Reshape", output, g.ints([*shape, g.extent(value, -1)]))


def causal_mask(g: Builder, query: Value, key: Value) -> Value:
    """Return a mask [rows, columns] of the keys that are not after a query."""
    rows, columns = (multiples(g, g.extent(x, -2)) for x in (query, key))
    of = g.at(BOOL)
    mask = of.op("GreaterOrEqual", g.at(INT64).op("Unsqueeze", rows, [-1]), columns)
    return Value(mask.name, BOOL)


def with_dropout(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    ratio: float,
    scale: float | None,
) -> Value:
    """Return attention whose weights are dropped while the module is trained."""
    q, k, v = g.floats(query, key, value)
    perm = (*range(key.rank - 2), key.rank - 1, key.rank - 2)
    if scale is None:
        size = g.op("Sqrt", g.cast(g.extent(query, -1)))
        q = g.op("Div", q, size)
    else:
        q = g.op("Mul", q, scale)
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=perm))
    if mask is not None and mask.dtype == BOOL:
        scores = g.op("Where", mask, scores, g.cast(-math.inf))
    elif mask is not None:
        scores = g.op("Add", scores, g.cast(mask))
    if mask is None:
        weights = g.op("Softmax", scores, axis=-1)
    else:
        weights = safe_softmax(g, scores, -1)
    return g.op("MatMul", dropout(g, weights, ratio, True), v)


def check_ranks(query: Value, key: Value, value: Value, mask: Value | None) -> None:
    """Check that keys and values have the batch axes of queries, and a mask no more.

    Raises:
        UnsupportedModel: the batch axes differ.
    """
    if query.rank < _RANK - 2 or {key.rank, value.rank} != {query.rank}:
        ranks = query.rank, key.rank, value.rank
        raise UnsupportedModel(f"attention of queries, keys, values of ranks {ranks}")
    if mask is not None and mask.rank > max(query.rank, 2):
        raise UnsupportedModel(
            f"attention of rank {query.rank} with a mask of rank {mask.rank}"
        )
    batches = [x.dims[:-3] for x in (query, key, value) if x.dims is not None]
    if query.rank > _RANK and any(_differ(batches[0], b) for b in batches[1:]):
        raise UnsupportedModel(f"attention of batches {batches} that broadcast")


def _differ(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two shapes of equal rank have different fixed extents."""
    pairs = zip(one, other, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def lift_rank(
    g: Builder,
    operands: Sequence[Value],
    mask: Value | None,
    attrs: dict[str, Any],
    enable_gqa: bool,
) -> Value:
    """Return attention of rank 2 or 3: [samples, ...], or [heads, ...] if shared.

    Axes of extent 1 are inserted up to rank 4.
    """
    axes = [0] if enable_gqa else [1] if operands[0].rank == _RANK - 1 else [0, 1]
    heads = [g.op("Unsqueeze", x, axes) for x in operands]
    if mask is not None and mask.rank == _RANK - 1:
        mask = g.at(mask.dtype).op("Unsqueeze", mask, axes)
    return g.op("Squeeze", g.op("Attention", *heads, mask, **attrs), axes)


def merge_batches(g: Builder, x: Value) -> Value:
    """Return ``x`` [..., heads, rows, size] with one batch axis."""
    last = [g.extent(x, axis) for axis in (-3, -2, -1)]
    return g.op("Reshape", x, g.ints([-1, *last]))


def mask_of_batches(g: Builder, mask: Value, query: Value) -> Value:
    """Return a mask of rank 4 that broadcasts to scores [..., heads, rows, columns].

    A mask that differs between samples is first expanded to the batch axes of
    ``query``.
    """
    at = g.at(mask.dtype)
    if mask.rank < _RANK:
        return mask
    assert mask.dims is not None and query.dims is not None
    lead = mask.dims[:-3]
    if all(extent == 1 for extent in lead):
        return at.op("Squeeze", mask, [*range(mask.rank - 3)]) if lead else mask
    shape = [g.extent(query, axis) for axis in range(query.rank - 3)]
    spread = at.op("Expand", mask, g.ints([*shape, 1, 1, 1]))
    return merge_batches(at, replace(spread, dims=(*query.dims[:-3], *mask.dims[-3:])))


@rule("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, None]:
    """Return attention without the log-sum-exp, which only gradients read."""
    rest = (attn_mask, dropout_p, is_causal, scale)
    return attention(g, query, key, value, *rest), None
