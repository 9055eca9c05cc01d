"""Linear systems, decompositions of matrices, and products of groups of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import (
    Case,
    InputSpec,
    case,
    f32,
    f64,
    first_result,
    floats,
)

LOOSE, HALF = 1e-3, 2e-2


def square(dtype: str = "float32", size: int = 3) -> InputSpec:
    """Return well-conditioned matrices, ``n`` of them."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.uniform(-1, 1, shape) + 3 * np.eye(shape[-1])

    return InputSpec(dtype, ("n", size, size), draw)


def positive(dtype: str = "float32") -> InputSpec:
    """Return symmetric positive definite matrices."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        x = rng.uniform(-1, 1, shape)
        return np.asarray(x @ x.mT + np.diag(np.arange(1.0, shape[-1] + 1)))

    return InputSpec(dtype, ("n", 3, 3), draw)


def solved(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.solve(a, b))


def substituted(upper: bool, unit: bool) -> Any:
    """Return the solution by one triangle, with a unit diagonal if ``unit``."""

    def run(a: Array, b: Array) -> Array:
        one = np.eye(a.shape[-1], dtype=a.dtype)
        triangle = np.triu(a) if upper else np.tril(a)
        return solved(triangle * (1 - one) + one if unit else triangle, b)

    return run


def exponential(x: Array) -> Array:
    values, vectors = np.linalg.eig(x.astype(np.float64))
    result = (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)
    return np.asarray(result.real.astype(x.dtype))


def logdet(x: Array) -> Array:
    sign, size = np.linalg.slogdet(x)
    return np.where(sign < 0, np.asarray(np.nan, x.dtype), size)


def grouped(x: Array, w: Array, ends: Array) -> Array:
    a, b = x.astype(np.float32), w.astype(np.float32)
    out = np.zeros((len(x), w.shape[2]), np.float32)
    start = 0
    for end, matrix in zip(ends, b, strict=True):
        out[start:end] = a[start:end] @ matrix
        start = end
    return out.astype(x.dtype)


def batched(x: Array, w: Array) -> Array:
    return np.asarray((x.astype(np.float32) @ w.astype(np.float32)).astype(x.dtype))


def halves(*dims: int) -> InputSpec:
    """Return a tensor of bfloat16, the only dtype of grouped products in exports."""
    return floats("bfloat16", dims, -1, 1)


def values(x: Array) -> Array:
    return np.asarray(np.linalg.svd(x, compute_uv=False))


ENDS = InputSpec("int32", (3,), lambda rng, shape: np.array([2, 2, 6]))
TALL, VECTORS = f32("n", 5, 3), f32("n", 3)


#: Overloads of ``matrix_rank``, and their tolerances.
_TOLERANCES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linalg_matrix_rank.default", {"tol": 0.5}),
    ("linalg_matrix_rank.atol_rtol_float", {"atol": 0.5, "rtol": 0.0}),
)


def reflected(matrix: Array, factors: Array) -> Array:
    """Return the first columns of the product of reflections."""
    height, width = matrix.shape[-2:]
    product = np.eye(height, dtype=matrix.dtype)
    for column in range(factors.shape[-1]):
        vector = np.tril(matrix, -1)[..., column] + np.eye(height)[column]
        outer = vector[..., :, None] * vector[..., None, :]
        step = np.eye(height) - factors[..., column, None, None] * outer
        product = product @ step
    return np.asarray(product[..., :width]).astype(matrix.dtype)


def loose(*args: Any, **options: Any) -> Case:
    return case(*args, tolerance=LOOSE, **options)


CASES: tuple[Case, ...] = (
    *(
        loose(target, np.linalg.cholesky, label=dtype, self=positive(dtype))
        for target in ("linalg_cholesky.default", "cholesky.default")
        for dtype in ("float32", "float64")
    ),
    loose(
        "linalg_cholesky.default",
        lambda x: np.linalg.cholesky(x).mT,
        label="upper",
        self=positive(),
        upper=True,
    ),
    replace(
        loose("linalg_cholesky_ex.default", np.linalg.cholesky, self=positive()),
        is_first_only=True,
    ),
    loose(
        "cholesky_solve.default",
        lambda b, a: solved(np.tril(a) @ np.tril(a).mT, b),
        self=f32("n", 3, 2),
        input2=square(),
    ),
    loose(
        "cholesky_inverse.default",
        lambda a: np.linalg.inv(np.triu(a).T @ np.triu(a)),
        self=replace(square(), dims=(3, 3)),
        upper=True,
    ),
    first_result(
        "linalg_eigh.default", np.linalg.eigvalsh, self=positive("float64"), UPLO="U"
    ),
    first_result(
        "_linalg_eigh.default",
        np.linalg.eigvalsh,
        tolerance=LOOSE,
        A=positive(),
        compute_v=True,
    ),
    loose("linalg_eigvalsh.default", np.linalg.eigvalsh, self=positive()),
    loose("linalg_svdvals.default", values, A=TALL),
    loose("linalg_svdvals.default", values, label="wide", A=f64("n", 2, 4)),
    loose("nuclear_norm.default", lambda x: values(x).sum(-1), self=f32(4, 3)),
    *(
        loose(
            "linalg_matrix_norm.default",
            lambda x, end=end: end(values(x.swapaxes(1, 2)), -1),
            label=str(order),
            self=f32("n", 4, 3),
            ord=order,
            dim=[2, 1],
        )
        for order, end in ((2, np.max), (-2, np.min))
    ),
    loose(
        "linalg_matrix_norm.str_ord",
        lambda x: values(x).sum(-1)[:, None, None],
        label="nuclear",
        self=TALL,
        ord="nuc",
        keepdim=True,
    ),
    loose("linalg_cond.default", np.linalg.cond, self=square()),
    *(
        case(
            target,
            lambda x: np.linalg.matrix_rank(x, tol=0.5),
            self=f32("n", 4, 3),
            **tolerance,
        )
        for target, tolerance in _TOLERANCES
    ),
    case("linalg_matrix_rank.atol_rtol_tensor", np.linalg.matrix_rank, input=square()),
    loose("linalg_pinv.atol_rtol_float", np.linalg.pinv, self=TALL, rtol=1e-6),
    loose("linalg_pinv.atol_rtol_tensor", np.linalg.pinv, self=TALL),
    loose("linalg_pinv.default", np.linalg.pinv, self=f32("n", 2, 4), rcond=1e-6),
    loose("pinverse.default", np.linalg.pinv, self=f32(5, 3)),
    *(
        loose(
            "linalg_solve_triangular.default",
            substituted(upper, True),
            label=f"unit {upper}",
            self=square(),
            B=f32("n", 3, 2),
            upper=upper,
            unitriangular=True,
        )
        for upper in (True, False)
    ),
    first_result(
        "triangular_solve.default",
        lambda b, a: solved(np.triu(a).mT, b),
        tolerance=LOOSE,
        self=f32("n", 3, 2),
        A=square(),
        transpose=True,
    ),
    loose(
        "linalg_solve.default",
        lambda a, b: solved(a, b[..., None])[..., 0],
        label="vectors",
        A=square(),
        B=VECTORS,
    ),
    loose(
        "linalg_solve.default",
        lambda a, b: solved(a.mT, b.mT).mT,
        label="right",
        A=square("float64"),
        B=f64("n", 2, 3),
        left=False,
    ),
    loose(
        "linalg_solve.default",
        solved,
        label="one matrix",
        A=replace(square(), dims=(3, 3)),
        B=f32("n", 3, 2),
    ),
    loose("linalg_matrix_exp.default", exponential, self=f32("n", 3, 3)),
    loose("matrix_exp.default", exponential, self=f64("n", 4, 4)),
    loose("det.default", np.linalg.det, self=square()),
    loose("logdet.default", logdet, self=f32("n", 3, 3)),
    loose("slogdet.default", lambda x: tuple(np.linalg.slogdet(x)), self=square()),
    loose(
        "linalg_householder_product.default",
        reflected,
        input=f32("n", 5, 4),
        tau=f32("n", 3),
    ),
    loose(
        "linalg_householder_product.default",
        reflected,
        label="double",
        input=f64(4, 4),
        tau=f64(4),
    ),
    loose("orgqr.default", reflected, self=f32("n", 5, 4), input2=f32("n", 3)),
    loose("inverse.default", np.linalg.inv, self=square()),
    case(
        "_grouped_mm.default",
        grouped,
        tolerance=HALF,
        self=halves(6, 8),
        mat2=halves(3, 8, 8),
        offs=ENDS,
    ),
    case(
        "_grouped_mm.default",
        batched,
        label="batch",
        tolerance=HALF,
        self=halves(2, 3, 8),
        mat2=halves(2, 8, 8),
    ),
)
