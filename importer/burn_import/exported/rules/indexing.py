"""Lookups: embeddings, gathers and indices."""

from __future__ import annotations

from collections.abc import Sequence

from burn_import.exported.builder import BOOL, Builder, Value
from burn_import.exported.table import rule
from burn_ir import UnsupportedModel


@rule("aten.embedding.default")
def embedding(
    g: Builder,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    return g.op("Gather", weight, indices, axis=0)


@rule("aten.index_select.default")
def index_select(g: Builder, self: Value, dim: int, index: Value) -> Value:
    return g.op("Gather", self, index, axis=dim)


@rule("aten.gather.default")
def gather(
    g: Builder, self: Value, dim: int, index: Value, sparse_grad: bool = False
) -> Value:
    return g.op("GatherElements", self, index, axis=dim)


@rule("aten.index.Tensor")
def index(g: Builder, self: Value, indices: Sequence[Value | None]) -> Value:
    """Advanced indexing with tensors of whole numbers.

    Adjacent ones stay in place; those apart go to the front.
    """
    given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    if any(i.dtype == BOOL for _, i in given):
        raise UnsupportedModel("indexing with a mask, whose result has no known extent")
    if len(given) == 1:
        axis, only = given[0]
        return g.op("Gather", self, only, axis=axis)
    axes = [axis for axis, _ in given]
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] != 0:
        raise UnsupportedModel(f"indexing of axes {axes} together")
    shape = g.op("Shape", given[0][1])
    for _, other in given[1:]:
        pair = g.op("Expand", other, shape)
        shape = g.op("Shape", pair)
    ranks = max(i.rank for _, i in given)
    columns = [
        g.op("Unsqueeze", g.op("Expand", i, shape), g.constant([ranks]))
        for _, i in given
    ]
    places = g.op("Concat", *columns, axis=ranks)
    return g.op("GatherND", self, places)
