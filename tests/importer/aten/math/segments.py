"""Integrals, and reductions of segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, fixed
from tests.importer.aten.inputs import F32

Y = f32("n", 4, 3)
POSITIONS = fixed("float32", [0.5, 1.0, 3.0, 3.5])
LENGTHS = fixed("int64", [2, 0, 3, 1])
OFFSETS = fixed("int32", [0, 2, 2, 5, 6])
ROWS = f32(6, 2)
EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}


def areas(dx: Any, axis: int, is_cumulative: bool = False) -> Any:
    """Return the function that sums areas below line segments."""

    def run(y: Array, x: Array | None = None) -> Array:
        y = np.moveaxis(y, axis, -1)
        gaps = dx if x is None else np.diff(x if x.ndim == 1 else x.swapaxes(axis, -1))
        parts = (y[..., 1:] + y[..., :-1]) * 0.5 * gaps
        if is_cumulative:
            return np.moveaxis(parts.cumsum(-1), -1, axis).astype(F32)
        return np.asarray(parts.sum(-1), F32)

    return run


def segments(kind: str, initial: float | None = None) -> Any:
    """Return the function that reduces the segments of ``LENGTHS``."""

    def reduce(rows: Array) -> Array:
        if initial is None:
            empty = np.full(2, EMPTY[kind], F32)
            return np.asarray(getattr(np, kind)(rows, 0)) if len(rows) else empty
        first = np.full((1, 2), initial, F32)
        if kind == "mean":  # PyTorch divides by the number of rows alone.
            total = np.concatenate([first, rows]).sum(0)
            return np.asarray(total / F32(max(len(rows), 1)))
        return np.asarray(getattr(np, kind)(np.concatenate([first, rows]), 0))

    def run(x: Array, marks: Array) -> Array:
        return np.stack([reduce(part) for part in np.split(x, [2, 2, 5])])

    return run


CASES: tuple[Case, ...] = (
    case("trapezoid.x", areas(1, 1), y=Y, x=POSITIONS, dim=1),
    case(
        "trapezoid.x", areas(1, 1), label="wide", y=f32(2, 4, 3), x=f32(2, 4, 3), dim=1
    ),
    case("cumulative_trapezoid.dx", areas(0.5, 2, True), y=Y, dx=0.5),
    case("cumulative_trapezoid.x", areas(1, 1, True), y=Y, x=POSITIONS, dim=-2),
    *(
        case(
            "segment_reduce.default",
            segments(kind),
            label=kind,
            data=ROWS,
            reduce=kind,
            lengths=LENGTHS,
        )
        for kind in EMPTY
    ),
    case(
        "segment_reduce.default",
        segments("max", 0.25),
        label="offsets",
        data=ROWS,
        reduce="max",
        offsets=OFFSETS,
        initial=0.25,
    ),
    case(
        "segment_reduce.default",
        segments("mean", 1.5),
        label="initial",
        data=ROWS,
        reduce="mean",
        lengths=LENGTHS,
        initial=1.5,
    ),
)
