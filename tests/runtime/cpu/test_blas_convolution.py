"""Convolutions of plans without an engine are those of eager calls, in every run."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import calls_of
from tests.sampling import example_count

pads = st.integers(0, 2)
STEPS = st.fixed_dictionaries(
    {
        "stride": st.tuples(st.integers(1, 2), st.integers(1, 3)),
        "padding": st.tuples(st.tuples(pads, pads), st.tuples(pads, pads)),
        "dilation": st.tuples(st.integers(1, 2), st.integers(1, 2)),
    }
)
#: What follows a convolution, as a function of it and of what it may be added to.
ENDINGS: dict[str, Any] = {
    "nothing": lambda y, z: y,
    "relu": lambda y, z: ops.relu(y),
    "clip": lambda y, z: ops.clip(y, 0.0, 0.6),
    "sum": lambda y, z: ops.relu(y + z),
    "silu": lambda y, z: ops.silu(y * 0.5),
    "tanh": lambda y, z: ops.tanh(y) + z,
}


def compare(run: Any, *shapes: tuple[int, ...], generated: bool = False) -> Any:
    """Compare three runs of the plan of ``run`` with eager calls; the plan."""
    with engine.numpy_only():
        plan = burn.compile(run, generated=generated)
        for seed in range(3):
            arrays = [
                normal(*shape, seed=10 * seed + i) for i, shape in enumerate(shapes)
            ]
            given = [burn.from_numpy(array) for array in arrays]
            actual, expected = plan(*given), run(*given)
            assert_close(actual.numpy(), expected.numpy())
        assert not plan.notes
    return plan


def weights_of(shape: tuple[int, ...], *, bias: bool) -> list[Any]:
    parts = [normal(*shape, seed=1), normal(shape[0], seed=2) if bias else None]
    return [None if part is None else burn.from_numpy(part) for part in parts]


@settings(max_examples=example_count(60), deadline=None)
@given(
    batch=st.integers(1, 2),
    channels=st.sampled_from([1, 3, 4, 8, 40]),
    outputs=st.sampled_from([1, 5, 16]),
    size=st.tuples(st.integers(5, 20), st.integers(5, 20)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    steps=STEPS,
    ending=st.sampled_from(list(ENDINGS)),
    bias=st.booleans(),
    depthwise=st.booleans(),
)
def test_convolutions(
    batch: int,
    channels: int,
    outputs: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    steps: Any,
    ending: str,
    bias: bool,
    depthwise: bool,
) -> None:
    groups = channels if depthwise else 1
    shape = (channels if depthwise else outputs, channels // groups, *kernel)
    weight, shift = weights_of(shape, bias=bias)

    def conv(x: Any) -> Any:
        return ops.conv(x, weight, shift, groups=groups, **steps)

    x = burn.from_numpy(normal(batch, channels, *size))
    result = conv(x).shape
    run = ENDINGS[ending]
    compare(lambda x, z: run(conv(x), z), x.shape, result)


@pytest.mark.parametrize("kernel", [3, 7])
@pytest.mark.parametrize("size", [(8, 9), (15, 16), (31, 7)])
@pytest.mark.parametrize("padding", [0, 1, 3, ((0, 2), (1, 0))])
def test_first_layers_that_move_by_two(kernel: int, size: Any, padding: Any) -> None:
    weight, bias = weights_of((6, 3, kernel, kernel), bias=True)
    plan = compare(
        lambda x: ops.relu(ops.conv(x, weight, bias, stride=2, padding=padding)),
        (2, 3, *size),
    )
    assert StepCall not in calls_of(plan)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 6])
def test_ranks_and_tiles(rank: int, groups: int) -> None:
    """There are several tiles, the last of which is smaller."""
    size = {1: (3001,), 2: (101, 67), 3: (11, 13, 29)}[rank]
    weight, bias = weights_of((6, 6 // groups, *rank * (3,)), bias=True)
    plan = compare(
        lambda x: ops.relu(ops.conv(x, weight, bias, padding=1, groups=groups)),
        (2, 6, *size),
    )
    assert StepCall not in calls_of(plan)


def test_pixels_in_tiles() -> None:
    weight, bias = weights_of((96, 16, 1, 1), bias=True)
    compare(
        lambda x, z: ops.relu(ops.conv(x, weight, bias) + z),
        *((2, 16, 61, 53), (2, 96, 61, 53)),
    )


def test_networks_share_memory_of_equal_layers() -> None:
    """Padding stays zeros between layers, and tiles are those of the last layer."""
    weights = [weights_of((8, 8, 3, 3), bias=True) for _ in range(3)]

    def run(x: Any) -> Any:
        y = x
        for weight, bias in weights:
            y = ops.relu(ops.conv(y, weight, bias, padding=1)) + x
        return y

    compare(run, (1, 8, 9, 9))


@pytest.mark.parametrize("groups", [1, 4])
def test_weights_that_are_computed(groups: int) -> None:
    compare(
        lambda x, w: ops.relu(ops.conv(x, w * 2.0, padding=1, groups=groups)),
        *((1, 4, 9, 9), (4, 4 // groups, 3, 3)),
    )


def test_generated_kernels() -> None:
    pytest.importorskip("llvmlite")
    first, shift = weights_of((8, 3, 3, 3), bias=True)
    each, other = weights_of((8, 1, 3, 3), bias=True)

    def run(x: Any) -> Any:
        x = ops.clip(ops.conv(x, first, shift, stride=2, padding=1), 0.0, 6.0)
        return ops.relu(ops.conv(x, each, other, padding=1, groups=8)) + x

    compare(run, (2, 3, 17, 16), generated=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("groups", [1, 4])
def test_what_is_not_finite(groups: int, value: float) -> None:
    """Within the network as well: 1e38 times a weight is infinite."""
    weight, _ = weights_of((4, 4 // groups, 3, 3), bias=False)

    def run(x: Any) -> Any:
        return ops.relu(ops.conv(x * 1e30, weight, padding=1, groups=groups) * 1e9)

    x = normal(1, 4, 6, 6)
    with engine.numpy_only():
        plan = burn.compile(run)
        for place in (None, 7):
            if place is not None:
                x.flat[place] = value
            for _ in range(2):
                given = burn.from_numpy(x)
                np.testing.assert_allclose(
                    plan(given).numpy(), run(given).numpy(), rtol=1e-5
                )
