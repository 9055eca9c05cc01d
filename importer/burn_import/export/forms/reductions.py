"""Reductions, arg-reductions and sorting."""

from typing import Any

import numpy as np

from burn import dtypes
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, static_integers


def axes_of(w: GraphWriter, axis: Any, rank: int) -> tuple[int, ...]:
    """Return axes as non-negative numbers; all axes for None."""
    if axis is None:
        return tuple(range(rank))
    return tuple(a % rank if rank else 0 for a in static_integers(w, axis))


def reduce(
    w: GraphWriter, op: str, x: Operand, axes: tuple[int, ...], keepdims: bool
) -> Operand:
    """Append a reduction; before opset 18 its axes are an attribute."""
    if not axes:
        return x
    keep = int(keepdims)
    if op == "ReduceSum" or w.opset >= 18:
        return w.node(op, x, list(axes), keepdims=keep)
    return w.node(op, x, axes=list(axes), keepdims=keep)


_OPERATORS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "prod": "ReduceProd",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "logsumexp": "ReduceLogSumExp",
    "reduce_l1": "ReduceL1",
    "reduce_l2": "ReduceL2",
}


@form(*_OPERATORS)
def reduction(
    w: GraphWriter, x: Operand, axis: Any = None, *, keepdims: bool = False
) -> Operand:
    out = w.out[0][1]
    work = dtypes.int32 if x.dtype == dtypes.bool_ and out == dtypes.bool_ else out
    axes = axes_of(w, axis, x.rank)
    result = reduce(w, _OPERATORS[w.primitive], w.cast(x, work), axes, keepdims)
    return w.cast(result, out)


@form("any", "all")
def truth(
    w: GraphWriter, x: Operand, axis: Any = None, *, keepdims: bool = False
) -> Operand:
    op = "ReduceMax" if w.primitive == "any" else "ReduceMin"
    numbers = w.cast(w.cast(x, dtypes.bool_), dtypes.int32)
    result = reduce(w, op, numbers, axes_of(w, axis, x.rank), keepdims)
    return w.cast(result, dtypes.bool_)


@form("sum_to")
def sum_to(w: GraphWriter, x: Operand, *, shape: Any) -> Operand:
    missing = x.rank - len(shape)
    axes = [*range(missing)]
    axes += [
        a + missing for a, n in enumerate(shape) if n == 1 and x.shape[a + missing] != 1
    ]
    total = reduce(w, "ReduceSum", x, tuple(axes), True)
    return w.node("Reshape", total, w.integers(shape)) if missing else total


@form("argmax", "argmin")
def extreme(
    w: GraphWriter,
    x: Operand,
    axis: Any = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Operand:
    op = "ArgMax" if w.primitive == "argmax" else "ArgMin"
    options: dict[str, Any] = {
        "select_last_index": int(select_last),
        "dtype": dtypes.int64,
    }
    if x.dtype == dtypes.bool_:
        x = w.cast(x, dtypes.int32)
    if axis is not None:
        (number,) = static_integers(w, axis)
        return w.node(op, x, axis=number, keepdims=int(keepdims), **options)
    flat = w.node(op, w.node("Reshape", x, [-1]), axis=0, keepdims=0, **options)
    return w.node("Reshape", flat, [1] * x.rank) if keepdims else flat


@form("topk")
def topk(
    w: GraphWriter,
    x: Operand,
    k: Any,
    *,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> list[Operand]:
    return _top(w, x, w.integers(k), axis, largest)


@form("argsort")
def argsort(
    w: GraphWriter, x: Operand, axis: int = -1, *, descending: bool = False
) -> Operand:
    axis %= x.rank
    count = w.node("Shape", x, dtype=dtypes.int64, start=axis, end=axis + 1)
    return _top(w, x, count, axis, descending)[1]


def _top(
    w: GraphWriter, x: Operand, k: Operand, axis: int, largest: bool
) -> list[Operand]:
    work = w.cast(x, dtypes.int32) if x.dtype == dtypes.bool_ else x
    values, indices = w.node_of(
        "TopK", [work, k], 2, axis=axis, largest=int(largest), sorted=1
    )
    return [w.cast(values, x.dtype), Operand(indices.name, (), dtypes.int64)]


@form("cumsum")
def cumsum(
    w: GraphWriter,
    x: Operand,
    axis: Any = 0,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Operand:
    along = np.asarray(static_integers(w, axis)[0], np.int64)
    work = w.cast(x, w.out[0][1])
    return w.node(
        *("CumSum", work, w.constant(along)),
        exclusive=int(exclusive),
        reverse=int(reverse),
    )
