"""Generated loops with short axes inside, as of shuffled channels."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import normal

pytest.importorskip("llvmlite")


def follow(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Compare calls of a plan with eager ones, with oneDNN and without."""
    for numpy in (False, True):
        plan = burn.compile(function, generated=True)
        kept = []
        for turn in range(4):
            args = [burn.from_numpy(normal(*s, seed=turn)) for s in shapes]
            expected = function(*args).numpy()
            if numpy:
                with engine.numpy_only():
                    actual = plan(*args)
            else:
                actual = plan(*args)
            kept.append((actual, expected))
        for actual, expected in kept:  # no result is overwritten by a later call
            np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [(6, 7), (1, 7), (7, 1), (1, 1), (9,), (2, 3, 4)])
@pytest.mark.parametrize("groups", [2, 3, 4, 5])
@pytest.mark.parametrize("batch", [1, 2])
def test_shuffled_channels(size: tuple[int, ...], groups: int, batch: int) -> None:
    channels = 8 * groups
    weight = burn.from_numpy(normal(channels, channels, *(1 for _ in size), seed=1))

    def function(x: Any) -> Any:
        y = ops.relu(ops.conv(x, weight))
        y = ops.reshape(y, (batch, groups, 8, *size))
        y = ops.transpose(y, 1, 2).flatten(1, 2)
        first, second = y[:, : channels // 2], y[:, channels // 2 :]
        return ops.concat([first, ops.conv(y, weight), second], 1)

    follow(function, (batch, channels, *size))


@pytest.mark.parametrize("shape", [(0, 4, 3, 3), (2, 4, 0, 3)])
def test_shuffled_channels_of_nothing(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        y = ops.reshape(x * 2.0, (shape[0], 2, 2, *shape[2:]))
        return ops.transpose(y, 1, 2).flatten(1, 2) + 1.0

    follow(function, shape)


#: Loops over [40, 9, n], with operands whose memory has other orders.
LOOPS: dict[str, Callable[..., Any]] = {
    "scale": lambda x, y, z: ops.tanh(x * z + 1.0) - x,
    "permuted": lambda x, y, z: ops.permute(y, (2, 1, 0)) * x + z,
    "result permuted": lambda x, y, z: ops.permute(x * z, (2, 0, 1)).flatten(1),
    "slices": lambda x, y, z: x[:, 1:, ::-1] * z + x[:, :-1],
    "choice": lambda x, y, z: ops.where(x > z, ops.permute(y, (2, 1, 0)), x),
    "sums": lambda x, y, z: (x * z).sum(-1) + ops.permute(y, (2, 1, 0)).max(-1),
    "rows": lambda x, y, z: (x - x.mean(1, keepdims=True)) * z,
}


@pytest.mark.parametrize("extent", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_around_a_short_axis(name: str, extent: int) -> None:
    follow(LOOPS[name], (40, 9, extent), (extent, 9, 40), (extent,))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("extent", [2, 3, 4])
def test_copies_of_other_dtypes(dtype: Any, extent: int) -> None:
    shape = (extent, 30, 17)
    plan = burn.compile(lambda x: ops.permute(x, (1, 2, 0)).flatten(1), generated=True)
    for turn in range(3):
        x = (np.arange(prod(shape)) * (turn + 3) % 251).reshape(shape).astype(dtype)
        expected = x.transpose(1, 2, 0).reshape(30, -1)
        np.testing.assert_array_equal(plan(burn.from_numpy(x)).numpy(), expected)


@pytest.mark.parametrize("shape", [(2, 4, 40, 40), (2, 4, 20, 20), (3, 5)])
def test_reductions_that_nobody_reads(shape: tuple[int, ...]) -> None:
    """A comparison stays in the plan, but no loop is generated that stores nothing."""

    def function(x: Any) -> Any:
        ops.greater(ops.sum(x * 2.0, 1), 0.0)
        return x + 1.0

    follow(function, shape)
