"""Sums, means, extremes, deviations and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import Case, bools, case, distinct, f32, fixed, i32, i64
from tests.importer.aten.inputs import SPECIAL, WHOLE, X

UNIQUE = distinct("n", 3, 4)
F64 = np.dtype("float64")
I64 = np.dtype("int64")
ROW = f32("n", 4, 3, low=0.5)


def whole(name: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a reduction that takes axes."""

    def over(axis: Any, keepdims: bool = False) -> Callable[..., Any]:
        return lambda x: f(x, axis=axis, keepdims=keepdims)

    target = f"{name}.dim_IntList" if name == "sum" else f"{name}.dim"
    return [
        case(f"{name}.default", lambda x: f(x), self=X),
        case(target, over(1), self=X, dim=[1]),
        case(
            target, over((0, 2), True), label="kept", self=X, dim=[0, -1], keepdim=True
        ),
        case(target, over(None), label="none", self=X, dim=None),
        case(
            target,
            lambda x: f(x.astype(F64), axis=2),
            label="dtype",
            self=X,
            dim=[-1],
            dtype=F64,
        ),
    ]


def extremes(name: str, arg: str, f: Any, place: Any) -> list[Case]:
    """Return the cases of a maximum or minimum and its index."""

    def both(x: Any) -> Any:
        return f(x, axis=1, keepdims=True), place(x, axis=1, keepdims=True)

    def flat(x: Any) -> Any:
        return np.asarray(place(x)).reshape(1, 1, 1)

    return [
        case(f"{name}.default", f, self=UNIQUE),
        case(f"{name}.default", f, label="int", self=WHOLE),
        case(
            f"{name}.dim",
            lambda x: (f(x, axis=2), place(x, axis=2)),
            self=UNIQUE,
            dim=-1,
        ),
        case(f"{name}.dim", both, label="kept", self=UNIQUE, dim=1, keepdim=True),
        case(f"a{name}.default", f, self=WHOLE),
        case(
            f"a{name}.default",
            lambda x: f(x, axis=(0, 2), keepdims=True),
            label="kept",
            self=X,
            dim=[0, -1],
            keepdim=True,
        ),
        case(f"{arg}.default", place, self=UNIQUE),
        case(f"{arg}.default", flat, label="kept", self=UNIQUE, keepdim=True),
        case(
            f"{arg}.default",
            lambda x: place(x, axis=1),
            label="dim",
            self=UNIQUE,
            dim=-2,
        ),
    ]


def truths(name: str, f: Any) -> list[Case]:
    """Return the cases of a logical reduction."""
    mask = bools("n", 3, 2)
    return [
        case(f"{name}.default", f, self=mask),
        case(f"_is_{name}_true.default", f, self=mask),
        case(f"{name}.dim", lambda x: f(x, axis=2), self=mask, dim=-1),
        case(
            f"{name}.dims",
            lambda x: f(x, axis=(0, 2), keepdims=True),
            self=i64("n", 3, 2, low=0, high=1),
            dim=[0, 2],
            keepdim=True,
        ),
        case(f"{name}.default", f, label="float", self=X),
    ]


def spreads(name: str, f: Any) -> list[Case]:
    """Return the cases of a variance or deviation, alone and with the mean."""

    def paired(x: Any) -> Any:
        return f(x, axis=1, ddof=1), x.mean(axis=1)

    return [
        case(f"{name}.correction", lambda x: f(x, ddof=1), self=X),
        case(
            f"{name}.correction",
            lambda x: f(x, axis=(0, 2), ddof=0, keepdims=True),
            label="none",
            self=X,
            dim=[0, -1],
            correction=0,
            keepdim=True,
        ),
        case(f"{name}.dim", lambda x: f(x, axis=1), self=X, dim=[1], unbiased=False),
        case(f"{name}_mean.dim", paired, self=X, dim=[1]),
        case(
            f"{name}_mean.correction",
            lambda x: (f(x, axis=2, ddof=2), x.mean(axis=2)),
            self=X,
            dim=[-1],
            correction=2,
        ),
    ]


def norm(order: Any) -> Callable[..., Any]:
    """Return the norm of rows of an order."""
    return lambda x: np.linalg.norm(x, order, axis=1).astype(np.float32)


def counted(x: Any) -> Any:
    return np.sum(x != 0)


