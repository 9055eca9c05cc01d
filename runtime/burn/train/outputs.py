"""Outputs of a step: the loss, and inputs of metrics."""

from typing import Any, NamedTuple

from burn.tensor import Tensor


class Classified(NamedTuple):
    """A loss with the scores [N, C, ...] and classes [N, ...] it is computed from."""

    loss: Tensor
    logits: Tensor
    targets: Tensor


class Regressed(NamedTuple):
    """A loss with the predictions and targets, of equal shape, it is computed from."""

    loss: Tensor
    predictions: Tensor
    targets: Tensor


def loss_of(output: Any) -> Tensor:
    """Return ``output`` itself if it is a tensor, else its ``loss``.

    Raises:
        TypeError: the output is neither.
    """
    loss = output if isinstance(output, Tensor) else getattr(output, "loss", None)
    if not isinstance(loss, Tensor):
        raise TypeError(
            "expected a loss, or a tuple with a field 'loss', "
            f"got {type(output).__name__}"
        )
    return loss
