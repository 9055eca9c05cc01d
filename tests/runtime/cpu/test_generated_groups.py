"""Grouped convolutions for which plans generate kernels are those of eager calls."""

import os
import platform
import subprocess
import sys
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution import convolution
from burn.backend.cpu.onednn.kernels.convolution.generated_groups import (
    has_faster_kernel,
)
from tests.runtime.onednn import (
    assert_close,
    assert_trained_alike,
    needs_onednn,
    normal,
)
from tests.sampling import example_count

pytestmark = needs_onednn
pytest.importorskip("llvmlite")

ENDINGS = [
    *((), (("relu",),), (("clip", -0.5, 0.75),), (("add",), ("relu",))),
    *((("add",),), (("silu",),), (("add",), ("gelu",)), (("relu",), ("add",))),
]
FUNCTIONS: dict[str, Any] = {
    "relu": ops.relu,
    "clip": lambda x: ops.clip(x, -0.5, 0.75),
    "silu": ops.silu,
    "gelu": ops.gelu,
}
#: Prints the kernels of a plan with a grouped convolution.
PROGRAM = """
import numpy as np
import burn
from burn import ops

x = burn.from_numpy(np.ones((1, 64, 14, 14), np.float32))
weight = burn.from_numpy(np.ones((64, {channels}, 3, 3), np.float32))
plan = burn.compile(
    lambda x: ops.relu(ops.conv(x, weight, padding=1, groups=64 // {channels}))
)
for _ in range(4):
    plan(x)
for row in plan.profile(x).rows:
    print(*row.kernels)
"""


def always(_: str, *operands: Any) -> bool:
    """Return what ``has_faster_kernel`` does for oneDNN's slowest code."""
    return has_faster_kernel("jit:avx2", *operands)


@settings(max_examples=example_count(40), deadline=None)
@given(
    batch=st.integers(1, 2),
    groups=st.integers(2, 4),
    channels=st.sampled_from([2, 4, 8, 12]),
    outputs=st.sampled_from([1, 4, 8, 20]),
    size=st.lists(st.integers(4, 17), min_size=1, max_size=2),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    after=st.sampled_from(ENDINGS),
)
def test_plans(
    batch: int,
    groups: int,
    channels: int,
    outputs: int,
    size: list[int],
    kernel: int,
    stride: int,
    padding: tuple[int, int],
    after: Any,
) -> None:
    x = normal(batch, groups * channels, *size)
    extents = (groups * outputs, channels, *(kernel for _ in size))
    weight, bias = (
        burn.from_numpy(normal(*shape, seed=seed))
        for seed, shape in ((1, extents), (2, extents[:1]))
    )
    pads = tuple(padding for _ in size)

    def run(x: Any, other: Any = None) -> Any:
        y = ops.conv(x, weight, bias, stride=stride, padding=pads, groups=groups)
        for name, *_ in after:
            y = y + other if name == "add" else FUNCTIONS[name](y)
        return y

    other = normal(*run(burn.from_numpy(x), 0.0).shape, seed=3)
    with patch.object(convolution, "has_faster_kernel", always):
        plan = burn.compile(run)
        for seed in range(3):
            tensors = [burn.from_numpy(a + np.float32(seed)) for a in (x, other)]
            with engine.numpy_only():
                expected = run(*tensors).numpy()
            assert_close(plan(*tensors).numpy(), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_as_in_eager_calls(value: float) -> None:
    weight = burn.from_numpy(normal(16, 4, 3, 3))

    def run(x: Any) -> Any:
        return ops.relu(ops.conv(x, weight, padding=1, groups=4))

    with patch.object(convolution, "has_faster_kernel", always):
        plan = burn.compile(run)
        for seed in range(5):
            array = normal(1, 16, 9, 9, seed=seed)
            array[0, 5, 4, 4] = value if seed == 3 else 0
            x = burn.from_numpy(array)
            np.testing.assert_allclose(plan(x).numpy(), run(x).numpy(), 1e-4, 1e-4)


class Grouped(nn.Module):
    """Grouped convolutions that are trained."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.second = nn.Conv2d(16, 32, 3, padding=1, groups=2)

    def __call__(self, x: Any) -> Any:
        return ops.relu(self.second(ops.relu(self.first(x))))


def test_weights_that_are_trained() -> None:
    with patch.object(convolution, "has_faster_kernel", always):
        assert_trained_alike(Grouped, 2, 16, 9, 9, scale=1 / 4)


@pytest.mark.skipif(
    platform.machine() not in MEASURED, reason="BLAS is quicker on this processor"
)
@pytest.mark.parametrize(
    ("channels", "is_generated"), [(4, True), (8, True), (32, False), (1, False)]
)
def test_code_without_avx512(channels: int, is_generated: bool) -> None:
    used = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(channels=channels)],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout.split()
    assert (GENERATED in used) is is_generated
