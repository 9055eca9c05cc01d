"""Connectionist temporal classification."""

import numpy as np

from burn import ops
from burn.loss.reduction import check_reduction
from burn.tensor import Tensor, from_numpy

#: The logarithm used for probability 0: finite, so that gradients are finite.
_NEVER = -1e30
_HALF = -1e20


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the connectionist temporal classification loss (A. Graves et al., 2006).

    ``log_probs`` [T, N, C] are log probabilities, ``targets`` [N, S] classes without
    blanks, of lengths ``target_lengths`` [N]; ``input_lengths`` [N] are the lengths of
    the inputs. ``"mean"`` averages losses divided by their target lengths. A target
    without any alignment has an infinite loss, or 0 with ``zero_infinity``.

    Raises:
        ValueError: a shape does not fit, or ``reduction`` is unknown.
    """
    check_reduction(reduction)
    steps, count, _ = log_probs.shape
    if targets.ndim != 2 or targets.shape[0] != count:
        raise ValueError(f"expected targets [{count}, S], got {list(targets.shape)}")
    labels = _with_blanks(targets, blank)
    skips = _may_skip(labels, blank)
    index = ops.expand(ops.unsqueeze(labels, 0), (steps, *labels.shape))
    emitted = ops.gather_elements(log_probs, index, 2)
    state = ops.where(_positions(labels) < 2, emitted[0], _NEVER)
    lengths = ops.unsqueeze(input_lengths, 1)
    for step in range(1, steps):
        after = _advance(state, skips) + emitted[step]
        state = ops.where(lengths > step, ops.maximum(after, _NEVER), state)
    total = _final(state, target_lengths)
    loss = ops.where(total > _HALF, -total, 0.0 if zero_infinity else float("inf"))
    if reduction == "none":
        return loss
    if reduction == "sum":
        return ops.sum(loss)
    each = ops.cast(ops.maximum(target_lengths, 1), dtype=loss.dtype)
    return ops.mean(loss / each)


def _with_blanks(targets: Tensor, blank: int) -> Tensor:
    """Return targets [N, S] with blanks around each label: [N, 2 S + 1]."""
    targets = ops.cast(targets, dtype=np.dtype(np.int64))
    between = ops.full_like(targets, blank)
    pairs = ops.stack([between, targets], 2).reshape(targets.shape[0], -1)
    return ops.concat([pairs, ops.full_like(pairs[:, :1], blank)], 1)


def _positions(labels: Tensor) -> Tensor:
    return from_numpy(np.arange(labels.shape[1])).unsqueeze(0)


def _may_skip(labels: Tensor, blank: int) -> Tensor:
    """Return where the blank before a label may be skipped: after another label."""
    earlier = ops.concat([ops.full_like(labels[:, :2], blank), labels[:, :-2]], 1)
    return ops.logical_and(
        ops.not_equal(labels, blank)[:, : labels.shape[1]],
        ops.not_equal(labels, earlier[:, : labels.shape[1]]),
    )


def _advance(state: Tensor, skips: Tensor) -> Tensor:
    """Return the log-sum over the three predecessors of each state."""
    never = ops.full_like(state[:, :2], _NEVER)
    width = state.shape[1]
    one = ops.concat([never[:, :1], state], 1)[:, :width]
    two = ops.concat([never, state], 1)[:, :width]
    return _log_sum([state, one, ops.where(skips, two, _NEVER)])


def _log_sum(parts: list[Tensor]) -> Tensor:
    top = parts[0]
    for part in parts[1:]:
        top = ops.maximum(top, part)
    top = top.detach()
    total = ops.exp(parts[0] - top)
    for part in parts[1:]:
        total = total + ops.exp(part - top)
    return ops.log(total) + top


def _final(state: Tensor, target_lengths: Tensor) -> Tensor:
    """Return the log-sum of the last label and the blank after it."""
    last = ops.unsqueeze(ops.cast(target_lengths, dtype=np.dtype(np.int64)), 1) * 2
    in_blank = ops.gather_elements(state, last, 1)
    in_label = ops.gather_elements(state, ops.maximum(last - 1, 0), 1)
    in_label = ops.where(last > 0, in_label, _NEVER)
    return ops.squeeze(_log_sum([in_blank, in_label]), 1)
