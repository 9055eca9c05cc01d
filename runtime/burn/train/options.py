"""The options of training steps, checked."""

from typing import Any

from burn.nn.autocast import Precision, check_precision
from burn.optim.combined import Combined
from burn.optim.optimizer import Optimizer
from burn.optim.zero import ZeroRedundancyOptimizer

#: The optimizers that a step supports.
AnyOptimizer = Optimizer | Combined | ZeroRedundancyOptimizer


def check_options(optimizer: Any, accumulate: int, precision: Precision) -> None:
    if not isinstance(optimizer, AnyOptimizer):
        kind = type(optimizer).__name__
        raise TypeError(
            f"expected an optimizer that takes gradients, as optim.AdamW, got {kind}; "
            "optim.LBFGS evaluates the loss several times: call its step(closure) in a "
            "loop of your own"
        )
    if accumulate < 1:
        raise ValueError(f"expected accumulate >= 1, got {accumulate}")
    check_precision(precision)
