"""Losses for classes and probabilities."""

from burn import dtypes, ops
from burn.loss.reduction import check_reduction, check_same_shape, reduced
from burn.tensor import Tensor


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross entropy of ``logits`` [N, C, ...] and ``target``.

    ``target`` has classes, integers [N, ...], or probabilities, floats [N, C, ...].
    Elements whose class is ``ignore_index`` have a loss of 0 and are not counted by
    the mean. Classes are weighted by ``weight`` [C]; the mean of losses by class is
    over the sum of their weights. ``label_smoothing`` is the share of the target that
    is spread over all classes.

    Raises:
        ValueError, IndexError: as in :func:`nll_loss`; the smoothing is not in [0, 1].
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"expected label_smoothing in [0, 1], got {label_smoothing}")
    shares = ops.log_softmax(logits, axis=1)
    if dtypes.is_float(target.dtype):
        return _of_probabilities(shares, target, weight, label_smoothing, reduction)
    target = _as_classes(target)
    if not label_smoothing:
        return nll_loss(
            shares, target, weight, ignore_index=ignore_index, reduction=reduction
        )
    check_reduction(reduction)
    valid = ops.not_equal(target, ignore_index)
    exact = nll_loss(
        shares, target, weight, ignore_index=ignore_index, reduction="none"
    )
    spread = -ops.sum(_weighted(shares, weight), 1)
    spread = ops.where(valid, spread, 0.0)
    classes = logits.shape[1]
    loss = exact * (1.0 - label_smoothing) + spread * (label_smoothing / classes)
    if reduction != "mean":
        return reduced(loss, reduction)
    counted = ops.cast(valid, dtype=shares.dtype)
    if weight is not None:
        counted = ops.where(valid, ops.take(weight, ops.where(valid, target, 0)), 0.0)
    return ops.sum(loss) / ops.sum(counted)


def _of_probabilities(
    shares: Tensor,
    target: Tensor,
    weight: Tensor | None,
    smoothing: float,
    reduction: str,
) -> Tensor:
    if target.shape == (shares.shape[0], *shares.shape[2:]):
        raise ValueError(
            f"expected classes as integers, or probabilities {list(shares.shape)}, got "
            f"{target.dtype}{list(target.shape)}"
        )
    check_same_shape(shares, target)
    check_reduction(reduction)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / shares.shape[1]
    loss = -ops.sum(_weighted(shares, weight) * target, 1)
    return reduced(loss, reduction)


def _as_classes(target: Tensor) -> Tensor:
    """Return classes as int32 or int64: others may not represent ``ignore_index``."""
    if target.dtype in (dtypes.int32, dtypes.int64):
        return target
    return ops.cast(target, dtype=dtypes.int64)


def _weighted(shares: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return shares
    return shares * ops.reshape(weight, (-1, *(1 for _ in shares.shape[2:])))


def nll_loss(
    log_probs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return ``-log_probs`` [N, C, ...] at the classes ``target`` [N, ...].

    ``weight`` and ``ignore_index`` are those of :func:`cross_entropy`.

    Raises:
        ValueError: shapes do not fit, or there is no such reduction.
        IndexError: a class is below 0 or not below C, and not ``ignore_index``.
    """
    expected = (log_probs.shape[0], *log_probs.shape[2:])
    if tuple(target.shape) != expected:
        raise ValueError(
            f"expected classes of shape {list(expected)} for scores of shape "
            f"{list(log_probs.shape)}, got {list(target.shape)}"
        )
    classes, target = log_probs.shape[1], _as_classes(target)
    valid = ops.not_equal(target, ignore_index)
    # Negative indices count from the end: they are errors, as those above the classes.
    is_negative = ops.logical_and(valid, target < 0)
    try:
        return ops.nll_loss(
            *(log_probs, ops.where(is_negative, classes, target), weight),
            ignore_index=ignore_index,
            reduction=reduction,
        )
    except IndexError as error:
        raise IndexError(
            f"expected classes from 0 to {classes - 1}, or ignore_index="
            f"{ignore_index}: {error}"
        ) from error


def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross entropy of ``sigmoid(logits)`` and ``target`` of the same shape.

    Elements are weighted by ``weight``, those of positive targets by ``pos_weight``;
    both are broadcast.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(logits, target)
    negative = ops.softplus(-logits)
    if pos_weight is not None:
        negative = negative * ((pos_weight - 1.0) * target + 1.0)
    loss = (1.0 - target) * logits + negative
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy(
    probs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross entropy of probabilities and ``target`` of the same shape.

    Logarithms are at least -100, as in PyTorch. It is for models that end with a
    sigmoid: :func:`binary_cross_entropy_with_logits` loses no precision near 0 and 1.
    Elements are weighted by ``weight``, which is broadcast.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(probs, target)
    loss = -target * _clipped_log(probs) - (1.0 - target) * _clipped_log(1.0 - probs)
    return reduced(loss if weight is None else loss * weight, reduction)


def _clipped_log(x: Tensor) -> Tensor:
    """Return the logarithm, at least -100; its gradient at 0 is 0, not infinite."""
    is_zero = ops.equal(x, 0.0)
    log = ops.maximum(ops.log(ops.where(is_zero, 1.0, x)), -100.0)
    return ops.where(is_zero, -100.0, log)


def kl_div(
    log_probs: Tensor,
    target: Tensor,
    *,
    log_target: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return the Kullback-Leibler divergence of ``target`` from ``exp(log_probs)``.

    ``target`` has probabilities, or their logarithms with ``log_target``. The
    reduction ``"batchmean"`` divides the sum by the first extent, which is the
    divergence of a batch; ``"mean"`` divides by the number of elements, as PyTorch's.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(log_probs, target)
    check_reduction(reduction, ("none", "sum", "mean", "batchmean"))
    if log_target:
        loss = ops.exp(target) * (target - log_probs)
    else:
        positive = target > 0.0
        own = target * ops.log(ops.where(positive, target, 1.0))
        loss = own - target * log_probs
    if reduction == "batchmean":
        return ops.sum(loss) / float(log_probs.shape[0])
    return reduced(loss, reduction)
