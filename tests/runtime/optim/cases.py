"""Optimizers with options that the tests run them with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import burn
from burn import Autodiff, Cpu, optim
from tests.runtime.optim import references

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """An optimizer of ours, the reference, and hyperparameters for both."""

    ours: Callable[..., optim.Optimizer]
    reference: references.Reference
    options: dict[str, Any]


CASES = {
    "sgd": Case(optim.SGD, references.sgd, {"lr": 0.1}),
    "sgd_decay": Case(optim.SGD, references.sgd, {"lr": 0.1, "weight_decay": 0.05}),
    "momentum": Case(
        optim.SGD, references.sgd, {"lr": 0.02, "momentum": 0.9, "dampening": 0.3}
    ),
    "nesterov": Case(
        optim.SGD,
        references.sgd,
        {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": Case(optim.Adam, references.adam, {"lr": 0.01}),
    "adam_decay": Case(
        optim.Adam,
        references.adam,
        {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-6},
    ),
    "amsgrad": Case(optim.Adam, references.adam, {"lr": 0.01, "amsgrad": True}),
    "adamw": Case(optim.AdamW, references.adamw, {"lr": 0.01}),
    "adamw_decay": Case(
        optim.AdamW, references.adamw, {"lr": 0.02, "weight_decay": 0.2}
    ),
    "adagrad": Case(optim.Adagrad, references.adagrad, {"lr": 0.1}),
    "adagrad_decay": Case(
        optim.Adagrad,
        references.adagrad,
        {
            "lr": 0.1,
            "lr_decay": 0.05,
            "weight_decay": 0.02,
            "initial_accumulator_value": 0.3,
        },
    ),
    "rmsprop": Case(optim.RMSprop, references.rmsprop, {"lr": 0.01}),
    "rmsprop_centered": Case(
        optim.RMSprop,
        references.rmsprop,
        {
            "lr": 0.005,
            "alpha": 0.9,
            "momentum": 0.7,
            "centered": True,
            "weight_decay": 0.01,
        },
    ),
    "lion": Case(optim.Lion, references.lion, {"lr": 0.01, "weight_decay": 0.1}),
    "adan": Case(optim.Adan, references.adan, {"lr": 0.01, "weight_decay": 0.1}),
    "muon": Case(optim.Muon, references.muon, {"lr": 0.02}),
    "muon_rms": Case(
        optim.Muon,
        references.muon,
        {"lr": 0.02, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
    ),
}
STEPS = 50
#: More rows than columns, and fewer.
SHAPES = {"tall": (5, 3), "wide": (2, 4)}


def start(name: str, dtype: Any = np.float64) -> Array:
    """The first value of a parameter."""
    rng = np.random.default_rng(len(name))
    return rng.standard_normal(SHAPES[name]).astype(dtype)


def gradients(name: str, dtype: Any = np.float64) -> list[Array]:
    """A gradient for each step, of changing size."""
    rng = np.random.default_rng(7 + len(name))
    return [
        (rng.standard_normal(SHAPES[name]) * (1 + step % 3)).astype(dtype)
        for step in range(STEPS)
    ]


def parameters(dtype: Any = np.float64) -> dict[str, burn.Parameter]:
    """Parameters in training, by path."""
    home = Autodiff(Cpu())
    return {
        name: burn.Parameter(burn.tensor(start(name, dtype), home)) for name in SHAPES
    }


def given(step: int, dtype: Any = np.float64) -> dict[str, burn.Tensor]:
    """The gradients of a step, by path."""
    return {name: burn.tensor(gradients(name, dtype)[step]) for name in SHAPES}
