"""Indexing and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, case, f32, fixed, i64
from tests.importer.aten.inputs import X

ROWS = fixed("int64", [[2, 0], [-1, 1]])
COLUMNS = fixed("int64", [3, -2])
ALONG = fixed("int64", [[[2, 0, 1, 1], [0, 1, 2, 0]]] * 2)
SIX = f32(2, 3, 4)


def along(axis: int) -> Any:
    """Return the elements at indices along an axis."""

    def run(x: Any, index: Any) -> Any:
        rest = [slice(n) for n in index.shape]
        rest[axis] = slice(None)
        return np.take_along_axis(x[tuple(rest)], index, axis)

    return run


def one_hot(x: Any) -> Any:
    return np.eye(5, dtype=np.int64)[x]


LOOKUPS = (
    case(
        "embedding.default",
        lambda w, i: w[i],
        weight=f32(5, 3),
        indices=i64("n", 2, low=0, high=4),
    ),
    case(
        "index_select.default",
        lambda x, i: x[:, i],
        self=X,
        dim=1,
        index=fixed("int64", [2, 0, 2]),
    ),
    case("gather.default", along(1), self=SIX, dim=1, index=ALONG),
    case(
        "gather.default",
        along(2),
        label="shorter",
        self=SIX,
        dim=-1,
        index=fixed("int64", [[[3, 0], [1, 1]]]),
    ),
    case("take.default", lambda x, i: x.ravel()[i], self=X, index=ROWS),
    case(
        "take_along_dim.default",
        lambda x, i: np.take_along_axis(x, i, 1),
        self=X,
        indices=i64("n", 2, 4, low=0, high=2),
        dim=1,
    ),
    case(
        "take_along_dim.default",
        lambda x, i: np.take_along_axis(x, i, 1),
        label="wide",
        self=X,
        indices=i64("n", 2, 1, low=0, high=2),
        dim=1,
    ),
    case("index.Tensor", lambda x, i: x[:, i], self=X, indices=[None, ROWS]),
    case(
        "index.Tensor",
        lambda x, i, j: x[:, i, j],
        label="pair",
        self=f32("n", 3, 4, 2),
        indices=[None, ROWS, COLUMNS],
    ),
    case(
        "index.Tensor",
        lambda x, i, j: x[i, :, j],
        label="apart",
        self=f32(3, "n", 4, 2),
        indices=[ROWS, None, COLUMNS],
    ),
    case(
        "index.Tensor",
        lambda x, i, j: x[i, j],
        label="front",
        self=f32(3, 4, "n"),
        indices=[ROWS, COLUMNS],
    ),
    case(
        "index.Tensor",
        lambda x, m: x[m],
        label="mask",
        self=SIX,
        indices=[fixed("bool", [[[True, False, True, True]] * 3] * 2)],
    ),
    case(
        "index.Tensor",
        lambda x, m: x[:, m],
        label="rows",
        self=X,
        indices=[None, fixed("bool", [True, False, True])],
    ),
    case(
        "masked_select.default",
        lambda x, m: x[np.broadcast_to(m, x.shape)],
        self=SIX,
        mask=fixed("bool", [[True], [False], [True]]),
    ),
    case(
        "nonzero.default",
        lambda x: np.argwhere(x),
        self=fixed("int64", [[0, 3, 0], [1, 0, 2]]),
    ),
    case(
        "argwhere.default",
        lambda x: np.argwhere(x),
        self=fixed("bool", [[False, True], [True, True]]),
    ),
    case(
        "nonzero_numpy.default",
        lambda x: list(np.nonzero(x)),
        self=fixed("int64", [[0, 3, 0], [1, 0, 2]]),
    ),
    case(
        "where.default",
        lambda x: list(np.nonzero(x)),
        condition=fixed("bool", [[False, True], [True, True]]),
    ),
    case("one_hot.default", one_hot, self=i64("n", 3, low=0, high=4), num_classes=5),
)
CASES: tuple[Case, ...] = LOOKUPS
