"""Strided views."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, N, case, f32, with_changed


def strided(size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0) -> Any:
    """Return the elements of a strided view of a tensor's memory."""

    def run(x: Array) -> Array:
        flat = x.ravel()
        out = np.zeros(size, x.dtype)
        for index in np.ndindex(*size):
            out[index] = flat[offset + int(np.dot(index, stride))]
        return out

    return run


def rows(size: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """Return the same of each row."""
    return lambda x: np.stack([strided(size, stride)(row) for row in x])


def scattered(x: Array, y: Array) -> Array:
    flat = x.ravel().copy()
    for i, j in np.ndindex(*y.shape):
        flat[3 + i * 7 + j * 2] = y[i, j]
    return flat.reshape(x.shape)


def resized(*size: int) -> Any:
    return lambda x: x.ravel()[: int(np.prod(size))].reshape(size)


FIXED = f32(4, 3, 5)

CASES: tuple[Case, ...] = (
    case(
        "as_strided.default",
        strided((3, 2, 4), (7, 20, 3), 5),
        self=FIXED,
        size=[3, 2, 4],
        stride=[7, 20, 3],
        storage_offset=5,
    ),
    case(
        "as_strided.default",
        strided((6, 3), (1, 2)),
        label="overlapping",
        self=FIXED,
        size=[6, 3],
        stride=[1, 2],
    ),
    case(
        "as_strided.default",
        rows((4, 5), (3, 1)),
        label="windows",
        self=f32("n", 14),
        size=[N, 4, 5],
        stride=[14, 3, 1],
        storage_offset=0,
    ),
    case(
        "as_strided.default",
        lambda x: strided((len(x), 5), (1, len(x)))(x),
        label="varying",
        self=f32("n", 5),
        size=[N, 5],
        stride=[1, N],
    ),
    case(
        "as_strided_copy.default",
        strided((2, 0, 3), (1, 1, 1)),
        self=FIXED,
        size=[2, 0, 3],
        stride=[1, 1, 1],
    ),
    case(
        "as_strided_scatter.default",
        scattered,
        self=FIXED,
        src=f32(3, 4),
        size=[3, 4],
        stride=[7, 2],
        storage_offset=3,
    ),
    *(
        with_changed(
            "self",
            case(
                "resize_.default",
                lambda x, size=size: (resized(*size)(x), resized(*size)(x)),
                label=str(size),
                self=f32(*dims),
                size=list(size),
            ),
        )
        for dims, size in (
            ((4, 3, 5), (5, 2)),
            ((4, 3, 5), (5, 12)),
        )
    ),
    case(
        "resize.default",
        lambda x: x.ravel()[: 4 * len(x)].reshape(4, len(x)),
        self=f32("n", 7),
        size=[4, N],
    ),
    with_changed(
        "self",
        case(
            "resize_as_.default",
            lambda x, y: (resized(*y.shape)(x), resized(*y.shape)(x)),
            self=f32(4, 3, 5),
            the_template=f32(7, 2),
        ),
    ),
)
