"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, distinct, f32, fixed
from tests.importer.aten.nn.windows import Ints, pooled

LINE, IMAGE, BLOCK = f32("n", 3, 9), f32("n", 3, 7, 8), f32("n", 2, 5, 4, 6)
APART = distinct("n", 2, 6, 7)


def largest(*rest: Any, **options: Any) -> Any:
    """Return the maxima of windows."""
    return lambda x: pooled(np.nanmax, x, *rest, **options)


def average(*rest: Any, counted: bool = True, **options: Any) -> Any:
    """Return the means of windows, with padding counted as zeros or left out."""
    options["fill"] = 0.0 if counted else np.nan
    return lambda x: pooled(np.nanmean, x, *rest, **options)


def with_places(*rest: Any, **options: Any) -> Any:
    """Return the maxima of windows and their indices in the plane."""

    def run(x: Array) -> Any:
        values = pooled(np.nanmax, x, *rest, **options)
        count = len(rest[0])
        planes = x.reshape(*x.shape[:-count], -1)
        result = np.zeros(values.shape, np.int64)
        for index in np.ndindex(*values.shape):
            plane = planes[index[: x.ndim - count]]
            result[index] = np.flatnonzero(plane == values[index])[0]
        return values, result

    return run


def adaptive(function: Any, sizes: Ints) -> Any:
    """Return the adaptive pooling of the last axes to ``sizes``."""

    def run(x: Array) -> Array:
        out = x.astype(np.float64)
        for axis, size in enumerate(sizes, x.ndim - len(sizes)):
            extent = x.shape[axis]
            ends = [
                (i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)
            ]
            parts = [np.take(out, range(*end), axis) for end in ends]
            out = np.stack([function(part, axis=axis) for part in parts], axis)
        return out.astype(x.dtype)

    return run


def adaptive_with_places(sizes: Ints) -> Any:
    """Return adaptive maxima and their indices in the plane."""

    def run(x: Array) -> Any:
        values = adaptive(np.max, sizes)(x)
        planes = x.reshape(*x.shape[: -len(sizes)], -1)
        results = [
            np.flatnonzero(planes[index[: x.ndim - len(sizes)]] == values[index])[0]
            for index in np.ndindex(*values.shape)
        ]
        return values, np.array(results).reshape(values.shape)

    return run


def unpooled(x: Array, index: Array) -> Array:
    out = np.zeros((*x.shape[:2], 30), x.dtype)
    np.put_along_axis(
        out, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2
    )
    return out.reshape(*x.shape[:2], 5, 6)


PLACES = np.arange(30).reshape(5, 6)[::2, 1::2]

