"""Determinants, inverses, linear systems and the matrix exponential."""

from typing import Any

import numpy as np

from burn.ops.broadcast import like
from burn.ops.elementwise import div
from burn.ops.matmul import matmul
from burn.ops.padding import trilu
from burn.ops.reduction import sum as sum_
from burn.ops.shape import concat, reshape, transpose
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive


@primitive
def det(x: Array) -> Array:
    """Return the determinants [...] of square matrices ``x`` [..., n, n].

    Any NaN element makes the determinant NaN; elimination alone would miss it after a
    column of zeros.
    """
    xp, work = namespace(x), accumulate(x)
    unknown = xp.isnan(work).any((-2, -1))
    result = xp.where(unknown, work.dtype.type(np.nan), xp.linalg.det(work))
    return xp.asarray(result).astype(x.dtype, copy=False)


@det.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: reshape(grad, (*out.shape, 1, 1)) * cofactor(x)


@primitive
def cofactor(x: Array) -> Array:
    """Return the cofactors [..., n, n] of square matrices, the gradient of ``det``.

    They are computed from singular values without a division, for singular matrices
    too.
    """
    xp, work = namespace(x), accumulate(x)
    left, values, right = xp.linalg.svd(work)
    sign = xp.linalg.det(left) * xp.linalg.det(right)
    outer = (left * _others(values)[..., None, :]) @ right
    return (outer * sign[..., None, None]).astype(x.dtype, copy=False)


@cofactor.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    def share() -> Any:
        # d C = (tr(C^T dx) C - C dx^T C) / det; where det is 0 there is no value.
        along = sum_(grad * out, (-2, -1), keepdims=True) * out
        across = matmul(matmul(out, transpose(grad, -2, -1)), out)
        scale = reshape(det(x), (*x.shape[:-2], 1, 1))
        return div(along - across, scale)

    return share


@primitive
def inverse(x: Array) -> Array:
    """Return the inverses of square matrices ``x`` [..., n, n].

    Raises:
        numpy.linalg.LinAlgError: a matrix is singular.
    """
    xp, work = namespace(x), accumulate(x)
    return xp.linalg.inv(work).astype(x.dtype, copy=False)


@inverse.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: -matmul(matmul(out.mT, grad), out.mT)


def _others(values: Array) -> Array:
    """Return, for each element of the last axis, the product of the others."""
    count = values.shape[-1]
    xp = namespace(values)
    square = xp.broadcast_to(values[..., None, :], (*values.shape, count))
    return xp.prod(xp.where(xp.eye(count, dtype=bool), 1, square), axis=-1).astype(
        values.dtype, copy=False
    )


@primitive(outputs=2)
def slogdet(x: Array) -> tuple[Array, Array]:
    """Return signs and logarithms of absolute determinants [...] of ``x`` [..., n, n].

    A singular matrix has sign 0 and the logarithm minus infinity.
    """
    xp = namespace(x)
    sign, size = xp.linalg.slogdet(accumulate(x))
    return (
        xp.asarray(sign).astype(x.dtype, copy=False),
        xp.asarray(size).astype(x.dtype, copy=False),
    )


@slogdet.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    of_size = grad[1]
    return lambda: reshape(of_size, (*of_size.shape, 1, 1)) * inverse(x).mT


@primitive
def solve(a: Array, b: Array) -> Array:
    """Return the solutions x [..., n, k] of ``a @ x = b``, with ``a`` [..., n, n].

    Leading axes broadcast.

    Raises:
        numpy.linalg.LinAlgError: a matrix is singular.
    """
    xp = namespace(a)
    return xp.linalg.solve(accumulate(a), accumulate(b)).astype(b.dtype, copy=False)


@solve.vjp
def _(grad: Any, out: Any, a: Any, b: Any) -> Any:
    def of_b() -> Any:
        return solve(a.mT, grad)

    return (lambda: like(-matmul(of_b(), out.mT), a), lambda: like(of_b(), b))


@primitive
def solve_triangular(
    a: Array, b: Array, *, upper: bool = False, unit: bool = False
) -> Array:
    """Return the solutions x [..., n, k] of ``a @ x = b`` for triangular ``a``.

    Only that triangle of ``a`` [..., n, n] is read; with ``unit`` its diagonal is
    assumed to be 1. Leading axes broadcast. A zero on the diagonal results in
    infinities.
    """
    xp = namespace(a)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide = xp.array(xp.broadcast_to(accumulate(b), (*batch, *b.shape[-2:])))
    with np.errstate(divide="ignore", invalid="ignore"):
        _substitute(accumulate(a), wide, upper, unit)
    return wide.astype(b.dtype, copy=False)


