"""Batch norms, and concatenations ahead of them, are a generated kernel of plans."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.bind.finite import expect_numbers
from burn.backend.cpu.bind.native_calls import checks_ahead, pair, single
from burn.backend.cpu.jit.entries import GENERATED, Entry, Free
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.onednn.kernels.norms.generated_scales import scale_channels
from burn.ops.fused import batch_norm_then
from burn.ops.shape import concat
from burn.plan.passes import run_passes
from burn.plan.passes.fusion.concats import with_flat_concats
from burn.plan.plan_ir import Step
from tests.runtime.onednn import (
    assert_close,
    compare_calls,
    needs_onednn,
    normal,
)
from tests.runtime.programs import optimized, program_of

pytestmark = needs_onednn
pytest.importorskip("llvmlite")

#: Channels of the first image, and those that each layer adds.
WIDTHS = [(64, 32), (16, 16), (20, 12), (7, 5)]


def image(*shape: int, seed: int = 0) -> Any:
    """A channels-last image."""
    channels_last = normal(shape[0], *shape[2:], shape[1], seed=seed)
    return np.moveaxis(channels_last, -1, 1)


def norm(channels: int, seed: int) -> Any:
    mean, weight, bias = (normal(channels, seed=seed + n) for n in range(3))
    var = np.abs(normal(channels, seed=seed + 3)) + np.float32(0.5)
    tensors = [burn.from_numpy(part) for part in (mean, var, weight, bias)]
    return lambda x: ops.batch_norm(x, *tensors)


def conv(channels: int, outputs: int, size: int, seed: int) -> Any:
    scale = np.float32(np.sqrt(channels * size * size))
    weight = burn.from_numpy(normal(outputs, channels, size, size, seed=seed) / scale)
    return lambda x: ops.conv(x, weight, padding=size // 2)


def block(first: int, growth: int, layers: int = 4) -> Any:
    """A dense block: each layer reads the first image and those of all layers."""
    stem, parts = conv(3, first, 3, 1), []
    for number in range(layers):
        channels = first + number * growth
        inner = conv(channels, growth, 1, 10 * number)
        parts.append((norm(channels, 10 * number), inner))
    last = norm(first + layers * growth, 99)

    def function(x: Any) -> Any:
        x = stem(x)
        for normalize, layer in parts:
            x = ops.concat([x, layer(ops.relu(normalize(x)))], axis=1)
        return last(x)

    return function


def entries(compiled: Any) -> list[tuple[str, list[str]]]:
    """The kernel and the primitives of each call."""
    node = program_of(compiled)._node
    assert node is not None
    return [
        (entry.kernel, [s.primitive.name for s in entry.steps if isinstance(s, Step)])
        for entry in node.sequence._calls
    ]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("batch", [1, 2])
def test_dense_blocks_concatenate_nothing(widths: tuple[int, int], batch: int) -> None:
    calls = entries(compare_calls(block(*widths), batch, 3, 24, 24))
    pairs = [names for kernel, names in calls if kernel == GENERATED]
    assert pairs.count(["concat", "batch_norm_then"]) == 3
    assert pairs.count(["concat", "batch_norm"]) == 1
    assert not [names for kernel, names in calls if not kernel and "concat" in names]


def test_without_kernels_a_block_is_the_same() -> None:
    calls = entries(compare_calls(block(16, 16), 1, 3, 24, 24, generated=False))
    assert GENERATED not in [kernel for kernel, _ in calls]


def test_a_concatenation_that_others_read_is_computed() -> None:
    normalize, stem = norm(48, 1), conv(3, 24, 3, 1)

    def function(x: Any) -> Any:
        y = stem(x)
        both = ops.concat([y, y * 2.0], axis=1)
        return ops.relu(normalize(both)), both

    compiled = burn.compile(function)
    for seed in range(4):
        x = burn.from_numpy(normal(2, 3, 16, 16, seed=seed))
        for actual, expected in zip(compiled(x), function(x), strict=True):
            assert_close(actual.numpy(), expected.numpy())


def test_operands_of_concatenations_are_read_by_the_next() -> None:
    function = block(16, 16)
    compiled = burn.compile(function, generated=False)
    for seed in range(2):
        compiled(burn.from_numpy(normal(1, 3, 24, 24, seed=seed)))
    plan = run_passes(optimized(compiled), passes=(with_flat_concats,))
    steps = [step for step in plan.steps if isinstance(step, Step)]
    counts = [len(step.args[0]) for step in steps if step.primitive is concat]
    assert counts == [2, 3, 4, 5]
    assert sum(step.primitive is batch_norm_then for step in steps) == 4


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -1e12])
def test_large_numbers_are_those_of_eager_calls(value: float) -> None:
    function = block(20, 12)
    compiled = burn.compile(function)
    array = normal(1, 3, 24, 24)
    for seed in range(4):
        if seed == 2:
            array[0, 1, 5, 7] = value
        x = burn.from_numpy(array.copy())
        with np.errstate(all="ignore"):
            actual, expected = compiled(x).numpy(), function(x).numpy()
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(actual[~finite], expected[~finite])
        assert_close(actual[finite], expected[finite])


def test_gradients_are_those_of_eager_calls() -> None:
    function = block(16, 16)

    def slopes(x: Any) -> Any:
        x = x.to(burn.Autodiff(burn.Cpu())).require_grad()
        y = function(x)
        return ops.sum(y * y).backward()[x]

    calls = entries(compare_calls(slopes, 1, 3, 24, 24))
    assert GENERATED not in [kernel for kernel, _ in calls]


@pytest.mark.parametrize("has_relu", [False, True])
@pytest.mark.parametrize("channels", [[1], [16], [40], [17, 3], [16, 32, 15, 1]])
@pytest.mark.parametrize("shape", [(1,), (9,), (3, 5), (2, 3, 4)])
def test_kernels_write_what_numpy_does(
    channels: list[int], shape: tuple[int, ...], has_relu: bool
) -> None:
    parts = [image(2, count, *shape, seed=count) for count in channels]
    joint, guarded = image(2, sum(channels), *shape), image(3, sum(channels), *shape)
    before, out = guarded.copy(), guarded[:2]
    scale, shift = (normal(sum(channels), seed=seed) for seed in (1, 2))
    call = partial(scale_channels, joint, scale, shift, out, has_relu)
    found = pair(partial(np.concatenate, parts, axis=1, out=joint), call)
    assert found is not None
    np.testing.assert_array_equal(found.between, joint)
    np.concatenate(parts, axis=1, out=joint)
    expected = np.empty_like(joint)
    scale_channels(joint, scale, shift, expected, has_relu)
    for kernel in (found.single, single(call)):
        assert kernel is not None
        out[...] = np.nan
        made = machine().call(kernel.kernel)
        assert not made.call()
        assert_close(out, expected)
        np.testing.assert_array_equal(guarded[2:], before[2:])


def test_a_result_in_the_memory_of_its_operand() -> None:
    x, part = image(2, 24, 5), image(2, 4, 5)
    scale, shift = normal(24, seed=1), normal(24, seed=2)
    expected = np.empty_like(x)
    scale_channels(x, scale, shift, expected, True)
    call = partial(scale_channels, x, scale, shift, x, True)
    found = single(call)
    assert found is not None
    made = machine().call(found.kernel)
    assert not made.call()
    assert_close(x, expected)
    joined = pair(partial(np.concatenate, [part] * 6, axis=1, out=x), call)
    assert joined is not None
    assert joined.between is None  # nothing is left of the concatenation
    inside = [np.lib.stride_tricks.as_strided(x, part.shape, part.strides)]
    assert pair(partial(np.concatenate, inside * 6, axis=1, out=x), call) is None


def test_images_in_another_order_are_left_to_numpy() -> None:
    x, scale = normal(2, 16, 5, 5), normal(16)
    call = partial(scale_channels, x, scale, scale, np.empty_like(x), False)
    assert single(call) is None


def test_operands_of_a_concatenation_behind_a_check_live_until_it() -> None:
    """A check that moves ahead of the concatenation delays the end of its operands."""
    parts, joint = [normal(2, 3, 4), normal(2, 1, 4)], np.empty((2, 4, 4), np.float32)
    calls = (
        partial(np.negative, parts[0], out=parts[0]),
        partial(np.concatenate, parts, axis=1, out=joint),
        partial(expect_numbers, normal(3)),
    )
    frees = [Free(1, 0, 8), Free(2, 8, 16), Free(3, 16, 24)]
    ordered, moved = checks_ahead([Entry(None, call) for call in calls], frees)
    assert [entry.call for entry in ordered] == [calls[0], calls[2], calls[1]]
    assert moved == [Free(1, 0, 8), Free(3, 8, 16), Free(3, 16, 24)]
