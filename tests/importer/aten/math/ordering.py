"""Sorting, cumulative sums and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import (
    Case,
    bools,
    case,
    distinct,
    fixed,
    i32,
    i64,
)
from tests.importer.aten.inputs import WHOLE, X

UNIQUE = distinct("n", 3, 5)


def ordered(axis: int, descending: bool = False) -> Callable[..., Any]:
    """Return sorted values with their indices."""

    def run(x: Any) -> Any:
        order = np.argsort(-x if descending else x, axis=axis, kind="stable")
        return np.take_along_axis(x, order, axis), order

    return run


def first(k: int, axis: int, descending: bool = True) -> Callable[..., Any]:
    """Return the first sorted values with their indices."""

    def run(x: Any) -> Any:
        values, order = ordered(axis, descending)(x)
        return np.take(values, range(k), axis), np.take(order, range(k), axis)

    return run


def ranked(rank: int, axis: int, kept: bool = False) -> Callable[..., Any]:
    """Return the value of a rank, with its index."""

    def run(x: Any) -> Any:
        at: Any = [rank] if kept else rank
        values, order = ordered(axis)(x)
        return np.take(values, at, axis), np.take(order, at, axis)

    return run


def lower_median(x: Any) -> Any:
    return np.sort(x.ravel())[(x.size - 1) // 2]


def median_of_first(x: Any) -> Any:
    return ranked((len(x) - 1) // 2, 0)(x)


SORTED = fixed("float32", [[-1.0, 0.5, 1.0, 2.0]])
COUNTS = fixed("int64", [[3, 1, 3], [2, 1, 2]])


def counted(x: Any) -> Any:
    result, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return result, inverse.reshape(x.shape), counts


def running(x: Any) -> Any:
    return np.log(np.cumsum(np.exp(x), 1))


def mode(axis: int, is_kept: bool = False) -> Callable[..., Any]:
    """Return the smallest of the most frequent elements, and its last index."""

    def run(x: Any) -> Any:
        x = np.moveaxis(x, axis, -1)
        counts = (x[..., None] == x[..., None, :]).sum(-1)
        is_most = counts == counts.max(-1, keepdims=True)
        value = np.where(is_most, x, x.max() + 1).min(-1, keepdims=True)
        index = x.shape[-1] - 1 - (x == value)[..., ::-1].argmax(-1)
        if not is_kept:
            return value[..., 0], index
        return np.moveaxis(value, -1, axis), np.expand_dims(index, axis)

    return run


def quantiles(
    dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Callable[..., Any]:
    """Return the function of several quantiles."""

    def run(x: Any, q: Any) -> Any:
        options: Any = {"axis": dim, "keepdims": keepdim, "method": interpolation}
        return np.quantile(x, q, **options).astype(np.float32)

    return run


QUANTILES: dict[str, dict[str, Any]] = {
    "flat": {},
    "flat kept": {"keepdim": True},
    "axis": {"dim": 1},
    "kept": {"dim": -1, "keepdim": True},
    "midpoint": {"dim": 1, "interpolation": "midpoint"},
    "first": {"dim": 0, "keepdim": True},
}

CASES: tuple[Case, ...] = (
    case("mode.default", mode(1), self=i64("n", 7, 3, low=0, high=3), dim=1),
    case("mode.default", mode(-1, True), label="kept", self=X, keepdim=True),
    case("sort.default", ordered(1, True), self=UNIQUE, dim=1, descending=True),
    case("sort.default", ordered(-1), label="last", self=UNIQUE),
    case(
        "sort.default",
        ordered(0),
        label="int",
        self=distinct("n", 3, dtype="int64"),
        dim=0,
    ),
    case("sort.stable", ordered(1), self=WHOLE, stable=True, dim=1),
    case(
        "sort.stable",
        ordered(1, True),
        label="down",
        self=WHOLE,
        stable=True,
        dim=-2,
        descending=True,
    ),
    case("argsort.default", lambda x: ordered(1)(x)[1], self=UNIQUE, dim=1),
    case(
        "argsort.stable",
        lambda x: ordered(2, True)(x)[1],
        self=WHOLE,
        stable=True,
        dim=2,
        descending=True,
    ),
    case("msort.default", lambda x: np.sort(x, 0), self=X),
    case("topk.default", first(2, 1), self=UNIQUE, k=2, dim=1),
    case(
        "topk.default",
        first(3, -1, False),
        label="least",
        self=UNIQUE,
        k=3,
        largest=False,
    ),
    case("kthvalue.default", ranked(1, 1), self=UNIQUE, k=2, dim=1),
    case(
        "kthvalue.default",
        ranked(2, 2, True),
        label="kept",
        self=UNIQUE,
        k=3,
        keepdim=True,
    ),
    case("median.dim", ranked(1, 1), self=UNIQUE, dim=1),
    case("median.dim", median_of_first, label="varying", self=UNIQUE, dim=0),
    case("median.default", lower_median, self=distinct("n", 2, 3)),
    case("cumsum.default", lambda x: np.cumsum(x, 1), self=X, dim=1),
    case(
        "cumsum.default",
        lambda x: np.cumsum(x, 2, np.int64),
        label="bool",
        self=bools("n", 3, 4),
        dim=-1,
    ),
    case(
        "cumsum.default",
        lambda x: np.cumsum(x, 0, np.float64),
        label="dtype",
        self=X,
        dim=0,
        dtype=np.dtype("float64"),
    ),
    case("cumprod.default", lambda x: np.cumprod(x, 1), self=X, dim=-2),
    case(
        "cumprod.default",
        lambda x: np.cumprod(x, 1, np.int64),
        label="int",
        self=i32("n", 3, 4),
        dim=1,
    ),
    case("logcumsumexp.default", running, self=X, dim=1),
    case(
        "logcumsumexp.default",
        np.logaddexp.accumulate,
        label="wide",
        self=fixed("float32", [-np.inf, -200.0, -201.0, 0.0, 90.0, -np.inf, 95.0]),
        dim=0,
    ),
    case("diff.default", lambda x: np.diff(x, 2, 2), self=X, n=2),
    case(
        "diff.default",
        lambda x, a: np.diff(x, 1, 1, append=a),
        label="append",
        self=WHOLE,
        n=1,
        dim=1,
        append=i64("n", 1, 4),
    ),
    case(
        "searchsorted.Tensor",
        lambda s, x: (s[:, None] < x[..., None]).sum(-1),
        sorted_sequence=SORTED,
        self=fixed("float32", [[0.5, 3.0, -2.0]]),
    ),
    case(
        "searchsorted.Tensor",
        lambda s, x: (s[:, None] <= x[..., None]).sum(-1, dtype=np.int32),
        label="right",
        sorted_sequence=SORTED,
        self=fixed("float32", [[0.5, 3.0, -2.0]]),
        out_int32=True,
        right=True,
    ),
    case(
        "searchsorted.Scalar",
        lambda s: np.searchsorted(s, 0.5),
        sorted_sequence=fixed("float32", [-1.0, 0.5, 0.5, 1.5]),
        self=0.5,
    ),
    case(
        "searchsorted.Scalar",
        lambda s: np.searchsorted(s, 2, "right"),
        label="right",
        sorted_sequence=fixed("int64", [-1, 2, 2, 5]),
        self=2,
        right=True,
    ),
    case(
        "searchsorted.Tensor",
        np.searchsorted,
        label="of rank 0",
        sorted_sequence=fixed("float32", [-1.0, 0.5, 1.5]),
        self=fixed("float32", 0.7),
    ),
    case(
        "bucketize.Scalar",
        lambda b: np.searchsorted(b, 0.7),
        self=0.7,
        boundaries=fixed("float32", [-1.0, 0.5, 1.5]),
    ),
    case(
        "isin.Scalar_Tensor",
        lambda y: np.isin(2, y),
        element=2,
        test_elements=WHOLE,
    ),
    case(
        "isin.Scalar_Tensor",
        lambda y: ~np.isin(2.5, y),
        label="invert",
        element=2.5,
        test_elements=fixed("float32", [1.0, 2.5, 3.0]),
        invert=True,
    ),
    case(
        "bucketize.Tensor",
        lambda x, b: np.searchsorted(b, x),
        self=X,
        boundaries=fixed("float32", [-1.0, 0.5, 1.5]),
    ),
    case(
        "bucketize.Tensor",
        lambda x, b: np.searchsorted(b, x, "right"),
        label="right",
        self=WHOLE,
        boundaries=fixed("int64", [-1, 2, 5]),
        right=True,
    ),
    case("isin.Tensor_Tensor", np.isin, elements=WHOLE, test_elements=i64(2, 3)),
    case(
        "isin.Tensor_Tensor",
        lambda x, y: ~np.isin(x, y),
        label="invert",
        elements=WHOLE,
        test_elements=i64(2, 3),
        invert=True,
    ),
    case(
        "_unique2.default",
        counted,
        self=COUNTS,
        sorted=True,
        return_inverse=True,
        return_counts=True,
    ),
    *(
        case(
            "quantile.default",
            quantiles(**options),
            label=label,
            self=X,
            q=fixed("float32", [0.1, 0.75]),
            **options,
        )
        for label, options in QUANTILES.items()
    ),
    case(
        "quantile.scalar",
        lambda x: np.quantile(x, 0.3, axis=1).astype(np.float32),
        self=X,
        q=0.3,
        dim=1,
    ),
    case(
        "quantile.scalar",
        lambda x: np.quantile(x, 0.7, keepdims=True).astype(np.float32),
        label="all",
        self=X,
        q=0.7,
        keepdim=True,
    ),
    case(
        "quantile.scalar",
        lambda x: np.quantile(x, 0.3, axis=0, method="lower"),
        label="lower",
        self=X,
        q=0.3,
        dim=0,
        interpolation="lower",
    ),
    case(
        "trapezoid.dx",
        lambda x: np.float32(0.5) * (x[..., 1:] + x[..., :-1]).sum(-1) * 2,
        y=X,
        dx=2.0,
    ),
)