CASES: tuple[Case, ...] = (
    *whole("sum", np.sum),
    *whole("mean", np.mean),
    case("sum.default", lambda x: x.sum(dtype=I64), label="bool", self=bools("n", 3)),
    case(
        "sum.dim_IntList",
        lambda x: x.sum(1, I64),
        label="i32",
        self=i32("n", 3),
        dim=[1],
    ),
    case(
        "mean.dim",
        lambda x: x.mean(1).astype(np.float32),
        label="int",
        self=WHOLE,
        dim=[1],
        dtype=np.dtype("float32"),
    ),
    case("prod.default", np.prod, self=X),
    case(
        "prod.dim_int",
        lambda x: x.prod(1, keepdims=True),
        self=WHOLE,
        dim=1,
        keepdim=True,
    ),
    *extremes("max", "argmax", np.max, np.argmax),
    *extremes("min", "argmin", np.min, np.argmin),
    case("aminmax.default", lambda x: (x.min(1), x.max(1)), self=X, dim=1),
    *truths("any", np.any),
    *truths("all", np.all),
    *spreads("var", np.var),
    *spreads("std", np.std),
    case(
        "logsumexp.default", lambda x: np.log(np.exp(x).sum((0, 2))), self=X, dim=[0, 2]
    ),
    case(
        "logsumexp.default",
        lambda x: np.log(np.exp(x).sum(1, keepdims=True)),
        label="kept",
        self=X,
        dim=[1],
        keepdim=True,
    ),
    case("count_nonzero.default", counted, self=i64("n", 3, low=0, high=2)),
    case(
        "count_nonzero.dim_IntList",
        lambda x: np.count_nonzero(x, axis=1),
        self=i64("n", 3, 4, low=0, high=2),
        dim=[1],
    ),
    case("nansum.default", np.nansum, self=fixed("float32", [1.5, np.nan, 2])),
    case("nanmean.default", lambda x: np.nanmean(x, axis=2), self=SPECIAL, dim=[-1]),
    *(
        case(
            "linalg_vector_norm.default",
            norm(order),
            label=str(order),
            self=ROW,
            ord=float(order),
            dim=[1],
        )
        for order in (1, 2, 3, 0, np.inf, -np.inf)
    ),
    case("linalg_vector_norm.default", lambda x: np.sqrt((x * x).sum()), self=X),
    case("norm.ScalarOpt_dim", norm(2), self=ROW, p=2, dim=[1]),
    case("norm.Scalar", lambda x: np.abs(x).sum(), self=X, p=1),
    case(
        "linalg_norm.default",
        lambda x: np.sqrt((x * x).sum((1, 2))),
        self=X,
        dim=[1, 2],
    ),
    case("linalg_matrix_norm.str_ord", lambda x: np.sqrt((x * x).sum((1, 2))), self=X),
    case(
        "linalg_matrix_norm.default", lambda x: np.abs(x).sum(1).max(1), self=X, ord=1
    ),
    case(
        "linalg_matrix_norm.default",
        lambda x: np.abs(x).sum(2, keepdims=True).max(1, keepdims=True),
        label="rows",
        self=X,
        ord=float("inf"),
        keepdim=True,
    ),
    case(
        "dist.default",
        lambda x, y: (np.abs(x - y) ** 3).sum() ** np.float32(1 / 3),
        self=X,
        other=f32(3, 1),
        p=3.0,
    ),
    case(
        "pairwise_distance.default",
        lambda x, y: np.sqrt(((x - y + np.float32(1e-6)) ** 2).sum(-1)),
        x1=X,
        x2=f32("n", 3, 4),
    ),
    case(
        "cdist.default",
        lambda x, y: np.sqrt(((x[:, :, None] - y[:, None]) ** 2).sum(-1)),
        x1=X,
        x2=f32("n", 2, 4),
    ),
    case(
        "cdist.default",
        lambda x, y: np.abs(x[:, :, None] - y[:, None]).sum(-1),
        label="1",
        x1=X,
        x2=f32("n", 2, 4),
        p=1.0,
    ),
    case(
        "_cdist_forward.default",
        lambda x, y: np.abs(x[:, :, None] - y[:, None]).max(-1),
        x1=X,
        x2=f32("n", 2, 4),
        p=float("inf"),
        compute_mode=None,
    ),
    case(
        "_pdist_forward.default",
        lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))[np.triu_indices(4, 1)],
        self=f32(4, 3),
        p=2.0,
    ),
    case(
        "pdist.default",
        lambda x: np.abs(x[:, None] - x[None]).sum(-1)[np.triu_indices(4, 1)],
        self=f32(4, 3),
        p=1.0,
    ),
    case(
        "renorm.default",
        lambda x: x
        * np.minimum(1, 1.5 / np.sqrt((x * x).sum((0, 2), keepdims=True))).astype(
            np.float32
        ),
        self=X,
        p=2.0,
        dim=1,
        maxnorm=1.5,
    ),
    case(
        "cosine_similarity.default",
        lambda x, y: (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)),
        x1=X,
        x2=f32("n", 3, 4),
        dim=1,
    ),
)
