"""Loss functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, fixed, i64
from tests.importer.aten.inputs import F32, X
from tests.importer.aten.nn.activation import log_softmax

Y = f32("n", 3, 4)
CHANCE = f32("n", 3, 4, low=0.1, high=0.9)
SIGNS = fixed("float32", [[[-1.0, 1.0, 1.0, -1.0]]])
ENDS: tuple[Callable[..., Any], ...] = (lambda x: x, np.mean, np.sum)


def ended(name: str, f: Callable[..., Any], /, **args: Any) -> list[Case]:
    """Return the cases of a loss with each reduction."""
    return [
        case(
            name,
            lambda *xs, end=end: end(f(*xs)),
            label=("none", "mean", "sum")[number],
            **args,
            reduction=number,
        )
        for number, end in enumerate(ENDS)
    ]


def huber(x: Array, y: Array, delta: float) -> Any:
    size = np.abs(x - y)
    far = F32(delta) * (size - F32(delta / 2))
    return np.where(size < delta, size * size / 2, far)


def crossed(x: Array, y: Array) -> Any:
    return -(y * np.log(x) + (1 - y) * np.log(1 - x))


def from_logits(x: Array, y: Array) -> Any:
    return (1 - y) * x + np.log1p(np.exp(-x))


def surprise(x: Array, y: Array) -> Any:
    return y * (np.log(y) - x)


def picked(x: Array, target: Array) -> Any:
    return np.take_along_axis(x, target[:, None], 1)[:, 0]


def nll(x: Array, target: Array, weight: Array) -> Any:
    each = weight[target]
    return -(picked(x, target) * each).sum() / each.sum()


def nll_parts(x: Array, target: Array, weight: Array) -> Any:
    return nll(x, target, weight), weight[target].sum()


def entropy(x: Array, target: Array, smoothing: float = 0.0) -> Any:
    likely = log_softmax(x, 1)
    hit = -picked(likely, target).mean()
    return F32(1 - smoothing) * hit - F32(smoothing) * likely.mean()


def smooth(x: Array, target: Array, weight: Array) -> tuple[Array, Array]:
    """Return the losses of rows with smoothing 0.2, and what each row counts."""
    terms = log_softmax(x, 1)
    hit = picked(terms, target) * weight[target]
    total = F32(0.8) * hit + F32(0.2) * (terms * weight).mean(1)
    return -total, weight[target]


def shared(x: Array, target: Array) -> Any:
    return -(target * log_softmax(x, 1)).sum(1).mean()


def hinge(x: Array, y: Array) -> Any:
    return np.where(y == 1, x, np.maximum(0, F32(0.7) - x))


def cosine(x: Array, y: Array) -> Any:
    return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))


def embedded(x: Array, y: Array, target: Array) -> Any:
    near = cosine(x, y)
    return np.where(target == 1, 1 - near, np.maximum(0, near - F32(0.2))).mean()


def triplet(a: Array, p: Array, n: Array) -> Any:
    def apart(x: Array, y: Array) -> Any:
        return np.sqrt(((x - y + F32(1e-6)) ** 2).sum(-1))

    return np.maximum(0, apart(a, p) - apart(a, n) + F32(0.5)).mean()


ROWS, CLASSES = f32("n", 4), i64("n", low=0, high=3)
WEIGHT = f32(4, low=0.2)


def stirling(x: Array) -> Array:
    """Return approximate log-factorials; 0 up to 1."""
    safe = np.maximum(x, 1)
    level = safe * np.log(safe) - safe + np.log(2 * np.pi * safe) / 2
    return np.where(x > 1, level, 0).astype(np.float32)


CASES: tuple[Case, ...] = (
    *ended("mse_loss.default", lambda x, y: (x - y) ** 2, self=X, target=Y),
    *ended("l1_loss.default", lambda x, y: np.abs(x - y), self=X, target=Y),
    case(
        "smooth_l1_loss.default",
        lambda x, y: (huber(x, y, 0.5) / F32(0.5)).mean(),
        self=X,
        target=Y,
        beta=0.5,
    ),
    case(
        "huber_loss.default",
        lambda x, y: huber(x, y, 0.5).sum(),
        self=X,
        target=Y,
        reduction=2,
        delta=0.5,
    ),
    case(
        "binary_cross_entropy.default",
        lambda x, y: crossed(x, y).mean(),
        self=CHANCE,
        target=CHANCE,
    ),
    case(
        "binary_cross_entropy.default",
        lambda x, y, w: crossed(x, y) * w,
        label="weight",
        self=CHANCE,
        target=CHANCE,
        weight=f32(4),
        reduction=0,
    ),
    case(
        "binary_cross_entropy_with_logits.default",
        lambda x, y: from_logits(x, y).mean(),
        self=X,
        target=CHANCE,
    ),
    case(
        "kl_div.default",
        lambda x, y: surprise(x, y).sum(),
        self=X,
        target=CHANCE,
        reduction=2,
    ),
    case(
        "kl_div.default",
        lambda x, y: (np.exp(y) * (y - x)).mean(),
        label="log",
        self=X,
        target=Y,
        log_target=True,
    ),
    case(
        "soft_margin_loss.default",
        lambda x, y: np.log1p(np.exp(-y * x)).mean(),
        self=f32(1, 3, 4),
        target=SIGNS,
    ),
    case(
        "poisson_nll_loss.default",
        lambda x, y: (np.exp(x) - y * x).mean(),
        input=X,
        target=Y,
        log_input=True,
        full=False,
        eps=1e-8,
        reduction=1,
    ),
    case(
        "poisson_nll_loss.default",
        lambda x, y: x - y * np.log(x) + stirling(y),
        label="full",
        input=CHANCE,
        target=fixed("float32", [0.0, 1.0, 2.0, 5.0]),
        log_input=False,
        full=True,
        eps=0.0,
        reduction=0,
    ),
    case(
        "hinge_embedding_loss.default",
        lambda x, y: hinge(x, np.broadcast_to(y, x.shape)).mean(),
        self=X,
        target=SIGNS,
        margin=0.7,
    ),
    case(
        "margin_ranking_loss.default",
        lambda x, y, t: np.maximum(0, -t * (x - y) + F32(0.3)).mean(),
        input1=X,
        input2=Y,
        target=SIGNS,
        margin=0.3,
    ),
    case(
        "margin_ranking_loss.default",
        lambda x, y, t: np.maximum(0, -t.astype(F32) * (x - y)).mean(),
        label="integers",
        input1=X,
        input2=Y,
        target=fixed("int64", [[1, -1, 1, -1]] * 3),
    ),
    case(
        "cosine_embedding_loss.default",
        embedded,
        input1=f32(3, 4),
        input2=f32(3, 4),
        target=fixed("float32", [1.0, -1.0, -1.0]),
        margin=0.2,
    ),
    case(
        "triplet_margin_loss.default",
        triplet,
        anchor=X,
        positive=Y,
        negative=Y,
        margin=0.5,
    ),
    case(
        "nll_loss_nd.default",
        lambda x, t: -picked(x, t).mean(),
        self=ROWS,
        target=CLASSES,
    ),
    case(
        "nll_loss_nd.default",
        lambda x, t: -picked(x, t),
        label="planes",
        self=f32("n", 4, 3),
        target=i64("n", 3, low=0, high=3),
        reduction=0,
    ),
    case(
        "nll_loss_forward.default",
        nll_parts,
        self=ROWS,
        target=CLASSES,
        weight=WEIGHT,
        reduction=1,
        ignore_index=-100,
    ),
    case(
        "cross_entropy_loss.default",
        entropy,
        self=f32("n", 4, 3),
        target=i64("n", 3, low=0, high=3),
    ),
    case(
        "cross_entropy_loss.default",
        lambda x, t: entropy(x, t, 0.2),
        label="smooth",
        self=ROWS,
        target=CLASSES,
        label_smoothing=0.2,
    ),
    case(
        "cross_entropy_loss.default",
        lambda x, t: smooth(x, t, np.ones(4, np.float32))[0],
        label="smooth none",
        self=ROWS,
        target=CLASSES,
        reduction=0,
        label_smoothing=0.2,
    ),
    case(
        "cross_entropy_loss.default",
        lambda x, t, w: np.divide(*map(np.sum, smooth(x, t, w))),
        label="smooth weight",
        self=ROWS,
        target=CLASSES,
        weight=WEIGHT,
        label_smoothing=0.2,
    ),
    case(
        "cross_entropy_loss.default",
        lambda x, t, w: nll(log_softmax(x, 1), t, w),
        label="weight",
        self=ROWS,
        target=CLASSES,
        weight=WEIGHT,
    ),
    case(
        "cross_entropy_loss.default",
        shared,
        label="shares",
        self=ROWS,
        target=f32("n", 4, low=0.1, high=0.4),
    ),
)
