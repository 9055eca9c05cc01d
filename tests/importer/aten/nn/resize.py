"""Resizing of images, and sampling at coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32
from tests.importer.aten.nn.windows import resampled

LINE, IMAGE, BLOCK = f32("n", 3, 5), f32("n", 2, 5, 4), f32("n", 2, 3, 4, 2)


def nearest(exact: bool, scales: Sequence[float] | None = None) -> Any:
    """Return a function that gives the interpolation matrix of nearest neighbors."""

    def rows(axis: int, old: int, new: int) -> Array:
        scale = 1 / scales[axis] if scales else old / new
        half = 0.5 if exact else 0.0
        places = [min(math.floor((i + half) * scale), old - 1) for i in range(new)]
        return np.eye(old)[places]

    return rows


def source(i: int, old: int, new: int, scale: float, aligned: bool) -> float:
    if aligned:
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    return (i + 0.5) * scale - 0.5


def linear(aligned: bool, scales: Sequence[float] | None = None) -> Any:
    """Return a function that gives the interpolation matrix of two neighbors."""

    def rows(axis: int, old: int, new: int) -> Array:
        out = np.zeros((new, old))
        scale = 1 / scales[axis] if scales else old / new
        for i in range(new):
            index = max(source(i, old, new, scale, aligned), 0.0)
            low = min(int(index), old - 1)
            part = index - low
            out[i, low] += 1 - part
            out[i, min(low + 1, old - 1)] += part
        return out

    return rows


def cubic(aligned: bool) -> Any:
    """Return a function that gives the interpolation matrix of four neighbors."""

    def weight(t: float, a: float = -0.75) -> float:
        t = abs(t)
        if t <= 1:
            return ((a + 2) * t - (a + 3)) * t * t + 1
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0

    def rows(axis: int, old: int, new: int) -> Array:
        out = np.zeros((new, old))
        for i in range(new):
            index = source(i, old, new, old / new, aligned)
            low = math.floor(index)
            for tap in range(low - 1, low + 3):
                out[i, min(max(tap, 0), old - 1)] += weight(index - tap)
        return out

    return rows


def to(rows: Any, *sizes: int) -> Any:
    """Return the function that resizes the last axes."""
    return lambda x: resampled(x, sizes, rows)


def sampled(x: Array, grid: Array) -> Any:
    """Return bilinear samples with zero padding and aligned corners."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for index in np.ndindex(n, *grid.shape[1:3]):
        gx, gy = grid[index].astype(np.float64)
        px, py = (gx + 1) / 2 * (w - 1), (gy + 1) / 2 * (h - 1)
        for i, j in np.ndindex(2, 2):
            a, b = math.floor(py) + i, math.floor(px) + j
            if 0 <= a < h and 0 <= b < w:
                part = (1 - abs(py - a)) * (1 - abs(px - b))
                out[(index[0], slice(None), *index[1:])] += part * x[index[0], :, a, b]
    return out.astype(x.dtype)


def placed(theta: Array) -> Any:
    """Return the coordinates of an affine grid of 3 x 4, with aligned corners."""
    ys, xs = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    points = np.stack([xs, ys, np.ones_like(xs)], -1)
    return np.einsum("hwk,nik->nhwi", points, theta).astype(np.float32)


CASES: tuple[Case, ...] = (
    case(
        "upsample_nearest1d.vec",
        to(nearest(False), 10),
        input=LINE,
        output_size=None,
        scale_factors=[2.0],
    ),
    case(
        "upsample_nearest1d.default", to(nearest(False), 8), self=LINE, output_size=[8]
    ),
    case(
        "upsample_nearest2d.vec",
        to(nearest(False), 7, 9),
        input=IMAGE,
        output_size=[7, 9],
        scale_factors=None,
    ),
    case(
        "upsample_nearest2d.vec",
        to(nearest(False, [1.5, 2.25]), 7, 9),
        label="scales",
        input=IMAGE,
        output_size=None,
        scale_factors=[1.5, 2.25],
    ),
    case(
        "upsample_nearest2d.default",
        to(nearest(False), 3, 2),
        self=IMAGE,
        output_size=[3, 2],
    ),
    case(
        "upsample_nearest3d.vec",
        to(nearest(False), 5, 6, 4),
        input=BLOCK,
        output_size=[5, 6, 4],
        scale_factors=None,
    ),
    case(
        "_upsample_nearest_exact1d.vec",
        to(nearest(True), 7),
        input=LINE,
        output_size=[7],
        scale_factors=None,
    ),
    case(
        "_upsample_nearest_exact2d.vec",
        to(nearest(True), 7, 9),
        input=IMAGE,
        output_size=[7, 9],
        scale_factors=None,
    ),
    case(
        "_upsample_nearest_exact2d.default",
        to(nearest(True), 3, 2),
        self=IMAGE,
        output_size=[3, 2],
    ),
    case(
        "upsample_linear1d.vec",
        to(linear(False), 8),
        input=LINE,
        output_size=[8],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "upsample_linear1d.vec",
        to(linear(True), 8),
        label="aligned",
        input=LINE,
        output_size=[8],
        align_corners=True,
        scale_factors=None,
    ),
    case(
        "upsample_bilinear2d.vec",
        to(linear(False), 7, 9),
        input=IMAGE,
        output_size=[7, 9],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "upsample_bilinear2d.vec",
        to(linear(False, [1.5, 2.25]), 7, 9),
        label="scales",
        input=IMAGE,
        output_size=None,
        align_corners=False,
        scale_factors=[1.5, 2.25],
    ),
    case(
        "upsample_bilinear2d.default",
        to(linear(False), 1, 3),
        label="small",
        self=IMAGE,
        output_size=[1, 3],
        align_corners=False,
    ),
    case(
        "upsample_bilinear2d.default",
        to(linear(True), 7, 9),
        self=IMAGE,
        output_size=[7, 9],
        align_corners=True,
    ),
    case(
        "upsample_trilinear3d.vec",
        to(linear(False), 5, 6, 3),
        input=BLOCK,
        output_size=[5, 6, 3],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "upsample_bicubic2d.vec",
        to(cubic(False), 7, 9),
        input=IMAGE,
        output_size=[7, 9],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "upsample_bicubic2d.vec",
        to(cubic(True), 7, 9),
        label="aligned",
        input=IMAGE,
        output_size=[7, 9],
        align_corners=True,
        scale_factors=None,
    ),
    case(
        "grid_sampler_2d.default",
        sampled,
        input=IMAGE,
        grid=f32("n", 3, 2, 2, low=-1.2, high=1.2),
        interpolation_mode=0,
        padding_mode=0,
        align_corners=True,
    ),
    case(
        "grid_sampler.default",
        sampled,
        input=IMAGE,
        grid=f32("n", 3, 2, 2, low=-1.2, high=1.2),
        interpolation_mode=0,
        padding_mode=0,
        align_corners=True,
    ),
    case(
        "affine_grid_generator.default",
        placed,
        theta=f32(2, 2, 3),
        size=[2, 5, 3, 4],
        align_corners=True,
    ),
)
