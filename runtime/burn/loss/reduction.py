"""Reduction of elementwise losses, and argument checks of losses."""

from typing import Any

from burn import ops
from burn.tensor import Tensor

REDUCTIONS = ("none", "sum", "mean")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return ``loss`` itself, its sum or its mean.

    Raises:
        ValueError: ``reduction`` is unknown.
    """
    check_reduction(reduction)
    if reduction == "none":
        return loss
    return ops.sum(loss) if reduction == "sum" else ops.mean(loss)


def check_reduction(reduction: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """Raise ``ValueError`` unless ``reduction`` is one of ``allowed``."""
    if reduction not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"expected a reduction of {names}, got {reduction!r}")


def check_same_shape(x: Any, target: Any) -> None:
    """Raise ``ValueError`` with both shapes unless they are equal.

    A target that would be broadcast is nearly always a mistake.
    """
    if tuple(x.shape) != tuple(target.shape):
        raise ValueError(
            f"expected a target of shape {list(x.shape)}, got {list(target.shape)}"
        )
