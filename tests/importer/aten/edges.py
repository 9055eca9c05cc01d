"""Operands at the edges of operators: rank 0, no elements, and others that PyTorch's
samples of its operators contain."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, first_result, fixed
from tests.importer.aten.inputs import X, single

SCALAR = fixed("float32", 2.5)
POINTS = f32("n", 4)
ORDER = fixed("int64", [2, 0, 1])
MASK = fixed("bool", [[True, False, True], [False, True, True]])


def of_one(x: Array) -> Any:
    """Return the only element and its index."""
    return x, np.asarray(0)


def cosines(a: Array, b: Array) -> Any:
    """Return the cosines along axis 1 of the broadcast operands."""
    a, b = np.broadcast_arrays(a, b)
    lengths = (np.linalg.norm(x, axis=1) for x in (a, b))
    return (a * b).sum(1) / np.prod(list(lengths), 0)


def one_sided(x: Array) -> Any:
    return [np.gradient(x, axis=axis, edge_order=2) for axis in (1, 2)]


def masked(x: Array, mask: Array, *indices: Array) -> Any:
    return np.where(mask, x[:, [0, 2, 2]][[1, 0]], -1)


CASES: tuple[Case, ...] = (
    *(
        case(f"{name}.default", of_one, label="rank 0", self=SCALAR, k=1, dim=-1)
        for name in ("kthvalue", "topk")
    ),
    *(
        case(f"{name}.dim", of_one, label="rank 0", self=SCALAR, dim=-1)
        for name in ("median", "nanmedian")
    ),
    *(
        case(
            f"{name}.default",
            lambda x, q: np.full(2, x),
            label="rank 0",
            self=SCALAR,
            q=fixed("float32", [0.25, 0.5]),
            dim=0,
        )
        for name in ("quantile", "nanquantile")
    ),
    case(
        "prelu.default",
        lambda x, w: x * w[0],
        label="rank 0",
        self=fixed("float32", -2.5),
        weight=fixed("float32", [0.25]),
    ),
    case(
        "cosine_similarity.default",
        single(cosines),
        label="broadcast",
        x1=f32("n", 3, 4, low=0.5),
        x2=f32(1, 4, low=0.5),
    ),
    case(
        "cosine_similarity.default",
        single(lambda a, b: a * b / abs(a * b)),
        label="rank 0",
        x1=SCALAR,
        x2=fixed("float32", -1.5),
        dim=0,
    ),
    case(
        "var.dim",
        lambda x: np.full(3, np.nan, "f4"),
        label="empty",
        self=f32(0, 3),
        dim=[0],
    ),
    case(
        "std.dim",
        lambda x: np.full(3, np.nan, "f4"),
        label="empty",
        self=f32(0, 3),
        dim=[0],
    ),
    case("sum_to_size.default", lambda x: x.sum(0), self=X, size=[3, 4]),
    case(
        "sum_to_size.default",
        lambda x: x.sum((0, 1), keepdims=True)[0],
        label="axis of one element",
        self=X,
        size=[1, 4],
    ),
    case(
        "gradient.scalararray",
        one_sided,
        label="edge order 2",
        self=X,
        spacing=1,
        dim=[1, 2],
        edge_order=2,
    ),
    case("roll.default", lambda x: x, label="empty", self=f32(0, 3), shifts=[2]),
    case(
        "unflatten.int",
        lambda x: x.reshape(4, 2, 0, 3),
        label="empty",
        self=f32(4, 0),
        dim=1,
        sizes=[2, 0, 3],
    ),
    case(
        "matrix_power.default",
        lambda x: np.broadcast_to(np.eye(3, dtype=x.dtype), x.shape),
        label="0",
        self=f32("n", 3, 3),
        n=0,
    ),
    case(
        "matrix_power.default",
        lambda x: np.linalg.matrix_power(np.linalg.inv(x), 2),
        label="negative",
        tolerance=1e-3,
        self=fixed("float32", [[2, 1, 0], [0, 3, 1], [1, 0, 2]]),
        n=-2,
    ),
    case(
        "searchsorted.Tensor",
        lambda x, v, order: np.searchsorted(x[order], v),
        label="sorter",
        sorted_sequence=fixed("float32", [1, 3, -2]),
        self=POINTS,
        sorter=ORDER,
    ),
    case(
        "masked_scatter.default",
        lambda x, mask, source: np.array([[5, 2, 6], [1, 7, 8]], "f4"),
        label="broadcast",
        self=fixed("float32", [1, 2, 3]),
        mask=MASK,
        source=fixed("float32", [5, 6, 7, 8]),
    ),
    case(
        "_unsafe_masked_index.default",
        masked,
        self=f32(2, 3),
        mask=MASK,
        indices=[fixed("int64", [[1], [0]]), fixed("int64", [0, 2, 9])],
        fill=-1,
    ),
    first_result(
        "linalg_solve_ex.default",
        np.linalg.solve,
        tolerance=1e-3,
        A=f32("n", 3, 3),
        B=f32("n", 3, 2),
    ),
)
