"""Pointwise and depthwise convolutions that are one kernel have NumPy's results."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.bind import optimization
from burn.backend.cpu.blas.expansion import expand
from burn.backend.cpu.blas.piecewise_linear import PiecewiseLinear, activation_of
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.images import expansion as kernels
from burn.backend.cpu.jit.images.expansion import expansion_kernel
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import CLIP, SCALED, SILU, Expansion, Layer
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.onednn.binding import engine
from burn.ops.window import windows
from burn.plan.passes.fusion import expansions
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, assert_trained_alike, normal
from tests.runtime.programs import optimized
from tests.sampling import example_count

pytest.importorskip("llvmlite")
needs_measured = pytest.mark.skipif(
    platform.machine() not in MEASURED, reason="BLAS is quicker on this processor"
)

#: The kinds and numbers of activations.
ACTIVATIONS = [
    (CLIP, PiecewiseLinear()),
    (CLIP, PiecewiseLinear(-0.5, 0.75)),
    (SCALED, activation_of("hard_swish")),
    (SCALED, activation_of("hard_sigmoid", 0.25, 0.4)),
    (SILU, PiecewiseLinear()),
]
FUNCTIONS: dict[str, Any] = {
    "none": lambda x: x,
    "relu": ops.relu,
    "relu6": lambda x: ops.clip(x, 0.0, 6.0),
    "hard_swish": ops.hard_swish,
    "silu": ops.silu,
}


@pytest.fixture(autouse=True)
def profitable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans join convolutions on this processor, too."""
    monkeypatch.setattr(optimization, "lacks_avx512", lambda: False)


