"""Gradient clipping."""

from collections.abc import Mapping
from typing import TypeVar

from burn import ops
from burn.dtypes import float32
from burn.tensor import Tensor

K = TypeVar("K")


def clip_grad_value(gradients: Mapping[K, Tensor], limit: float) -> dict[K, Tensor]:
    """Return the gradients with elements clipped to [-limit, limit]."""
    return {key: ops.clip(grad, -limit, limit) for key, grad in gradients.items()}


def clip_grad_norm(gradients: Mapping[K, Tensor], limit: float) -> dict[K, Tensor]:
    """Return the gradients scaled down to a total norm of at most ``limit``."""
    return clip_grads_with_norm(gradients, limit, total_norm(gradients))


def clip_grads_with_norm(
    gradients: Mapping[K, Tensor], limit: float, norm: Tensor
) -> dict[K, Tensor]:
    """Return gradients whose total norm is ``norm``, scaled down to ``limit``."""
    scale = ops.minimum(limit / (norm + 1e-6), 1.0)
    return {
        key: grad * ops.cast(scale, dtype=grad.dtype) for key, grad in gradients.items()
    }


def total_norm(gradients: Mapping[K, Tensor]) -> Tensor:
    """Return the Euclidean norm of all gradients, a scalar of at least 32 bits."""
    total: Tensor | None = None
    for grad in gradients.values():
        wide = ops.cast(grad, dtype=float32) if grad.dtype.itemsize < 4 else grad
        square = ops.sum(wide * wide)
        total = square if total is None else total + square
    if total is None:
        raise ValueError("expected gradients, got none")
    return ops.sqrt(total)
