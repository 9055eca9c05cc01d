"""Losses with their arguments; names are those of torch.nn.functional."""

from typing import Any, NamedTuple

import numpy as np

RNG = np.random.default_rng(11)


class Case(NamedTuple):
    """A loss: arrays that are differentiated, other arrays, and options."""

    name: str
    inputs: tuple[Any, ...]
    rest: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012
    arrays: dict[str, Any] = {}  # noqa: RUF012


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


SCORES, CLASSES = normal(5, 4), np.array([0, 3, 1, 3, 2])
IMAGE, LABELS = normal(2, 4, 3, 2), RNG.integers(0, 4, (2, 3, 2))
SOME = np.array([0, -100, 1, 3, -100])
WEIGHT = np.array([0.5, 2.0, 1.0, 0.1])
SOFT = softmax(normal(5, 4), 1)
BITS = RNG.integers(0, 2, (5, 4)).astype(float)
SIGNS = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
X, Y = normal(5, 4), normal(5, 4)
COUNTS = RNG.integers(0, 5, (5, 4)).astype(float)
LOGS = np.log(softmax(normal(5, 4), 1))

CASES = {
    "classes": Case("cross_entropy", (SCORES,), (CLASSES,)),
    "sum": Case("cross_entropy", (SCORES,), (CLASSES,), {"reduction": "sum"}),
    "none": Case("cross_entropy", (SCORES,), (CLASSES,), {"reduction": "none"}),
    "image": Case("cross_entropy", (IMAGE,), (LABELS,), {"label_smoothing": 0.1}),
    "weighted": Case("cross_entropy", (IMAGE,), (LABELS,), arrays={"weight": WEIGHT}),
    "smooth": Case(
        "cross_entropy",
        (SCORES,),
        (SOME,),
        {"label_smoothing": 0.2},
        {"weight": WEIGHT},
    ),
    "smooth_none": Case(
        "cross_entropy",
        (SCORES,),
        (SOME,),
        {"label_smoothing": 0.2, "reduction": "none"},
    ),
    "ignored": Case("cross_entropy", (SCORES,), (CLASSES,), {"ignore_index": 3}),
    "soft": Case("cross_entropy", (SCORES,), (SOFT,)),
    "soft_smooth": Case(
        "cross_entropy",
        (SCORES,),
        (SOFT,),
        {"label_smoothing": 0.3},
        {"weight": WEIGHT},
    ),
    "nll": Case("nll_loss", (LOGS,), (SOME,), arrays={"weight": WEIGHT}),
    "bce": Case("binary_cross_entropy_with_logits", (SCORES * 9,), (BITS,)),
    "bce_weighted": Case(
        "binary_cross_entropy_with_logits",
        (SCORES,),
        (BITS,),
        {"reduction": "sum"},
        {"weight": WEIGHT, "pos_weight": WEIGHT * 3},
    ),
    "bce_probs": Case("binary_cross_entropy", (SOFT,), (BITS,)),
    "bce_probs_weighted": Case(
        "binary_cross_entropy",
        (1 - SOFT,),
        (BITS,),
        {"reduction": "none"},
        {"weight": WEIGHT},
    ),
    "mse": Case("mse_loss", (X, Y)),
    "l1": Case("l1_loss", (X, Y), (), {"reduction": "sum"}),
    "huber": Case("huber_loss", (X, Y), (), {"delta": 0.7}),
    "smooth_l1": Case("smooth_l1_loss", (X, Y), (), {"beta": 0.7}),
    "smooth_l1_zero": Case("smooth_l1_loss", (X, Y), (), {"beta": 0.0}),
    "kl": Case("kl_div", (LOGS,), (BITS,), {"reduction": "batchmean"}),
    "kl_log": Case(
        "kl_div", (LOGS,), (np.log(SOFT),), {"log_target": True, "reduction": "sum"}
    ),
    "poisson": Case("poisson_nll_loss", (X,), (COUNTS,)),
    "poisson_rate": Case(
        "poisson_nll_loss", (np.exp(X),), (COUNTS,), {"log_input": False, "full": True}
    ),
    "gaussian": Case("gaussian_nll_loss", (X, Y, np.exp(SCORES)), (), {"full": True}),
    "cosine": Case("cosine_embedding_loss", (X, Y), (SIGNS,), {"margin": -0.2}),
    "triplet": Case("triplet_margin_loss", (X, Y, SCORES)),
    "triplet_swap": Case(
        "triplet_margin_loss", (X, Y, SCORES), (), {"swap": True, "margin": 3.0}
    ),
    "triplet_p": Case("triplet_margin_loss", (X, Y, SCORES), (), {"p": 3.0}),
    "ranking": Case("margin_ranking_loss", (X[:, 0], Y[:, 0]), (SIGNS,)),
    "hinge": Case("hinge_embedding_loss", (X[:, 0] + 1,), (SIGNS,)),
}
