"""Passes know an axis by its position, also where several are of one length."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.fusion.test_images import box

E = 6
SQUARE, LINE, OTHER = box(E, E, seed=1), box(E, seed=2), box(E, seed=3)
KERNEL = box(E, E, 1, seed=4)
IMAGES = box(E, E, 1, 1, seed=5)
SPREAD = burn.Buffer(burn.from_numpy(np.abs(normal(E, seed=6)) + 0.5))


def norm(x: Any) -> Any:
    return ops.batch_norm(x, LINE, SPREAD, OTHER, LINE)


#: What plans make one step of, on tensors whose axes all have one length.
CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "norm after linear": (lambda x: norm(ops.linear(x, SQUARE)), (2, 3, 4)),
    "norm after linear with bias": (
        lambda x: norm(ops.linear(x, SQUARE, LINE)),
        (2, 3, 4),
    ),
    "norm after matmul": (lambda x: norm(x @ SQUARE + OTHER), (2, 3, 4)),
    "norm after conv": (lambda x: norm(ops.conv(x, KERNEL)), (3,)),
    "norm before linear": (lambda x: ops.linear(norm(x), SQUARE), (2, 3, 4)),
    "norm before flat linear": (
        lambda x: ops.linear(ops.reshape(norm(x), (E, -1)), box(4, E * E, seed=9)),
        (3,),
    ),
    "scale by row": (
        lambda x: ops.linear(x, SQUARE) * ops.reshape(LINE, (E, 1)),
        (2, 3, 4),
    ),
    "scale by column": (lambda x: ops.linear(x, SQUARE) * LINE + OTHER, (2, 3, 4)),
    "bias by row": (
        lambda x: x @ SQUARE + ops.reshape(LINE, (E, 1)),
        (2, 3, 4),
    ),
    "scale of conv by position": (lambda x: ops.conv(x, KERNEL) * LINE, (3,)),
    "scale of images by column": (lambda x: ops.conv(x, IMAGES) * LINE, (4,)),
    "layers of one input": (
        lambda x: ops.linear(x, SQUARE) @ ops.linear(x, SQUARE, LINE),
        (2, 3, 4),
    ),
    "rows and back": (
        lambda x: ops.reshape(
            ops.linear(ops.reshape(ops.transpose(x, 0, 1), (-1, E)), SQUARE), x.shape
        ),
        (2, 3, 4),
    ),
    "sums of products": (
        lambda x: ops.sum(ops.unsqueeze(x, -1) * SQUARE * 2.0, -2),
        (2, 3),
    ),
    "einsum": (lambda x: ops.einsum("bij,jk->bki", [x, SQUARE]), (3,)),
    "residual": (
        lambda x: ops.relu(ops.linear(x, SQUARE) + ops.transpose(x, -1, -2)),
        (2, 3, 4),
    ),
    "flat image": (
        lambda x: ops.linear(
            ops.reshape(ops.relu(ops.conv(x, KERNEL)), (E, -1)), box(4, E * E, seed=8)
        ),
        (3,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_eager_calls(name: str) -> None:
    function, ranks = CASES[name]
    for rank in ranks:
        compare(function, (E,) * rank)


@pytest.mark.parametrize("bias", [True, False])
def test_a_norm_of_sequences_after_a_layer(bias: bool) -> None:
    layer, line = nn.Linear(E, E, bias=bias), nn.BatchNorm1d(E)
    line.running_mean.set(LINE.value)
    line.running_var.set(SPREAD.value)
    compare(lambda x: line(layer(x)), (3, E, E))


@pytest.mark.parametrize("state", [(1, E), (E,), (E, E)])
@pytest.mark.parametrize("rows", [1, E])
def test_states_of_cells_that_are_broadcast(state: tuple[int, ...], rows: int) -> None:
    weight, recurrent = box(4 * E, E, seed=11), box(4 * E, E, seed=12)

    def step(x: Any, h: Any, c: Any) -> Any:
        gates = ops.linear(x, weight) + ops.linear(h, recurrent)
        i, f, g, o = ops.split(gates, (E, E, E, E), 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c)

    compare(step, (rows, E), (E, E), state)


def compare(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Assert that a plan gives what eager calls give, three times."""
    plan = burn.compile(function)
    for seed in (20, 30, 40):
        given = [
            burn.from_numpy(normal(*s, seed=seed + i)) for i, s in enumerate(shapes)
        ]
        with engine.numpy_only():
            expected = function(*given).numpy()
        assert_close(plan(*given).numpy(), expected)
    assert not plan.notes
