"""Reductions of consecutive rows: segments that lengths or offsets delimit."""

from dataclasses import replace

import numpy as np

from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Value,
    check_integers,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: By kind: the reduction of ``ScatterND``, and the result of an empty segment.
_KINDS = {
    "sum": ("add", 0.0),
    "mean": ("add", np.nan),
    "max": ("max", -np.inf),
    "min": ("min", np.inf),
    "prod": ("mul", 1.0),
}


def count_at_most(g: Builder, marks: Value, numbers: Value) -> Value:
    """Return for each number how many marks are at most as large."""
    whole = g.at(INT64)
    column = whole.op("Unsqueeze", numbers, [1])
    row = whole.cast(replace(marks, dims=None))
    is_reached = g.at(BOOL).op("LessOrEqual", row, column)
    return whole.op("ReduceSum", whole.cast(is_reached), [1], keepdims=0)


@rule("aten.segment_reduce.default")
def segment_reduce(
    g: Builder,
    data: Value,
    reduce: str,
    lengths: Value | None = None,
    indices: Value | None = None,
    offsets: Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Value:
    """Return one row for each segment of the rows of ``data``."""
    if axis != 0 or indices is not None or reduce not in _KINDS:
        raise UnsupportedModel(
            "segment_reduce: expected lengths or offsets along axis 0, and one of "
            f"{', '.join(_KINDS)}, got axis {axis}, {reduce}"
        )
    ends, counts = _ends_and_counts(g, lengths, offsets)
    whole = g.at(INT64)
    number = multiples(g, g.extent(data, 0))
    segment = whole.op("Unsqueeze", count_at_most(g, ends, number), [1])
    kind, empty = _KINDS[reduce]
    start = initial if initial is not None else 0.0 if reduce == "mean" else empty
    trailing = g.ints([g.extent(data, n) for n in range(1, data.rank)])
    shape = whole.op("Concat", whole.op("Shape", ends), trailing, axis=0)
    first = g.op("Expand", g.cast(start), shape)
    total = g.op("ScatterND", first, segment, data, reduction=kind)
    if reduce != "mean":
        return total
    counts = g.cast(whole.op("Reshape", counts, [-1, *[1] * (data.rank - 1)]))
    if initial is not None:
        counts = g.op("Max", counts, 1)
    return g.op("Div", total, counts)


def _ends_and_counts(
    g: Builder, lengths: Value | None, offsets: Value | None
) -> tuple[Value, Value]:
    """Return the row behind each segment, and the number of its rows."""
    whole = g.at(INT64)
    marks = lengths or offsets
    if marks is None:
        raise UnsupportedModel("segment_reduce: expected lengths or offsets, got none")
    check_integers("segment_reduce", marks)
    if lengths is not None:
        counts = replace(whole.cast(lengths), dims=None)
        return whole.op("CumSum", counts, 0), counts
    bounds = replace(whole.cast(marks), dims=None)
    ends = whole.op("Slice", bounds, [1], [2**63 - 1], [0])
    return ends, whole.op("Sub", ends, whole.op("Slice", bounds, [0], [-1], [0]))
