"""Counts, cumulative extremes, margin losses, and bounded rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import (
    Case,
    case,
    f32,
    f64,
    first_result,
    fixed,
    i64,
    with_changed,
)
from tests.importer.aten.inputs import F32

X = i64("n", 7, 3, low=-2, high=3)
LEVELS = fixed(
    "float32", [[0.1, 0.6, 2.0, -1.0], [3.9, 4.0, 2.7, 9.0], [0.0, 1.3, 1.9, 3.3]]
)


def running(function: Any, axis: int) -> Any:
    """Return cumulative extremes, and their last indices."""

    def run(x: Array) -> Any:
        values = function.accumulate(x, axis)
        moved, best = np.moveaxis(x, axis, 0), np.moveaxis(values, axis, 0)
        result = np.zeros(moved.shape, np.int64)
        for i in range(len(moved)):
            for j in range(i + 1):
                result[i] = np.where(moved[j] == best[i], j, result[i])
        return values, np.moveaxis(result, 0, axis)

    return run


def histogram(bins: int, low: float, high: float) -> Any:
    def run(x: Array) -> Any:
        ends = (low, high) if low != high else (x.min(), x.max())
        return np.histogram(x, bins, ends)[0].astype(x.dtype)

    return run


def margins(p: int, margin: float, end: Any) -> Any:
    """Return how far other classes are within a margin of the target."""

    def run(x: Array, target: Array, weight: Array | None = None) -> Array:
        rows, own = np.arange(len(x)), x[np.arange(len(x)), target][:, None]
        near = np.maximum(0, margin - own + x) ** p
        near = near if weight is None else near * weight[target][:, None]
        near[rows, target] = 0
        return np.asarray(end(near.sum(1) / x.shape[1])).astype(F32)

    return run


def labels(end: Any) -> Any:
    """Return how far other classes are within 1 of the listed targets."""

    def run(x: Array, target: Array) -> Array:
        result = np.zeros(len(x))
        for n, row in enumerate(target):
            count = int(np.argmax(row < 0)) if (row < 0).any() else len(row)
            own = list(row[:count])
            for i in own:
                for j in set(range(x.shape[1])) - set(own):
                    result[n] += max(0, 1 - (x[n, i] - x[n, j])) / x.shape[1]
        return np.asarray(end(result)).astype(F32)

    return run


def bounded(length: float, power: float) -> Any:
    """Return rows scaled to a bounded norm."""

    def run(x: Array, index: Array) -> Any:
        out = x.copy()
        for row in np.unique(index):
            size = (abs(x[row]) ** power).sum() ** (1 / power)
            if size > length:
                out[row] = x[row] * length / size
        return out, out

    return run


def triangular(upper: bool, left: bool) -> Any:
    def run(a: Array, b: Array) -> Any:
        part = np.triu(a) if upper else np.tril(a)
        return np.linalg.solve(part, b) if left else b @ np.linalg.inv(part)

    return run


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-1, 1, shape) + 3 * np.eye(shape[-1])


MATRIX = type(f32())("float32", ("n", 3, 3), heavy)

LABELS = fixed("int64", [[3, 0, -1, 1], [-1, 2, 0, 1], [2, 1, 0, 3]])
HOLES = fixed(
    "float32",
    [[[1.5, np.nan, -2.0, 4.0], [np.nan, np.nan, 3.0, 0.5], [2.0, 1.0, 7.0, np.nan]]],
)

CASES: tuple[Case, ...] = (
    *(
        case(
            "multilabel_margin_loss.default",
            labels(end),
            label=str(reduction),
            self=f32(3, 4),
            target=LABELS,
            reduction=reduction,
        )
        for reduction, end in ((0, np.array), (1, np.mean), (2, np.sum))
    ),
    first_result(
        "nanmedian.dim",
        lambda x: np.nanpercentile(x, 50, 2, method="lower").astype(F32),
        self=HOLES,
        dim=-1,
    ),
    first_result(
        "nanmedian.dim",
        lambda x: np.nanpercentile(x, 50, 1, method="lower", keepdims=True).astype(F32),
        label="kept",
        self=f32("n", 6, 3),
        dim=1,
        keepdim=True,
    ),
    case(
        "nanmedian.default",
        lambda x: np.nanpercentile(x, 50, method="lower").astype(F32),
        self=HOLES,
    ),
    case("bincount.default", np.bincount, self=i64(9, low=0, high=5)),
    case(
        "bincount.default",
        lambda x: np.bincount(x, minlength=8),
        label="longer",
        self=i64(9, low=0, high=5),
        minlength=8,
    ),
    *(
        case(
            "bincount.default",
            lambda x, w: np.bincount(x, w).astype(w.dtype),
            label=label,
            self=i64(9, low=0, high=5),
            weights=weights,
        )
        for label, weights in (("weights", f64(9)), ("single", f32(9)))
    ),
    *(
        case(
            "histc.default",
            histogram(*ends),
            label=str(ends),
            self=LEVELS,
            bins=ends[0],
            min=ends[1],
            max=ends[2],
        )
        for ends in ((4, 0, 4), (3, -1.5, 2.5), (5, 0, 0))
    ),
    *(
        case(
            f"cum{name}.default", running(function, axis), label=label, self=x, dim=dim
        )
        for name, function in (("max", np.maximum), ("min", np.minimum))
        for label, x, dim, axis in (
            ("ties", X, 1, 1),
            ("last", f32("n", 3, 5), -1, 2),
            ("first", f32("n", 3, 5), 0, 0),
        )
    ),
    case(
        "multi_margin_loss.default",
        margins(1, 1.0, np.mean),
        self=f32("n", 4),
        target=i64("n", low=0, high=3),
    ),
    *(
        case(
            "multi_margin_loss.default",
            margins(2, 0.7, end),
            label=str(reduction),
            self=f32("n", 4),
            target=i64("n", low=0, high=3),
            p=2,
            margin=0.7,
            weight=f32(4, low=0.5),
            reduction=reduction,
        )
        for reduction, end in ((0, np.array), (2, np.sum))
    ),
    *(
        with_changed(
            "self",
            case(
                "embedding_renorm_.default",
                bounded(1.5, power),
                label=str(power),
                self=f32(6, 3),
                indices=i64("n", 2, low=0, high=4),
                max_norm=1.5,
                norm_type=power,
            ),
        )
        for power in (2.0, 1.0)
    ),
    *(
        case(
            "linalg_solve_triangular.default",
            triangular(upper, left),
            label=f"{upper} {left}",
            tolerance=1e-4,
            self=MATRIX,
            B=f32("n", 3, 2) if left else f32("n", 2, 3),
            upper=upper,
            left=left,
        )
        for upper in (True, False)
        for left in (True, False)
    ),
)
