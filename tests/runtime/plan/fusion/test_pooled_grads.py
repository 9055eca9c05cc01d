"""Gradients of ReLU are masked before those of max pooling are scattered."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.plan_ir import Step
from tests.runtime.onednn import normal
from tests.runtime.programs import program_of


def gradient(pool: Any, is_read_twice: bool) -> Any:
    """Return the function of an image that differentiates ReLU and pooling."""

    def run(x: Any) -> Any:
        x = x.to(Autodiff(Cpu())).require_grad()
        y = ops.relu(x)
        value = (ops.max_pool(y, **pool) ** 2.0).sum()
        value = value + y.sum() if is_read_twice else value
        return value.backward()[x]

    return run


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("is_read_twice", [False, True])
@pytest.mark.parametrize(
    "pool",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": ((1, 0), (0, 1))},
    ],
)
def test_gradients_are_those_of_eager_calls(
    pool: Any, is_read_twice: bool, numpy: bool
) -> None:
    function = gradient(pool, is_read_twice)
    compiled = burn.compile(function)
    for seed in range(4):
        x = normal(2, 3, 9, 7, seed=seed)
        x[seed % 2] = -np.abs(x[seed % 2])  # windows of which nothing is positive
        with engine.numpy_only() if numpy else engine.whatever_size():
            result, expected = compiled(burn.tensor(x)), function(burn.tensor(x))
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)
        np.testing.assert_array_equal(result.numpy() == 0, expected.numpy() == 0)
    shapes = [
        step.shapes[0]
        for step in program_of(compiled)._root.steps
        if isinstance(step, Step) and step.primitive.name == "relu_grad"
    ]
    pooled = ops.max_pool(burn.tensor(x), **pool).shape
    assert shapes == [x.shape if is_read_twice else pooled]
