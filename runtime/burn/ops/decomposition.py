"""Matrix decompositions: Cholesky, eigenvalues, singular values, QR."""

from typing import Any

from burn.ops.creation import eye
from burn.ops.elementwise import div
from burn.ops.linalg import solve_triangular
from burn.ops.matmul import matmul
from burn.ops.padding import trilu
from burn.ops.shape import concat, unsqueeze
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive


@primitive
def cholesky(x: Array, *, upper: bool = False) -> Array:
    """Return the lower triangular L [..., n, n] with ``L @ L.mT = x``.

    ``x`` [..., n, n] is assumed symmetric: only its lower triangle is read. With
    ``upper`` the result is ``L.mT``, and the upper triangle is read. The gradient is
    symmetric.

    Raises:
        numpy.linalg.LinAlgError: a matrix is not positive definite.
    """
    xp, work = namespace(x), accumulate(x)
    factor = xp.linalg.cholesky(work.swapaxes(-1, -2) if upper else work)
    factor = factor.swapaxes(-1, -2) if upper else factor
    return xp.ascontiguousarray(factor).astype(x.dtype, copy=False)


@cholesky.vjp
def _(grad: Any, out: Any, x: Any, *, upper: Any = False) -> Any:
    def share() -> Any:
        lower, turned = (out.mT, grad.mT) if upper else (out, grad)
        inner = matmul(lower.mT, turned)
        inner = (trilu(inner, 0, upper=False) + trilu(inner, -1, upper=False).mT) / 2
        half = solve_triangular(lower.mT, inner, upper=True)
        return solve_triangular(lower.mT, half.mT, upper=True).mT

    return share


@primitive(outputs=2)
def eigh(x: Array, *, upper: bool = False) -> tuple[Array, Array]:
    """Return eigenvalues [..., n], ascending, and eigenvectors [..., n, n] in columns.

    ``x`` [..., n, n] is assumed symmetric: only its lower triangle is read, with
    ``upper`` the upper one. The gradient is symmetric where the values are distinct.
    """
    work = accumulate(x)
    values, vectors = namespace(x).linalg.eigh(work, "U" if upper else "L")
    return values.astype(x.dtype, copy=False), vectors.astype(x.dtype, copy=False)


@eigh.vjp_of_parts
def _(grad: Any, out: Any, x: Any, *, upper: Any = False) -> Any:
    of_values, of_vectors = grad
    values, vectors = out

    def share() -> Any:
        if of_vectors is None:
            return matmul(vectors * unsqueeze(of_values, -2), vectors.mT)
        inner = matmul(vectors.mT, of_vectors)
        inner = (inner - inner.mT) / 2 * _reciprocal_gaps(values)
        if of_values is not None:
            inner = inner + _diagonal(of_values)
        return matmul(matmul(vectors, inner), vectors.mT)

    return share


def _diagonal(values: Any) -> Any:
    """Return square matrices with ``values`` [..., n] on their diagonals."""
    count = values.shape[-1]
    return unsqueeze(values, -1) * eye(count, dtype=values.dtype)


def _reciprocal_gaps(values: Any) -> Any:
    """Return ``1 / (values[j] - values[i])`` at [..., i, j]; 0 on the diagonal."""
    one = eye(values.shape[-1], dtype=values.dtype)
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1)
    return div(1 - one, gaps + one)


@primitive(outputs=3)
def svd(x: Array, *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """Return U [..., m, k], descending S [..., k], Vh [..., k, n] of ``x`` [..., m, n].

    ``x = U @ diag(S) @ Vh`` with k the smaller of m and n; with ``full_matrices`` U
    and Vh are square. The gradient of vectors needs distinct singular values, and that
    none of U and Vh is larger than k.
    """
    dtype, xp = x.dtype, namespace(x)
    parts = xp.linalg.svd(accumulate(x), full_matrices=full_matrices)
    left, values, right = (part.astype(dtype, copy=False) for part in parts)
    return left, values, right


@svd.vjp_of_parts
def _(grad: Any, out: Any, x: Any, *, full_matrices: Any = True) -> Any:
    is_larger = full_matrices and x.shape[-2] != x.shape[-1]

    def share() -> Any:
        of_left, of_values, of_right = grad
        if of_left is None and of_right is None:
            left, _, right = svd(x, full_matrices=False) if is_larger else out
            return matmul(left * unsqueeze(of_values, -2), right)
        if is_larger:
            raise ValueError(
                "expected full_matrices=False for a gradient by singular vectors"
            )
        return _svd_share(grad, out)

    return share


def _svd_share(grad: Any, out: Any) -> Any:
    """Return the gradient for all three parts, U [..., m, k] and Vh [..., k, n]."""
    (of_left, of_values, of_right), (left, values, right) = grad, out
    row, column = unsqueeze(values, -2), unsqueeze(values, -1)
    inner: Any = 0 if of_values is None else _diagonal(of_values)
    outside: Any = 0
    if of_left is not None:
        inside = matmul(left.mT, of_left)
        inner = inner + (inside - inside.mT) * _reciprocal_gaps(values * values) * row
        if left.shape[-2] > left.shape[-1]:
            rest = (of_left - matmul(left, inside)) / row
            outside = outside + matmul(rest, right)
    if of_right is not None:
        inside = matmul(right, of_right.mT)
        inner = inner + column * (
            (inside - inside.mT) * _reciprocal_gaps(values * values)
        )
        if right.shape[-1] > right.shape[-2]:
            rest = (of_right - matmul(inside.mT, right)) / column
            outside = outside + matmul(left, rest)
    return matmul(matmul(left, inner), right) + outside


@primitive(outputs=2)
def qr(x: Array, *, complete: bool = False) -> tuple[Array, Array]:
    """Return Q [..., m, k] with orthonormal columns, R [..., k, n] with ``Q @ R = x``.

    k is the smaller of m and n, with ``complete`` it is m. R is upper triangular. The
    gradient of a ``complete`` decomposition needs that m is at most n.
    """
    dtype, xp = x.dtype, namespace(x)
    mode = "complete" if complete else "reduced"
    left, right = xp.linalg.qr(accumulate(x), mode=mode)
    return left.astype(dtype, copy=False), right.astype(dtype, copy=False)


@qr.vjp
def _(grad: Any, out: Any, x: Any, *, complete: Any = False) -> Any:
    rows, columns = x.shape[-2:]

    def share() -> Any:
        (of_left, of_right), (left, right) = grad, out
        if complete and rows > columns:
            raise ValueError("expected complete=False for a gradient of tall matrices")
        if rows >= columns:
            return _qr_share(of_left, of_right, left, right)
        # The first columns are decomposed; the others are only multiplied by Q^T.
        rest, of_rest = x[..., rows:], of_right[..., rows:]
        of_left = of_left + matmul(rest, of_rest.mT)
        square, of_square = right[..., :rows], of_right[..., :rows]
        first = _qr_share(of_left, of_square, left, square)
        return concat([first, matmul(left, of_rest)], -1)

    return share


def _qr_share(of_left: Any, of_right: Any, left: Any, right: Any) -> Any:
    """Return the gradient for square R."""
    inner = matmul(right, of_right.mT) - matmul(of_left.mT, left)
    inner = trilu(inner, 0, upper=False) + trilu(inner, -1, upper=False).mT
    share = of_left + matmul(left, inner)
    return solve_triangular(right, share.mT, upper=True).mT
