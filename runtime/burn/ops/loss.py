"""Classification losses."""

from typing import Any

from burn import dtypes
from burn.ops.casting import cast
from burn.ops.indexing import take
from burn.ops.logic import not_equal, where
from burn.ops.reduction import sum as sum_
from burn.ops.scatter import gather_elements
from burn.ops.shape import squeeze, unsqueeze
from burn.ops.softmax import log_softmax
from burn.ops.support import Array
from burn.primitive import composite
from burn.tensor import Tensor


@composite
def nll_loss(
    log_probs: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``-log_probs`` [N, C, ...] at the classes ``target`` [N, ...].

    The loss is multiplied by the class's ``weight`` [C], and 0 where the target is
    ``ignore_index``, which need not be a class. ``reduction`` is ``"none"``, ``"sum"``
    or ``"mean"``, which divides by the sum of the applied weights.

    Raises:
        ValueError: ``reduction`` is unknown, or ``target`` or ``weight`` has another
            shape.
    """
    _check_options(log_probs, target, weight, reduction)
    is_counted: Any = None
    if ignore_index is not None:
        is_counted = not_equal(target, ignore_index)
        target = where(is_counted, target, 0)
    classes = unsqueeze(cast(target, dtype=dtypes.int64), 1)
    loss = -squeeze(gather_elements(log_probs, classes, 1), 1)
    applied = None if weight is None else take(weight, target)
    if is_counted is not None:
        if applied is None:
            applied = cast(is_counted, dtype=log_probs.dtype)
        else:  # a product with 0 would let infinities of other classes through
            applied = where(is_counted, applied, 0.0)
        loss = where(is_counted, loss, 0.0)
    if applied is not None:
        loss = loss * applied
    if reduction == "none":
        return loss
    total = sum_(loss)
    if reduction == "sum":
        return total
    return loss.mean() if applied is None else total / sum_(applied)


def _check_options(log_probs: Any, target: Any, weight: Any, reduction: str) -> None:
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(
            f"expected reduction 'none', 'sum' or 'mean', got {reduction!r}"
        )
    rows = [extent for axis, extent in enumerate(log_probs.shape) if axis != 1]
    if list(target.shape) != rows:
        raise ValueError(
            f"expected targets of shape {rows} for scores of shape "
            f"{list(log_probs.shape)}, got {list(target.shape)}"
        )
    if weight is not None and tuple(weight.shape) != (log_probs.shape[1],):
        raise ValueError(
            f"expected a weight for each of {log_probs.shape[1]} classes, "
            f"got {list(weight.shape)}"
        )


@composite
def cross_entropy(
    scores: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return :func:`nll_loss` of the log softmax of ``scores`` [N, C, ...]."""
    return nll_loss(
        log_softmax(scores, axis=1),
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
