"""Optimizers in float64 NumPy, written from their papers and PyTorch's documentation.

Each is a function of the hyperparameters, a first value and a sequence of gradients,
and returns the last value.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]


def sgd(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> Array:
    buffer: Array | None = None
    for grad in grads:
        g = grad + weight_decay * x
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        x = x - lr * g
    return x


def adam(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    decoupled: bool = False,
) -> Array:
    m, v, most = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for t, grad in enumerate(grads, 1):
        g = grad if decoupled else grad + weight_decay * x
        if decoupled:
            x = x - lr * weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        most = np.maximum(most, v)
        corrected = (most if amsgrad else v) / (1 - betas[1] ** t)
        x = x - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(corrected) + eps)
    return x


def adamw(x: Array, grads: Sequence[Array], lr: float, **options: Any) -> Array:
    return adam(x, grads, lr, **{"weight_decay": 0.01, **options}, decoupled=True)


def adagrad(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    lr_decay: float = 0.0,
    weight_decay: float = 0.0,
    initial_accumulator_value: float = 0.0,
    eps: float = 1e-10,
) -> Array:
    total = np.full_like(x, initial_accumulator_value)
    for t, grad in enumerate(grads):
        g = grad + weight_decay * x
        total = total + g**2
        x = x - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return x


def rmsprop(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Array:
    v, mean, buffer = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for grad in grads:
        g = grad + weight_decay * x
        v = alpha * v + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        spread = np.sqrt(v - mean**2 if centered else v)
        buffer = momentum * buffer + g / (spread + eps)
        x = x - lr * buffer
    return x


def lion(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    betas: tuple[float, float] = (0.9, 0.99),
    weight_decay: float = 0.0,
) -> Array:
    m = np.zeros_like(x)
    for g in grads:
        update = np.sign(betas[0] * m + (1 - betas[0]) * g)
        x = x - lr * (update + weight_decay * x)
        m = betas[1] * m + (1 - betas[1]) * g
    return x


def adan(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    betas: tuple[float, float, float] = (0.98, 0.92, 0.99),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Array:
    m, d, n = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    b1, b2, b3 = betas
    previous = grads[0]
    for t, g in enumerate(grads, 1):
        change = g - previous
        m = b1 * m + (1 - b1) * g
        d = b2 * d + (1 - b2) * change
        n = b3 * n + (1 - b3) * (g + b2 * change) ** 2
        moved = m / (1 - b1**t) + b2 * d / (1 - b2**t)
        x = x - lr * moved / (np.sqrt(n / (1 - b3**t)) + eps)
        x = x / (1 + lr * weight_decay)
        previous = g
    return x


def muon(
    x: Array,
    grads: Sequence[Array],
    lr: float,
    weight_decay: float = 0.1,
    momentum: float = 0.95,
    nesterov: bool = True,
    adjust_lr_fn: str = "original",
) -> Array:
    rows, columns = x.shape
    ratio = np.sqrt(max(1, rows / columns))
    if adjust_lr_fn == "match_rms_adamw":
        ratio = 0.2 * np.sqrt(max(rows, columns))
    buffer = np.zeros_like(x)
    for g in grads:
        buffer = momentum * buffer + (1 - momentum) * g
        ahead = (1 - momentum) * g + momentum * buffer
        u = ahead if nesterov else buffer
        # The polynomial acts on singular values: the same by a decomposition.
        left, values, right = np.linalg.svd(u / np.linalg.norm(u), full_matrices=False)
        for _ in range(5):
            values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
        x = x * (1 - lr * weight_decay) - lr * ratio * (left * values) @ right
    return x
