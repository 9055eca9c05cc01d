"""Scatter operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, bools, case, f32, fixed
from tests.importer.aten.inputs import F32, X

ROWS = fixed("int64", [[2, 0], [-1, 1]])
COLUMNS = fixed("int64", [3, -2])
ALONG = fixed("int64", [[[2, 0, 1, 1], [0, 1, 2, 0]]] * 2)
SIX = f32(2, 3, 4)
TWICE = fixed("int64", [0, 2, 0])


def scattered(how: Any, axis: int = 1) -> Any:
    """Return the tensor with elements combined at indices along an axis."""

    def run(x: Any, index: Any, source: Any) -> Any:
        out = np.array(x)
        for position in np.ndindex(index.shape):
            at = list(position)
            at[axis] = index[position]
            value = source if np.ndim(source) == 0 else source[position]
            out[tuple(at)] = how(out[tuple(at)], value)
        return out

    return run


def reduced_rows(how: Any, x: Any, index: Any, source: Any) -> Any:
    """Return the tensor with rows of its second axis combined with ``source``."""
    places = np.broadcast_to(index[:, None], source.shape)
    return scattered(how)(x, places, source)


def second(_: Any, value: Any) -> Any:
    return value


def mean_of(x: Any, index: Any, source: Any) -> Any:
    total, count = scattered(np.add)(x, index, source), np.ones_like(x)
    return total / scattered(np.add)(count, index, F32(1))


def without_self(x: Any, index: Any, source: Any) -> Any:
    low = scattered(second)(x, index, F32(-np.inf))
    return scattered(np.maximum)(low, index, source)


def put(x: Any, index: Any, values: Any, adds: bool = False) -> Any:
    out = np.array(x)
    if adds:
        np.add.at(out, index, values)
    else:
        out[index] = values
    return out


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    out, mask = np.array(x), np.broadcast_to(mask, x.shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


SCATTERS = (
    case(
        "scatter.src",
        scattered(second),
        self=SIX,
        dim=1,
        index=fixed("int64", [[[2, 0, 1, 1]]]),
        src=f32(2, 2, 4),
    ),
    case(
        "scatter.value",
        lambda x, i: scattered(second)(x, i, F32(1.5)),
        self=SIX,
        dim=1,
        index=ALONG,
        value=1.5,
    ),
    case(
        "scatter.reduce",
        scattered(np.multiply),
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="multiply",
    ),
    case(
        "scatter.value_reduce",
        lambda x, i: scattered(np.add)(x, i, F32(1.5)),
        self=SIX,
        dim=1,
        index=ALONG,
        value=1.5,
        reduce="add",
    ),
    case(
        "scatter_add.default",
        scattered(np.add),
        self=SIX,
        dim=-2,
        index=ALONG,
        src=f32(2, 2, 4),
    ),
    case(
        "scatter_reduce.two",
        scattered(np.add),
        label="sum",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="sum",
    ),
    case(
        "scatter_reduce.two",
        scattered(np.multiply),
        label="prod",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="prod",
    ),
    case(
        "scatter_reduce.two",
        scattered(np.maximum),
        label="amax",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="amax",
    ),
    case(
        "scatter_reduce.two",
        scattered(np.minimum),
        label="amin",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="amin",
    ),
    case(
        "scatter_reduce.two",
        mean_of,
        label="mean",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="mean",
    ),
    case(
        "scatter_reduce.two",
        without_self,
        label="alone",
        self=SIX,
        dim=1,
        index=ALONG,
        src=f32(2, 2, 4),
        reduce="amax",
        include_self=False,
    ),
    case(
        "index_reduce.default",
        lambda x, i, s: reduced_rows(np.maximum, x, i, s),
        self=X,
        dim=1,
        index=TWICE,
        source=f32("n", 3, 4),
        reduce="amax",
    ),
    case(
        "index_reduce.default",
        lambda x, i, s: reduced_rows(np.multiply, x, i, s),
        label="product",
        self=SIX,
        dim=1,
        index=TWICE,
        source=f32(2, 3, 4),
        reduce="prod",
    ),
    case(
        "index_add.default",
        lambda x, i, s: put(x, (slice(None), i), 2 * s, True),
        self=X,
        dim=1,
        index=TWICE,
        source=f32("n", 3, 4),
        alpha=2,
    ),
    case(
        "index_copy.default",
        lambda x, i, s: put(x, (slice(None), i), s),
        self=X,
        dim=1,
        index=fixed("int64", [2, 0]),
        source=f32("n", 2, 4),
    ),
    case(
        "index_fill.int_Scalar",
        lambda x, i: put(x, (slice(None), i), 1.5),
        self=X,
        dim=1,
        index=fixed("int64", [-1, 0]),
        value=1.5,
    ),
    case(
        "select_scatter.default",
        lambda x, s: put(x, (slice(None), 1), s),
        self=X,
        src=f32("n", 4),
        dim=1,
        index=1,
    ),
    case(
        "select_scatter.default",
        lambda x, s: put(x, -1, s),
        label="last",
        self=X,
        src=f32(3, 4),
        dim=0,
        index=-1,
    ),
    case(
        "slice_scatter.default",
        lambda x, s: put(x, (slice(None), slice(1, 3)), s),
        self=X,
        src=f32("n", 2, 4),
        dim=1,
        start=1,
        end=3,
    ),
    case(
        "slice_scatter.default",
        lambda x, s: put(x, (..., slice(0, 4, 2)), s),
        label="steps",
        self=X,
        src=f32("n", 3, 2),
        dim=-1,
        step=2,
    ),
    case(
        "slice_scatter.default",
        lambda x, s: put(x, slice(0, 2), s),
        label="start",
        self=X,
        src=f32(2, 3, 4),
        dim=0,
        end=2,
    ),
    case(
        "diagonal_scatter.default",
        lambda x, s: put(x, (slice(None), np.arange(2), np.arange(1, 3)), s),
        self=f32("n", 2, 3),
        src=f32("n", 2),
        offset=1,
        dim1=1,
        dim2=2,
    ),
    case(
        "put.default",
        lambda x, i, v: put(x.ravel(), i, v).reshape(x.shape),
        self=X,
        index=fixed("int64", [[0, -2], [3, 6]]),
        source=f32(2, 2),
    ),
    case(
        "put.default",
        lambda x, i, v: put(x.ravel(), i, v, True).reshape(x.shape),
        label="add",
        self=X,
        index=fixed("int64", [4, 0, 4]),
        source=f32(3),
        accumulate=True,
    ),
    case(
        "index_put.default",
        lambda x, i, v: put(x, i, v),
        self=f32(3, "n", 4),
        indices=[fixed("int64", [2, 0])],
        values=f32(4),
    ),
    case(
        "index_put.default",
        lambda x, i, j, v: put(x, (i, j), v, True),
        label="add",
        self=f32(3, 4, 2),
        indices=[TWICE, fixed("int64", [1, 3, 1])],
        values=f32(3, 2),
        accumulate=True,
    ),
    case(
        "index_put.default",
        lambda x, i, v: put(x, (slice(None), i), v),
        label="second",
        self=X,
        indices=[None, fixed("int64", [2, 0])],
        values=f32("n", 2, 4),
    ),
    case(
        "index_put.default",
        lambda x, i, v: put(x, (slice(None), i), v),
        label="wide",
        self=X,
        indices=[None, fixed("int64", [2, 0])],
        values=f32(2, 1),
    ),
    case(
        "index_put.default",
        lambda x, m, v: put(x, m, v),
        label="mask",
        self=X,
        indices=[bools("n", 3)],
        values=f32(),
    ),
    case(
        "index_put.default",
        lambda x, m, v: put(x, m, v),
        label="masked",
        self=f32(2, 3),
        indices=[fixed("bool", [[True, False, True], [False, False, True]])],
        values=f32(3),
    ),
    case(
        "masked_scatter.default",
        masked_scatter,
        self=X,
        mask=bools(3, 1),
        source=f32(5, 3, 4),
    ),
    case(
        "masked_scatter.default",
        masked_scatter,
        label="nowhere",
        self=X,
        mask=fixed("bool", [[False], [False], [False]]),
        source=f32(0, 4),
    ),
)
CASES: tuple[Case, ...] = SCATTERS
