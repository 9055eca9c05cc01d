"""Norms of channels with the scale and ReLU after them, in one step of a plan."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import program_of

CHANNELS = 4


def network(factor: float | None, *, affine: bool) -> Any:
    """A norm of what a convolution gives, the input beside it, twice."""
    weights = [
        burn.from_numpy(normal(CHANNELS, n * CHANNELS, 3, 3, seed=n)) for n in (2, 3)
    ]

    def norm(x: Any) -> Any:
        stats = [normal(x.shape[1], seed=7), np.abs(normal(x.shape[1], seed=8)) + 0.1]
        stats += [normal(x.shape[1], seed=9), normal(x.shape[1], seed=10)] * affine
        x = ops.batch_norm(x, *map(burn.from_numpy, stats), epsilon=0.01)
        return ops.relu(x if factor is None else x * factor)

    def run(x: Any) -> Any:
        for weight in weights:
            x = ops.concat([x, ops.conv(norm(x), weight, padding=1)], axis=1)
        return norm(x)

    return run


@pytest.mark.parametrize("factor", [None, 0.25, -2.0])
@pytest.mark.parametrize("affine", [False, True])
def test_norms_with_endings(factor: float | None, affine: bool) -> None:
    run = network(factor, affine=affine)
    compiled = burn.compile(run)
    for seed in range(3):
        x = burn.from_numpy(normal(2, 2 * CHANNELS, 6, 5, seed=seed))
        with engine.numpy_only():
            expected = run(x)
        assert_close(compiled(x).numpy(), expected.numpy())
    steps = program_of(compiled)._root.steps
    names = [step.primitive.name for step in steps if isinstance(step, Step)]
    assert names.count("batch_norm_then") == 3
    assert not {"batch_norm", "relu", "mul", "chained"} & {*names}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_what_is_not_finite_or_large(value: float) -> None:
    run = network(None, affine=True)
    compiled = burn.compile(run)
    x = normal(2, 2 * CHANNELS, 6, 5)
    for _ in range(2):
        compiled(burn.from_numpy(x))
    x[1, 2, 3, 4] = value
    actual, expected = compiled(burn.from_numpy(x)), run(burn.from_numpy(x))
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_computed_weights_are_scaled_afterwards() -> None:
    x, mean, var = normal(2, 3, 8, 8), normal(3, seed=1), np.abs(normal(3, seed=2)) + 1

    def run(*given: Any) -> Any:
        x, mean, var, weight = given
        weight = weight * 2.0
        return ops.relu(ops.batch_norm(x, mean, var, weight, weight) * 0.5)

    compiled = burn.compile(run)
    for seed in range(3):
        given = [burn.from_numpy(a) for a in (x, mean, var, normal(3, seed=seed))]
        assert_close(compiled(*given).numpy(), run(*given).numpy())
