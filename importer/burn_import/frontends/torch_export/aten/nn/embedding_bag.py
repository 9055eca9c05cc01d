"""Embeddings reduced over bags."""

from dataclasses import replace

import numpy as np

from burn_import.frontends.torch_export.aten.math.segments import count_at_most
from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Value,
    check_integers,
)
from burn_import.frontends.torch_export.registry import rule

MEAN, MAX = 1, 2


@rule("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
@rule("aten.embedding_bag.default")
def embedding_bag(
    g: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Value, None, None, None]:
    """Return the sum, mean or maximum of each bag's rows; 0 if it is empty.

    Rows of ``padding_idx`` are in no bag.
    """
    check_integers("embedding_bag", offsets)
    whole = g.at(INT64)
    starts = offsets
    if include_last_offset:
        starts = whole.op("Slice", offsets, [0], [-1], [0])
    number = multiples(g, g.extent(indices, 0))
    bag = whole.op("Sub", count_at_most(g, starts, number), 1)
    bag = whole.op("Unsqueeze", bag, [1])
    rows = g.op("Gather", weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = g.op("Mul", rows, g.op("Unsqueeze", per_sample_weights, [1]))
    is_row = _is_no_padding(g, indices, padding_idx)
    if is_row is not None:
        neutral = -np.inf if mode == MAX else 0
        is_column = g.at(BOOL).op("Unsqueeze", is_row, [1])
        rows = g.op("Where", is_column, rows, g.cast(neutral))
    bags = whole.op("Shape", starts)
    width = [g.extent(weight, 1)]
    shape = whole.op("Concat", bags, g.ints(width), axis=0)
    if mode == MAX:
        return _largest(g, rows, bag, shape), None, None, None
    zeros = g.op("Expand", g.cast(0), shape)
    total = g.op("ScatterND", zeros, bag, rows, reduction="add")
    if mode == MEAN:
        total = g.op("Div", total, _bag_sizes(g, indices, is_row, bag, bags))
    return total, None, None, None


def _is_no_padding(g: Builder, indices: Value, padding_idx: int | None) -> Value | None:
    """Return the mask of indices without ``padding_idx``, None if it is none."""
    if padding_idx is None or padding_idx < 0:
        return None
    is_padding = g.at(BOOL).op("Equal", g.at(INT64).cast(indices), padding_idx)
    return g.at(BOOL).op("Not", is_padding)


def _bag_sizes(
    g: Builder, indices: Value, is_row: Value | None, bag: Value, bags: Value
) -> Value:
    """Return the number of rows in each bag as a column, at least 1."""
    if is_row is None:
        ones = g.op("Expand", g.cast(1), g.at(INT64).op("Shape", indices))
    else:
        ones = g.cast(replace(is_row, dims=None))
    zeros = g.op("Expand", g.cast(0), bags)
    size = g.op("ScatterND", zeros, bag, ones, reduction="add")
    return g.op("Unsqueeze", g.op("Max", size, 1), [1])


def _largest(g: Builder, rows: Value, bag: Value, shape: Value) -> Value:
    least = g.op("Expand", g.cast(-np.inf), shape)
    maxima = g.op("ScatterND", least, bag, rows, reduction="max")
    empty = g.at(BOOL).op("IsInf", maxima, detect_positive=0)
    return g.op("Where", empty, g.cast(0), maxima)


@rule("aten.embedding_bag.padding_idx")
def embedding_bag_padded(
    g: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Value, None, None, None]:
    rest = (scale_grad_by_freq, mode, sparse, per_sample_weights)
    last = (include_last_offset, padding_idx)
    return embedding_bag(g, weight, indices, offsets, *rest, *last)
