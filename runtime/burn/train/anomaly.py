"""Detection of losses that are NaN or infinite."""

import math
from typing import Any

import numpy as np

from burn.plan.pytree import mapped
from burn.tensor import Tensor
from burn.train.outputs import loss_of


def check_loss(output: Any, arguments: Any, epoch: int, number: int) -> None:
    """Check that the loss of a batch is finite.

    Raises:
        FloatingPointError: it is not; the message says whether the batch is.
    """
    value = float(loss_of(output).numpy())
    if math.isfinite(value):
        return
    flags: list[bool] = []

    def observe(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and leaf.dtype.kind == "f":
            flags.append(bool(np.isfinite(leaf.numpy()).all()))
        return leaf

    mapped(observe, arguments)
    cause = (
        "the batch is finite, so that weights or results have overflowed: lower the "
        "learning rate, or clip gradients (clip_norm)"
        if all(flags)
        else "the batch has elements that are NaN or infinite"
    )
    raise FloatingPointError(
        f"batch {number} of epoch {epoch}: the loss is {value}; {cause}"
    )