CASES: tuple[Case, ...] = (
    case(
        "max_pool1d.default",
        largest([3], [2], [1]),
        self=LINE,
        kernel_size=[3],
        stride=[2],
        padding=[1],
    ),
    case(
        "max_pool2d.default",
        largest([3, 2], [2, 2], [1, 0], [1, 2]),
        self=IMAGE,
        kernel_size=[3, 2],
        stride=[2, 2],
        padding=[1, 0],
        dilation=[1, 2],
    ),
    case(
        "max_pool2d.default",
        largest([3, 3], [2, 2], [1, 1], ceil=True),
        label="ceil",
        self=f32("n", 3, 6, 8),
        kernel_size=[3, 3],
        stride=[2, 2],
        padding=[1, 1],
        ceil_mode=True,
    ),
    case(
        "max_pool2d.default",
        lambda x: largest([2, 2], [2, 2], [0, 0])(x),
        label="alone",
        self=f32(3, 7, 8),
        kernel_size=[2, 2],
    ),
    case(
        "max_pool3d.default",
        largest([2, 2, 3], [2, 1, 2], [1, 0, 1]),
        self=BLOCK,
        kernel_size=[2, 2, 3],
        stride=[2, 1, 2],
        padding=[1, 0, 1],
    ),
    case(
        "max_pool2d_with_indices.default",
        with_places([3, 2], [2, 2], [1, 1]),
        self=APART,
        kernel_size=[3, 2],
        stride=[2, 2],
        padding=[1, 1],
    ),
    case(
        "max_pool3d_with_indices.default",
        with_places([2, 2, 2], [2, 2, 2], [0, 0, 0]),
        self=distinct("n", 2, 4, 4, 4),
        kernel_size=[2, 2, 2],
    ),
    case(
        "max_pool1d_with_indices.default",
        with_places([3], [2], [1]),
        self=distinct("n", 2, 9),
        kernel_size=[3],
        stride=[2],
        padding=[1],
    ),
    case(
        "avg_pool1d.default",
        average([3], [2], [1]),
        self=LINE,
        kernel_size=[3],
        stride=[2],
        padding=[1],
    ),
    case(
        "avg_pool2d.default",
        average([3, 2], [2, 2], [1, 1]),
        self=IMAGE,
        kernel_size=[3, 2],
        stride=[2, 2],
        padding=[1, 1],
    ),
    case(
        "avg_pool2d.default",
        average([3, 2], [2, 2], [1, 1], counted=False),
        label="inside",
        self=IMAGE,
        kernel_size=[3, 2],
        stride=[2, 2],
        padding=[1, 1],
        count_include_pad=False,
    ),
    case(
        "avg_pool2d.default",
        average([3, 3], [2, 2], [1, 1], ceil=True),
        label="ceil",
        self=f32("n", 3, 6, 8),
        kernel_size=[3, 3],
        stride=[2, 2],
        padding=[1, 1],
        ceil_mode=True,
    ),
    case(
        "avg_pool2d.default",
        average([2, 2], [2, 2], [0, 0], ceil=True, counted=False),
        label="ceil-inside",
        self=IMAGE,
        kernel_size=[2, 2],
        ceil_mode=True,
        count_include_pad=False,
    ),
    case(
        "avg_pool2d.default",
        lambda x: average([2, 2], [2, 2], [0, 0])(x) * np.float32(4 / 3),
        label="divisor",
        self=IMAGE,
        kernel_size=[2, 2],
        divisor_override=3,
    ),
    case(
        "avg_pool3d.default",
        average([2, 2, 3], [2, 1, 2], [1, 0, 1]),
        self=BLOCK,
        kernel_size=[2, 2, 3],
        stride=[2, 1, 2],
        padding=[1, 0, 1],
    ),
    case(
        "adaptive_avg_pool1d.default",
        adaptive(np.mean, [4]),
        self=LINE,
        output_size=[4],
    ),
    case(
        "adaptive_avg_pool2d.default",
        adaptive(np.mean, [3, 5]),
        self=IMAGE,
        output_size=[3, 5],
    ),
    case(
        "adaptive_avg_pool2d.default",
        adaptive(np.mean, [1, 1]),
        label="one",
        self=f32("n", 3, "n", 8),
        output_size=[1, 1],
    ),
    case(
        "_adaptive_avg_pool2d.default",
        adaptive(np.mean, [3, 5]),
        self=IMAGE,
        output_size=[3, 5],
    ),
    case(
        "adaptive_avg_pool3d.default",
        adaptive(np.mean, [2, 3, 4]),
        self=BLOCK,
        output_size=[2, 3, 4],
    ),
    case(
        "_adaptive_avg_pool3d.default",
        adaptive(np.mean, [2, 1, 3]),
        self=BLOCK,
        output_size=[2, 1, 3],
    ),
    case(
        "adaptive_max_pool1d.default",
        adaptive_with_places([3]),
        self=distinct("n", 2, 9),
        output_size=[3],
    ),
    case(
        "adaptive_max_pool2d.default",
        adaptive_with_places([3, 1]),
        self=APART,
        output_size=[3, 1],
    ),
    case(
        "adaptive_max_pool3d.default",
        adaptive_with_places([1, 1, 1]),
        self=distinct("n", 2, 3, 2, 2),
        output_size=[1, 1, 1],
    ),
    case(
        "adaptive_max_pool3d.default",
        adaptive_with_places([2, 3, 2]),
        label="overlapping",
        self=distinct(2, 5, 4, 3),
        output_size=[2, 3, 2],
    ),
    case(
        "adaptive_max_pool2d.default",
        adaptive_with_places([3, 2]),
        label="varying",
        self=distinct("n", 3, "n", 7),
        output_size=[3, 2],
    ),
    case(
        "max_unpool2d.default",
        unpooled,
        self=f32(2, 3, 3, 3),
        indices=fixed("int64", np.broadcast_to(PLACES, (2, 3, 3, 3))),
        output_size=[5, 6],
    ),
)