@settings(max_examples=example_count(60), deadline=None)
@given(
    batch=st.integers(1, 2),
    size=st.tuples(st.integers(1, 9), st.integers(1, 31)),
    inner=st.sampled_from([1, 3, 16]),
    channels=st.sampled_from([1, 8, 16, 17, 33, 40, 72]),
    kernel=st.sampled_from([2, 3, 5, 7]),
    stride=st.integers(1, 3),
    padding=st.tuples(*[st.integers(0, 3)] * 4),
    parts=st.integers(1, 3),
    floats=st.sampled_from([4, 8, 16]),
    activations=st.tuples(*[st.sampled_from(ACTIVATIONS)] * 2),
    has_bias=st.booleans(),
)
def test_kernels_write_what_numpy_does(
    batch: int,
    size: tuple[int, int],
    inner: int,
    channels: int,
    kernel: int,
    stride: int,
    padding: tuple[int, int, int, int],
    parts: int,
    floats: int,
    activations: Any,
    has_bias: bool,
) -> None:
    pads = (padding[:2], padding[2:])
    if any(
        sum(each) + extent < kernel for each, extent in zip(pads, size, strict=True)
    ):
        return
    shapes = ((channels, inner), (channels, kernel, kernel))
    first, second = [
        Layer(
            normal(*shape, seed=seed),
            normal(channels, seed=seed + 1) if has_bias else None,
            kind,
            function.numbers(),
        )
        for seed, shape, (kind, function) in zip(
            (1, 3), shapes, activations, strict=True
        )
    ]
    wins = windows(size, (kernel, kernel), stride, pads, 1)
    guarded = np.full((batch + 1, *wins.count, channels), np.nan, np.float32)
    operands = Expansion(normal(batch, *size, inner), first, second, guarded[:-1], wins)
    expected = operands._replace(out=np.empty_like(operands.out))
    expand(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        patch.setattr(kernels, "parallel_parts", lambda most: min(parts, most))
        made = expansion_kernel(operands)
    call = machine().call(made)
    for _ in range(2):
        call.call()
        assert_close(operands.out, expected.out)
        assert np.isnan(guarded[-1]).all()


def block(channels: int, kernel: int, stride: int, names: tuple[str, str]) -> Any:
    """Return a function with an expansion of 8 to ``channels`` channels."""
    first, second = normal(channels, 8, 1, 1, seed=1), normal(channels, seed=2)
    shape = (channels, 1, kernel, kernel)
    third, fourth = normal(*shape, seed=3), normal(channels, seed=4)
    tensors = [burn.from_numpy(each) for each in (first, second, third, fourth)]

    def run(x: Any) -> Any:
        y = FUNCTIONS[names[0]](ops.conv(x, *tensors[:2]))
        options = {"stride": stride, "padding": kernel // 2, "groups": channels}
        return FUNCTIONS[names[1]](ops.conv(y, *tensors[2:], **options))

    return run


@settings(max_examples=example_count(30), deadline=None)
@given(
    batch=st.integers(1, 2),
    size=st.tuples(st.integers(3, 20), st.integers(3, 20)),
    channels=st.sampled_from([16, 40]),
    kernel=st.sampled_from([3, 5, 7]),
    stride=st.integers(1, 2),
    names=st.tuples(*[st.sampled_from(sorted(FUNCTIONS))] * 2),
    is_numpy=st.booleans(),
)
def test_plans(
    batch: int,
    size: tuple[int, int],
    channels: int,
    kernel: int,
    stride: int,
    names: tuple[str, str],
    is_numpy: bool,
) -> None:
    run = block(channels, kernel, stride, names)
    plan = burn.compile(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansions, "LEAST", 1)
        for seed in range(4):
            x = burn.from_numpy(normal(batch, 8, *size, seed=seed))
            with engine.numpy_only():
                expected = run(x).numpy()
            if is_numpy:
                with engine.numpy_only():
                    actual = plan(x).numpy()
            else:
                actual = plan(x).numpy()
            assert_close(actual, expected)


def steps_of(run: Any, *shape: int) -> list[str]:
    """Return the names of the steps of an optimized plan."""
    plan, x = burn.compile(run), burn.from_numpy(normal(*shape))
    plan(x)
    return [s.primitive.name for s in optimized(plan).steps if isinstance(s, Step)]


def test_large_expansions_are_one_step() -> None:
    run = block(32, 3, 1, ("relu", "hard_swish"))
    assert steps_of(run, 1, 8, 56, 56) == ["expanded_depthwise"]
    assert "expanded_depthwise" not in steps_of(run, 1, 8, 7, 7)


@pytest.mark.parametrize(
    ("bits", "lacks"),
    [(0x7, True), (0xF, True), (0x27, False), (0x3, False), (0, False)],
)
def test_the_code_of_avx2_computes_two_convolutions(
    bits: int, lacks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = engine.current()
    if session is None:
        pytest.skip("no oneDNN")
    monkeypatch.setattr(type(session.api), "instructions", lambda api: bits)
    assert engine.lacks_avx512() == lacks
    monkeypatch.setattr(optimization, "lacks_avx512", engine.lacks_avx512)
    run = block(32, 3, 1, ("relu", "hard_swish"))
    joined = steps_of(run, 1, 8, 56, 56) == ["expanded_depthwise"]
    assert joined is not lacks


@pytest.mark.parametrize(
    "change",
    [
        lambda y, w: ops.conv(y, w, groups=64, dilation=2),
        lambda y, w: ops.conv(y, w, groups=64, stride=(1, 2)),
        lambda y, w: ops.conv(y, w, groups=64, padding=-1),
        lambda y, w: ops.conv(ops.tanh(y), w, groups=64),
        lambda y, w: ops.conv(y, w, groups=64) + ops.sum(y),
        lambda y, w: ops.conv(ops.tanh(y + 1.0), w, groups=64),
    ],
)
def test_what_is_no_expansion(change: Any) -> None:
    weight = burn.from_numpy(normal(64, 8, 1, 1, seed=1))
    other = burn.from_numpy(normal(64, 1, 3, 3, seed=2))

    def run(x: Any) -> Any:
        return change(ops.conv(x, weight), other)

    assert "expanded_depthwise" not in steps_of(run, 1, 8, 56, 56)
    plan = burn.compile(run)
    for seed in range(3):
        x = burn.from_numpy(normal(1, 8, 33, 33, seed=seed))
        assert_close(plan(x).numpy(), run(x).numpy())


@needs_measured
def test_a_plan_has_one_generated_kernel() -> None:
    plan = burn.compile(block(32, 3, 2, ("silu", "relu6")))
    x = burn.from_numpy(normal(1, 8, 64, 64))
    for _ in range(3):
        plan(x)
    (row,) = [
        row for row in plan.profile(x).rows if "expanded_depthwise" in row.primitives
    ]
    assert GENERATED in row.kernels


class Block(nn.Module):
    """An inverted residual block."""

    def __init__(self) -> None:
        self.expand = nn.Conv2d(8, 32, 1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)

    def __call__(self, x: Any) -> Any:
        return ops.relu(self.depthwise(ops.relu(self.expand(x))))


def test_weights_that_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansions, "LEAST", 1)
    assert_trained_alike(Block, 2, 8, 9, 9, scale=1 / 4)


def test_weights_that_are_set_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansions, "LEAST", 1)
    model = Block()
    plan, x = burn.compile(model), burn.from_numpy(normal(1, 8, 9, 9))
    for seed in range(8):
        model.expand.weight.set(burn.from_numpy(normal(32, 8, 1, 1, seed=seed)))
        for _ in range(3):
            assert_close(plan(x).numpy(), model(x).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_as_in_eager_calls(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansions, "LEAST", 1)
    run = block(16, 3, 1, ("relu", "relu"))
    plan = burn.compile(run)
    for seed in range(5):
        array = normal(1, 8, 9, 9, seed=seed)
        array[0, 5, 4, 4] = value if seed == 3 else 0
        x = burn.from_numpy(array)
        np.testing.assert_allclose(plan(x).numpy(), run(x).numpy(), 1e-4, 1e-4)
