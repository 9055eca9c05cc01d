"""Determinants and inverses."""

from typing import Any

from burn.ops.elementwise import div
from burn.ops.matmul import matmul
from burn.ops.reduction import sum as sum_
from burn.ops.shape import reshape, transpose
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive


@primitive
def det(x: Array) -> Array:
    """The determinants [...] of square matrices ``x`` [..., n, n]."""
    xp, work = namespace(x), accumulate(x)
    return xp.asarray(xp.linalg.det(work)).astype(x.dtype, copy=False)


@det.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: reshape(grad, (*out.shape, 1, 1)) * cofactor(x)


@primitive
def cofactor(x: Array) -> Array:
    """The cofactors [..., n, n] of square matrices: what ``det`` has for a gradient.

    Computed from singular values without a division, so that singular matrices have
    theirs, too.
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
    """The inverses of square matrices ``x`` [..., n, n].

    Raises:
        numpy.linalg.LinAlgError: one has none.
    """
    xp, work = namespace(x), accumulate(x)
    return xp.linalg.inv(work).astype(x.dtype, copy=False)


@inverse.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: -matmul(matmul(out.mT, grad), out.mT)


def _others(values: Array) -> Array:
    """For each of the last axis, the product of the others."""
    count = values.shape[-1]
    xp = namespace(values)
    square = xp.broadcast_to(values[..., None, :], (*values.shape, count))
    return xp.prod(xp.where(xp.eye(count, dtype=bool), 1, square), axis=-1).astype(
        values.dtype, copy=False
    )
