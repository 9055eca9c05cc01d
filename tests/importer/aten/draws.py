"""Random operators, tested by statistics of their numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, dtype_of, f32, fixed, floats, i64

SHAPE = (40, 50, 11)
X = f32(*SHAPE)
DEVICE: dict[str, Any] = {"dtype": dtype_of("float32")}


@dataclass(frozen=True)
class Draw:
    """A call, and the mean, deviation and bounds of its numbers.

    Without a deviation only the bounds are checked.
    """

    case: Case
    mean: float = 0.0
    deviation: float | None = None
    low: float = -math.inf
    high: float = math.inf

    def check(self, actual: Array) -> None:
        """Return if numbers are plausible; wrong failures are rarer than 1 in 10^8."""
        (expected,) = self.case.results(self.case.arrays(0))
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert self.low <= actual.min() and actual.max() <= self.high
        assert len(np.unique(actual)) > 1
        if self.deviation is not None:
            spread = self.deviation / math.sqrt(actual.size)
            assert abs(actual.mean(dtype=np.float64) - self.mean) < 6 * spread
            assert abs(actual.std(dtype=np.float64) / self.deviation - 1) < 0.1


def draw(target: str, *bounds: Any, shape: Any = SHAPE, **args: Any) -> Draw:
    """Return a call with float32 results, and the bounds of its numbers."""
    return Draw(case(target, lambda *_: np.zeros(shape, np.float32), **args), *bounds)


def whole(target: str, *bounds: Any, shape: Any = SHAPE, **args: Any) -> Draw:
    """Return a call with int64 results, and the bounds of its numbers."""
    return Draw(case(target, lambda *_: np.zeros(shape, np.int64), **args), *bounds)


def even(low: int, high: int) -> tuple[float, float, int, int]:
    """Return the mean, deviation and bounds of uniform integers."""
    return (low + high - 1) / 2, math.sqrt(((high - low) ** 2 - 1) / 12), low, high - 1


UNIT = (0.5, math.sqrt(1 / 12), 0, 1)
SIZE = list(SHAPE)
DRAWS = (
    draw("rand.default", *UNIT, size=SIZE, **DEVICE),
    draw("randn.default", 0, 1, size=SIZE, **DEVICE),
    draw("rand_like.default", *UNIT, self=X),
    draw("randn_like.default", 0, 1, self=X),
    draw(
        "uniform.default", 1, 4 / math.sqrt(12), -1, 3, self=X, **{"from": -1.0}, to=3.0
    ),
    draw(
        "uniform_.default",
        1,
        4 / math.sqrt(12),
        -1,
        3,
        self=X,
        **{"from": -1.0},
        to=3.0,
    ),
    draw("normal_.default", 2, 3, self=X, mean=2.0, std=3.0),
    draw("normal_functional.default", 2, 3, self=X, mean=2.0, std=3.0),
    draw("exponential.default", 0.5, 0.5, 0, self=X, lambd=2.0),
    draw("exponential_.default", 0.5, 0.5, 0, self=X, lambd=2.0),
    draw("geometric_.default", 4, math.sqrt(12), 1, self=X, p=0.25),
    draw("cauchy_.default", self=X, median=1.0, sigma=2.0),
    draw(
        "log_normal_.default",
        math.exp(0.5 + 0.125),
        math.sqrt(math.expm1(0.25)) * math.exp(0.5 + 0.125),
        0,
        self=X,
        mean=0.5,
        std=0.5,
    ),
    draw("random_.to", *even(0, 7), self=X, to=7),
    draw("random_.from", *even(-3, 7), self=X, **{"from": -3}, to=7),
    whole("randint.low", *even(-3, 8), low=-3, high=8, size=SIZE),
    whole("randint.default", *even(0, 8), high=8, size=SIZE),
    whole("randint_like.low_dtype", *even(-3, 8), self=i64(*SHAPE), low=-3, high=8),
    whole("randperm.default", 249.5, 144.34, 0, 499, n=500, shape=(500,)),
    draw("bernoulli.default", 0.5, 0.5, 0, 1, self=floats("float32", SHAPE, 0.0, 1.0)),
    draw("bernoulli.p", 0.3, math.sqrt(0.21), 0, 1, self=X, p=0.3),
    draw(
        "normal.Tensor_float",
        2,
        0.5,
        mean=fixed("float32", np.full(SHAPE, 2.0)),
        std=0.5,
    ),
    whole(
        "multinomial.default",
        1.5,
        math.sqrt(1.45),
        0,
        3,
        self=fixed("float32", [[0.3, 0.2, 0.2, 0.3]] * 3),
        num_samples=5000,
        replacement=True,
        shape=(3, 5000),
    ),
    whole(
        "multinomial.default",
        3.5,
        math.sqrt(5.25),
        0,
        7,
        label="once",
        self=fixed("float32", np.arange(1, 25).reshape(3, 8)),
        num_samples=8,
        shape=(3, 8),
    ),
)
