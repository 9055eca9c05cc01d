"""Matrix decompositions, and functions of singular values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.linalg.linear_systems import (
    matrix_op,
    no_errors,
    pinv,
    transposed,
)
from burn_import.frontends.torch_export.aten.shape.views import permute_value
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


@rule("aten.linalg_cholesky.default", "aten.cholesky.default")
def cholesky(g: Builder, self: Value, upper: bool = False) -> Value:
    return matrix_op(g, "Cholesky", self, upper=upper or None)


@rule("aten.linalg_cholesky_ex.default")
def cholesky_and_info(
    g: Builder, self: Value, upper: bool = False, check_errors: bool = False
) -> tuple[Value, Value]:
    return cholesky(g, self, upper), no_errors(g, self)


@rule("aten.linalg_eigh.default")
def eigh(g: Builder, self: Value, UPLO: str = "L") -> tuple[Value, ...]:  # noqa: N803
    is_upper = UPLO.upper() == "U" or None
    return g.many("Eigh", 2, g.cast(self), domain="burn", upper=is_upper)


@rule("aten._linalg_eigh.default")
def eigh_of_any(
    g: Builder, A: Value, UPLO: str = "L", compute_v: bool = True  # noqa: N803
) -> tuple[Value, ...]:
    return eigh(g, A, UPLO)


@rule("aten.linalg_eigvalsh.default")
def eigvalsh(g: Builder, self: Value, UPLO: str = "L") -> Value:  # noqa: N803
    return eigh(g, self, UPLO)[0]


@rule("aten.linalg_svd.default")
def svd(
    g: Builder,
    A: Value,  # noqa: N803
    full_matrices: bool = True,
    driver: str | None = None,
) -> tuple[Value, ...]:
    option = None if full_matrices else False
    return g.many("Svd", 3, g.cast(A), domain="burn", full_matrices=option)


@rule("aten._linalg_svd.default")
def svd_of_any(
    g: Builder,
    A: Value,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    driver: str | None = None,
) -> tuple[Value, ...]:
    return svd(g, A, full_matrices and compute_uv)


@rule("aten.svd.default")
def svd_with_columns(
    g: Builder, self: Value, some: bool = True, compute_uv: bool = True
) -> tuple[Value, ...]:
    """Return ``U``, ``S`` and ``V``, which is not transposed."""
    if not compute_uv:
        raise UnsupportedModel("expected singular vectors; use torch.linalg.svdvals")
    left, values, right = svd(g, self, not some)
    return left, values, transposed(g, right, self.rank)


@rule("aten.linalg_svdvals.default")
def svdvals(g: Builder, A: Value, driver: str | None = None) -> Value:  # noqa: N803
    return svd(g, A, False)[1]


@rule("aten.linalg_pinv.atol_rtol_tensor")
def pinv_by_tensors(
    g: Builder,
    self: Value,
    atol: Value | None = None,
    rtol: Value | None = None,
    hermitian: bool = False,
) -> Value:
    """Return the pseudoinverse, with tolerances as tensors, one per matrix."""
    if rtol is None:
        if atol is not None:
            raise UnsupportedModel("expected rtol beside atol, got None")
        return pinv(g, self)
    left, values, right = svd(g, self, False)
    largest = g.op("ReduceMax", values, [-1])
    bound = g.op("Mul", largest, by_matrix(g, rtol))
    if atol is not None:
        bound = g.op("Max", bound, by_matrix(g, atol))
    is_nonzero = g.at(BOOL).op("Greater", values, bound)
    back = g.op("Where", is_nonzero, g.op("Reciprocal", values), g.cast(0))
    rows = g.op("Mul", g.op("Unsqueeze", back, [-1]), transposed(g, left, self.rank))
    return g.op("MatMul", transposed(g, right, self.rank), rows)


def by_matrix(g: Builder, tolerance: Value) -> Value:
    """Return a tolerance per matrix that broadcasts to its singular values."""
    x = g.cast(tolerance)
    return g.op("Unsqueeze", x, [-1]) if tolerance.rank else x


@rule("aten.linalg_pinv.rcond_tensor")
def pinv_by_condition(
    g: Builder, self: Value, rcond: Value, hermitian: bool = False
) -> Value:
    return pinv_by_tensors(g, self, rtol=rcond)


@rule("aten.linalg_qr.default")
def qr(g: Builder, A: Value, mode: str = "reduced") -> tuple[Value, ...]:  # noqa: N803
    if mode not in ("reduced", "complete"):
        raise UnsupportedModel(f"expected mode reduced or complete, got {mode!r}")
    option = mode == "complete" or None
    return g.many("Qr", 2, g.cast(A), domain="burn", complete=option)


@rule("aten.qr.default")
def qr_by_flag(g: Builder, self: Value, some: bool = True) -> tuple[Value, ...]:
    return qr(g, self, "reduced" if some else "complete")


@rule("aten.nuclear_norm.default")
def nuclear_norm(g: Builder, self: Value, keepdim: bool = False) -> Value:
    return nuclear_norm_of(g, self, [-2, -1], keepdim)


@rule("aten.nuclear_norm.dim")
def nuclear_norm_of(
    g: Builder, self: Value, dim: Sequence[int], keepdim: bool = False
) -> Value:
    """Return the sums of singular values of the matrices in two axes."""
    return spectral_norm(g, self, "ReduceSum", dim, keepdim)


def spectral_norm(
    g: Builder, x: Value, op_type: str, dim: Sequence[int], keepdim: bool
) -> Value:
    """Return a reduction of the singular values of the matrices in two axes."""
    pair = [x.axis(axis) for axis in dim]
    others = [axis for axis in range(x.rank) if axis not in pair]
    values = svdvals(g, permute_value(g, g.cast(x), [*others, *pair]))
    norm = g.op(op_type, values, [-1], keepdims=0)
    return g.op("Unsqueeze", norm, sorted(pair)) if keepdim else norm


@rule("aten.linalg_cond.default")
def condition(g: Builder, self: Value, p: Any = None) -> Value:
    """Return the largest singular value over the smallest."""
    if p not in (None, 2):
        raise UnsupportedModel(f"expected a condition number by norm 2, got {p!r}")
    values = svdvals(g, self)
    first, last = (g.op(f"Reduce{e}", values, [-1], keepdims=0) for e in ("Max", "Min"))
    return g.op("Div", first, last)


@rule("aten.linalg_matrix_rank.atol_rtol_float")
def matrix_rank(
    g: Builder,
    self: Value,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
) -> Value:
    """Return the number of singular values above the tolerance."""
    of = g.at(self.dtype)
    if rtol is None and not atol:
        sides = [g.extent(self, axis) for axis in (-2, -1)]
        fixed = [side for side in sides if isinstance(side, int)]
        if len(fixed) != len(sides):
            raise UnsupportedModel("expected rtol where the extents of matrices vary")
        rtol = max(fixed) * _precision(self)
    values = svdvals(of, self)
    largest = of.op("ReduceMax", values, [-1])
    bound = of.op("Max", of.op("Mul", largest, float(rtol or 0)), float(atol or 0))
    return _count_above(g, values, bound)


def _count_above(g: Builder, values: Value, bound: Value) -> Value:
    """Return how many numbers of the last axis are greater than a bound."""
    above = g.at(BOOL).op("Greater", values, bound)
    return g.op("ReduceSum", g.at(INT64).cast(above), [-1], keepdims=0)


@rule("aten.linalg_matrix_rank.atol_rtol_tensor")
def matrix_rank_by_tensors(
    g: Builder,
    input: Value,
    atol: Value | None = None,
    rtol: Value | None = None,
    hermitian: bool = False,
) -> Value:
    if atol is None and rtol is None:
        return matrix_rank(g, input)
    if rtol is None:
        raise UnsupportedModel("expected rtol beside atol, got None")
    of = g.at(input.dtype)
    values = svdvals(of, input)
    bound = of.op("Mul", of.op("ReduceMax", values, [-1]), by_matrix(of, rtol))
    if atol is not None:
        bound = of.op("Max", bound, by_matrix(of, atol))
    return _count_above(g, values, bound)


@rule("aten.linalg_matrix_rank.tol_tensor")
def matrix_rank_by_tolerances(
    g: Builder, input: Value, tol: Value, hermitian: bool = False
) -> Value:
    none = g.at(tol.dtype).constant(0)
    return matrix_rank_by_tensors(g, input, atol=tol, rtol=none)


def _precision(x: Value) -> float:
    return 2.0**-23 if x.dtype.itemsize == _SINGLE else 2.0**-52


_SINGLE = 4


@rule("aten.linalg_matrix_rank.default")
def matrix_rank_by_tolerance(
    g: Builder, self: Value, tol: float, hermitian: bool = False
) -> Value:
    return matrix_rank(g, self, atol=tol, rtol=0.0)


@rule("aten.orgqr.default")
def orgqr(g: Builder, self: Value, input2: Value) -> Value:
    return householder_product(g, self, input2)


@rule("aten.linalg_householder_product.default")
def householder_product(g: Builder, input: Value, tau: Value) -> Value:
    """Return the first columns of a product of reflections, one per ``tau``.

    The elements below the diagonal of a column are those of the reflection's vector,
    after zeros and a 1.
    """
    height, width = (g.extent(input, axis) for axis in (-2, -1))
    count = g.extent(tau, -1)
    if not (isinstance(height, int) and isinstance(width, int)):
        raise UnsupportedModel("expected a matrix of fixed extents")
    if not isinstance(count, int):
        raise UnsupportedModel("expected a fixed number of factors")
    product = g.constant(np.eye(height, width), g.dtype)
    below = g.op("Trilu", g.cast(input), g.constant(-1), upper=0)
    vectors = g.op("Add", below, product)
    for column in reversed(range(count)):
        vector = g.op("Gather", vectors, [column], axis=-1)
        factor = g.op("Unsqueeze", g.op("Gather", tau, [column], axis=-1), [-1])
        row = g.op("MatMul", transposed(g, vector, input.rank), product)
        step = g.op("Mul", factor, g.op("MatMul", vector, row))
        product = g.op("Sub", product, step)
    return product
