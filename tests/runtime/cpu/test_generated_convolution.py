"""Convolutions of plans without an engine are a generated kernel each."""

import os
import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.blas.generated_convolution import (
    convolve,
    ending_of,
)
from burn.backend.cpu.jit import machine as machines
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.images.convolution import convolution_kernel
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.jit.pool import thread_count
from burn.backend.cpu.onednn.binding import engine
from burn.ops.window import windows
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import optimized, program_of
from tests.sampling import example_count

pytest.importorskip("llvmlite")
needs_measured = pytest.mark.skipif(
    platform.machine() not in MEASURED, reason="BLAS is quicker on this processor"
)
INFINITE = (-np.inf, np.inf)


def compare(
    shape: tuple[int, ...], weight: tuple[int, ...], *steps: Any, **given: Any
) -> None:
    """Compare the kernel with NumPy, in memory that others surround.

    ``shape`` is that of the image [N, *size, C], ``weight`` that of [*K, C/G, O].
    """
    image, factors = normal(*shape, seed=1), normal(*weight, seed=2)
    wins = windows(shape[1:-1], weight[:-2], *(steps or (1, 0, 1)))
    bias = normal(weight[-1], seed=3) if given.get("bias", True) else None
    guarded = np.full((shape[0] + 1, *wins.count, weight[-1]), np.nan, np.float32)
    out, expected = guarded[:-1], np.empty_like(guarded[:-1])
    residual = normal(*out.shape, seed=4) if given.get("residual") else None
    limits = given.get("limits", INFINITE)
    args = (image, factors, bias, residual)
    convolve(*args, expected, wins, limits)
    kernel = convolution_kernel(*args, out, wins, limits)
    made = machine().call(kernel)
    for _ in range(2):
        made.call()
        assert_close(out, expected)
    assert np.isnan(guarded[-1]).all()