def _substitute(a: Array, x: Array, upper: bool, unit: bool) -> None:
    """Replace the right sides ``x`` by the solutions, recursively by halves."""
    size = a.shape[-1]
    if size == 0:
        return
    if size == 1:
        if not unit:
            x /= a
        return
    half = size // 2
    blocks = [slice(0, half), slice(half, size)]
    first, second = blocks[::-1] if upper else blocks
    head, tail = x[..., first, :], x[..., second, :]
    _substitute(a[..., first, first], head, upper, unit)
    tail -= a[..., second, first] @ head
    _substitute(a[..., second, second], tail, upper, unit)


@solve_triangular.vjp
def _(
    grad: Any, out: Any, a: Any, b: Any, *, upper: Any = False, unit: Any = False
) -> Any:
    def of_b() -> Any:
        return solve_triangular(a.mT, grad, upper=not upper, unit=unit)

    def of_a() -> Any:
        edge = (1 if upper else -1) if unit else 0
        return like(trilu(-matmul(of_b(), out.mT), edge, upper=upper), a)

    return of_a, lambda: like(of_b(), b)


@primitive
def matrix_exp(x: Array) -> Array:
    """Return the exponentials [..., n, n] of square matrices: the sums of x^k / k!.

    By scaling and squaring: matrices are halved until their norm is at most 1/2, and
    the Taylor sum of 16 terms is squared as often.
    """
    xp, work = namespace(x), accumulate(x)
    count = work.shape[-1]
    one = xp.broadcast_to(xp.eye(count, dtype=work.dtype), work.shape)
    if work.size == 0:
        return x.copy()
    norm = xp.abs(work).sum(-2).max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = xp.clip(xp.ceil(xp.log2(norm)) + 1, 0, 1100)
    halvings = xp.where(xp.isfinite(halvings), halvings, 0)[..., None, None]
    small = work * xp.exp2(-halvings).astype(work.dtype)
    total = xp.array(one)
    for k in range(_TERMS, 0, -1):
        total = one + small @ total / k
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(int(halvings.max())):
            total = xp.where(halvings > step, total @ total, total)
    return total.astype(x.dtype, copy=False)


#: With norms of at most 1/2 the rest is below 2^-64.
_TERMS = 16


@matrix_exp.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    def share() -> Any:
        # exp([[x^T, g], [0, x^T]]) has the derivative in its upper right block.
        n = x.shape[-1]
        side = x.mT
        top, bottom = concat([side, grad], -1), concat([side * 0, side], -1)
        return matrix_exp(concat([top, bottom], -2))[..., :n, n:]

    return share


@primitive
def pinv(x: Array, *, atol: float = 0.0, rtol: float | None = None) -> Array:
    """Return the pseudoinverses [..., n, m] of matrices ``x`` [..., m, n].

    Singular values of at most ``max(atol, rtol * largest)`` count as 0. ``rtol`` is
    by default the precision of the dtype times the larger of m and n, and 0 if
    ``atol`` is given.
    """
    xp, work = namespace(x), accumulate(x)
    if rtol is None:
        rtol = 0.0 if atol else max(x.shape[-2:]) * float(np.finfo(work.dtype).eps)
    left, values, right = xp.linalg.svd(work, full_matrices=False)
    largest = values[..., :1]  # they are in descending order
    is_large = values > xp.maximum(atol, rtol * largest)
    with np.errstate(divide="ignore"):
        back = xp.where(is_large, 1 / values, 0).astype(work.dtype)
    inverse = right.swapaxes(-1, -2) @ (back[..., None] * left.swapaxes(-1, -2))
    return inverse.astype(x.dtype, copy=False)


@pinv.vjp
def _(grad: Any, out: Any, x: Any, *, atol: Any = 0.0, rtol: Any = None) -> Any:
    def share() -> Any:
        # dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P, if ranks stay.
        back = out.mT
        turned = grad.mT
        first = matmul(matmul(back, grad), back)
        rows = matmul(matmul(turned, out), back)
        columns = matmul(matmul(back, out), turned)
        rows = rows - matmul(x, matmul(out, rows))
        columns = columns - matmul(matmul(columns, out), x)
        return rows + columns - first

    return share
