"""Losses on distances and similarities of embeddings."""

from burn import ops
from burn.loss.reduction import check_same_shape, reduced
from burn.tensor import Tensor


def cosine_embedding_loss(
    x1: Tensor,
    x2: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return ``1 - cos`` of vector pairs [N, D] with target 1, else ``cos - margin``.

    ``target`` [N] is 1 or -1. Negative losses are clipped to 0.

    Raises:
        ValueError: the shapes differ, or ``reduction`` is unknown.
    """
    check_same_shape(x1, x2)
    tiny = 1e-12
    squares = (ops.sum(x1 * x1, -1) + tiny) * (ops.sum(x2 * x2, -1) + tiny)
    cosine = ops.sum(x1 * x2, -1) / ops.sqrt(squares)
    apart = ops.maximum(cosine - margin, 0.0)
    return reduced(ops.where(ops.equal(target, 1), 1.0 - cosine, apart), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``.

    All are [..., D]; ``d`` is the norm of order ``p`` of the difference plus ``eps``.
    With ``swap`` the distance between ``positive`` and ``negative`` is used if smaller.

    Raises:
        ValueError: the shapes differ, or ``reduction`` is unknown.
    """
    check_same_shape(anchor, positive)
    check_same_shape(anchor, negative)
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, _distance(positive, negative, p, eps))
    return reduced(ops.maximum(near - far + margin, 0.0), reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    difference = ops.abs(x - y + eps)
    if p == 1.0:
        return ops.sum(difference, -1)
    if p == 2.0:
        return ops.sqrt(ops.sum(difference * difference, -1))
    return ops.pow(ops.sum(ops.pow(difference, p), -1), 1.0 / p)


def margin_ranking_loss(
    x1: Tensor,
    x2: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, -target * (x1 - x2) + margin)``.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x1, x2)
    return reduced(ops.maximum((x2 - x1) * target + margin, 0.0), reduction)


def hinge_embedding_loss(
    x: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return ``x`` where the target is 1, else ``max(0, margin - x)``.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x, target)
    apart = ops.maximum(margin - x, 0.0)
    return reduced(ops.where(ops.equal(target, 1), x, apart), reduction)