@settings(max_examples=example_count(40), deadline=None)
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 16, 33]),
    outputs=st.sampled_from([1, 7, 32, 45]),
    size=st.tuples(st.integers(5, 9), st.integers(5, 24)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    floats=st.sampled_from([4, 8, 16]),
    more=st.fixed_dictionaries(
        {
            "bias": st.booleans(),
            "residual": st.booleans(),
            "limits": st.sampled_from([INFINITE, (0.0, np.inf), (-0.5, 0.75)]),
        }
    ),
)
def test_kernels_write_what_numpy_does(
    batch: int,
    channels: int,
    outputs: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    floats: int,
    more: dict[str, Any],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        steps = (stride, 0, (2, 1) if size[0] > 6 else 1)
        compare((batch, *size, channels), (*kernel, channels, outputs), *steps, **more)


@settings(max_examples=example_count(30), deadline=None)
@given(
    groups=st.integers(2, 5),
    channels=st.sampled_from([1, 3, 8]),
    outputs=st.sampled_from([1, 2, 4, 8, 12, 16, 21, 40]),
    width=st.integers(1, 35),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    floats=st.sampled_from([4, 8, 16]),
    residual=st.booleans(),
)
def test_groups(
    groups: int,
    channels: int,
    outputs: int,
    width: int,
    kernel: int,
    stride: int,
    floats: int,
    residual: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        shape = (2, kernel + 1, width + kernel, groups * channels)
        weight = (kernel, kernel, channels, groups * outputs)
        compare(shape, weight, stride, 0, 1, residual=residual, limits=(-1.0, 2.0))


@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("channels", [700, 1500])
def test_sums_of_several_passes(channels: int, taps: int) -> None:
    compare((1, 6, 17, channels), (taps, taps, channels, 40), residual=True)


def test_one_spatial_axis_and_lines_in_blocks() -> None:
    compare((2, 40, 8), (3, 8, 20), 2, 0, 1)
    compare((1, 30, 61, 64), (3, 3, 64, 8))
    compare((1, 30, 61, 64), (1, 1, 64, 8))


def test_the_stride_of_a_single_column_is_not_read() -> None:
    image, weight = normal(2, 5, 1, 3), normal(1, 1, 3, 4, seed=2)
    far, near, _, last = image.strides
    strange = np.lib.stride_tricks.as_strided(
        image, image.shape, (far, near, 4096, last)
    )
    assert strange.flags.c_contiguous
    out = np.empty((2, 5, 1, 4), np.float32)
    wins = windows((5, 1), (1, 1), 1, 0, 1)
    made = machine().call(
        convolution_kernel(strange, weight, None, None, out, wins, INFINITE)
    )
    made.call()
    assert_close(out, image @ weight[0, 0])


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_compute_ranges(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "loaded", lambda: None)
    monkeypatch.setattr(machines, "thread_count", lambda: threads)
    monkeypatch.setattr(machines, "POOLED", 0)
    compare((1, 9, 20, 24), (3, 3, 24, 40), residual=True)
    compare((3, 20, 24), (1, 24, 7))
    compare((1, 2, 3, 4), (1, 1, 4, 5))


def test_the_number_of_threads_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    assert thread_count() == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "6,2")
    assert thread_count() == 6
    with burn.Cpu().limited_threads(4):
        with burn.Cpu().limited_threads(5):
            assert thread_count() == 4
        assert thread_count() == 4
    assert thread_count() == 6


def test_what_a_kernel_does_with_sums() -> None:
    add, relu, clip, silu = ("add",), ("relu",), ("clip", -1.0, 2.0), ("silu",)
    assert ending_of(()) == (False, INFINITE, ())
    assert ending_of((add, relu)) == (True, (0.0, np.inf), ())
    assert ending_of((clip, add)) == (False, (-1.0, 2.0), (add,))
    assert ending_of((silu, relu)) == (False, INFINITE, (silu, relu))
    assert ending_of((add, silu)) == (True, INFINITE, (silu,))


def network() -> Any:
    shapes = [(24, 3, 7, 7), (40, 24, 3, 3), (40, 40, 1, 1), (40, 40, 3, 3)]
    shapes.append((40, 8, 3, 3))
    weights = []
    for seed, (outputs, *rest) in enumerate(shapes):
        scale = np.float32(np.sqrt(np.prod(rest)))
        weights.append(burn.from_numpy(normal(outputs, *rest, seed=seed) / scale))
    bias = burn.from_numpy(normal(40, seed=9))

    def function(x: Any) -> Any:
        x = ops.relu(ops.conv(x, weights[0], stride=2, padding=3))
        x = y = ops.silu(ops.conv(x, weights[1], bias, stride=2, padding=1))
        x = ops.clip(ops.conv(x, weights[2], bias), 0.0, 6.0)
        x = ops.relu(ops.conv(x, weights[3], bias, padding=1) + y)
        x = ops.relu(ops.conv(x, weights[4], bias, padding=1, groups=5))
        return x, ops.conv(x, weights[2], stride=2)

    return function


@needs_measured
@pytest.mark.parametrize("batch", [1, 3])
def test_networks_without_an_engine(batch: int) -> None:
    function = network()
    with engine.numpy_only():
        compiled, results = burn.compile(function), []
        for seed in range(4):
            x = burn.from_numpy(normal(batch, 3, 45, 61, seed=seed))
            results.append((compiled(x), function(x)))
        for pair in results:
            for actual, expected in zip(*pair, strict=True):
                assert_close(actual.numpy(), expected.numpy())
        assert not compiled.notes
        node = program_of(compiled)._node
    assert node is not None
    calls = node.sequence._calls
    assert sum(entry.kernel == GENERATED for entry in calls) >= 6
    assert not any(getattr(entry.call, "func", None) is convolve for entry in calls)


def test_activations_behind_layers_are_steps_of_their_own() -> None:
    weight, bias = burn.from_numpy(normal(24, 24)), burn.from_numpy(normal(24))
    taps = burn.from_numpy(normal(3, 3, 1, 1))

    def function(x: Any) -> Any:
        y = ops.gelu(ops.linear(ops.silu(ops.linear(x, weight)), weight, bias) + x)
        z = ops.conv(y, taps, stride=2)
        return ops.gelu(ops.linear(y, weight), approximate="tanh"), ops.tanh(z)

    x = burn.from_numpy(normal(2, 3, 5, 24))
    with engine.numpy_only():
        compiled = burn.compile(function)
        compiled(x)
        plan = optimized(compiled)
    steps = [step for step in plan.steps if isinstance(step, Step)]
    ends = [step.static.get("after") for step in steps]
    assert [end for end in ends if end] == [(("add",),)]
    names = [step.primitive.name for step in steps]
    assert {"conv", "linear", "linear_then", "gelu", "silu", "tanh"} == {*names}
    assert names.count("gelu") == 2


@needs_measured
@pytest.mark.parametrize("shape", [(24,), (1, 24), (5, 24), (2, 3, 17, 24)])
def test_linear_layers_without_an_engine(shape: tuple[int, ...]) -> None:
    first, second = (burn.from_numpy(normal(*s) / 5) for s in ((40, 24), (24, 40)))
    bias = burn.from_numpy(normal(24, seed=9))

    def function(x: Any) -> Any:
        y = ops.linear(ops.gelu(ops.linear(x, first)), second, bias) + x
        return y, ops.relu(ops.linear(y * 2.0, first)), ops.silu(ops.linear(y, first))

    with engine.numpy_only():
        compiled, results = burn.compile(function, generated=True), []
        for seed in range(4):
            x = burn.from_numpy(normal(*shape, seed=seed))
            results.append((compiled(x), function(x)))
        for pair in results:
            for actual, expected in zip(*pair, strict=True):
                assert_close(actual.numpy(), expected.numpy())
        node = program_of(compiled)._node
    assert node is not None
    kernels = [entry.kernel for entry in node.sequence._calls]
    assert kernels.count(GENERATED) >= 4


@needs_measured
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38])
def test_what_is_not_finite_is_as_in_eager_calls(value: float) -> None:
    function = network()
    with engine.numpy_only(), np.errstate(all="ignore"):
        compiled = burn.compile(function)
        for seed in range(5):
            array = normal(1, 3, 45, 61, seed=seed)
            array[0, 1, 20, 30] = value if seed == 3 else 0
            x = burn.from_numpy(array)
            for actual, expected in zip(compiled(x), function(x), strict=True):
                one, other = actual.numpy(), expected.numpy()
                np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
                finite = np.isfinite(other)
                np.testing.assert_array_equal(one[~finite], other[~finite])
                assert_close(one[finite], other[finite])


@needs_measured
def test_weights_that_are_set_are_packed_again() -> None:
    from burn import nn

    layer = nn.Conv2d(8, 20, 3)
    with engine.numpy_only():
        compiled = burn.compile(layer)
        x = burn.from_numpy(normal(1, 8, 19, 19))
        for seed in range(8):
            if seed % 3 == 2:
                weight = burn.from_numpy(normal(*layer.weight.shape, seed=seed))
                layer.weight.set(weight)
            assert_close(compiled(x).numpy(), layer(x).numpy())
