"""Attention that is one generated kernel has the results of its operations."""

import platform
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.blas import attention
from burn.backend.cpu.blas.attention import attend
from burn.backend.cpu.jit import policy
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.images.convolution_source import TILES
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.products.attention import (
    Attention,
    attention_kernel,
    scratch_floats,
)
from burn.backend.cpu.jit.products.attention_source import Form, source_of
from burn.backend.cpu.jit.writer import EXPLICIT
from burn.backend.cpu.onednn.binding import engine
from burn.ops.attention import masked_softmax
from burn.ops.fused_attention import scaled_attention
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, assert_trained_alike, normal
from tests.runtime.programs import optimized
from tests.sampling import example_count

pytest.importorskip("llvmlite")
needs_measured = pytest.mark.skipif(
    platform.machine() not in policy.MEASURED, reason="attention has no kernel here"
)
#: The shape of heads with enough work for a kernel: two of 96 rows.
LARGE = (2, 3, 96, 40)


def heads(shape: tuple[int, ...], seed: int) -> Any:
    """Return normal numbers as heads of one matrix, whose rows have gaps."""
    batch, count, rows, size = shape
    return normal(batch, rows, count, size, seed=seed).transpose(0, 2, 1, 3)


def masked(shape: tuple[int, ...], empty: bool) -> Any:
    """Return numbers, of which a third hides a key; ``empty`` rows hide every key."""
    mask = normal(*shape, seed=4)
    mask[mask > 0.4] = -inf
    if empty:
        mask[..., :1, :] = -inf
    return mask


@settings(max_examples=example_count(60), deadline=None)
@given(
    batch=st.integers(1, 2),
    groups=st.integers(1, 2),
    repeats=st.integers(1, 3),
    rows=st.sampled_from([1, 5, 17, 90]),
    keys=st.sampled_from([1, 7, 16, 33, 100]),
    size=st.sampled_from([1, 8, 13, 32, 40, 80]),
    columns=st.sampled_from([1, 16, 33, 64]),
    mask=st.sampled_from([(), (1, 1, 1), (1, 1, 0), (0, 1, 1), (1, 0, 0)]),
    causal=st.booleans(),
    empty=st.booleans(),
    empty_is_zero=st.booleans(),
    threads=st.integers(1, 3),
    floats=st.sampled_from([4, 8, 16]),
)
def test_kernels_write_what_numpy_does(
    batch: int,
    groups: int,
    repeats: int,
    rows: int,
    keys: int,
    size: int,
    columns: int,
    mask: tuple[int, ...],
    causal: bool,
    empty: bool,
    empty_is_zero: bool,
    threads: int,
    floats: int,
) -> None:
    count = groups * repeats
    query = heads((batch, count, rows, size), 1)
    key = heads((batch, groups, keys, size), 2)
    value = heads((batch, groups, keys, columns), 3)
    added = None
    if mask:
        full = (batch, count, rows, keys)
        chosen = zip(full, (*mask, 1), strict=True)
        added = masked(tuple(n if has else 1 for n, has in chosen), empty)
        added = np.broadcast_to(added, full)
    guarded = np.full((batch + 1, rows, count, columns), np.nan, np.float32)
    each = scratch_floats((keys, size, columns))
    scratch = np.full(threads * each, np.nan, np.float32)
    out = guarded[:-1].transpose(0, 2, 1, 3)
    options = (0.3, causal, empty_is_zero)
    operands = Attention(query, key, value, added, out, scratch, *options)
    expected = operands._replace(out=np.empty(out.shape, np.float32))
    with np.errstate(invalid="ignore"):
        attend(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        kernel = attention_kernel(operands)  # which owns the memory of the call
    call = machine().call(kernel)
    for _ in range(2):
        call.call()
        np.testing.assert_allclose(out, expected.out, 1e-5, 1e-5)
        assert np.isnan(guarded[-1]).all()


def hidden(shape: tuple[int, ...], seed: int = 7) -> Any:
    """Return a mask of bools, which hides every key of some rows."""
    seen = normal(*shape, seed=seed) > 0
    seen[..., :2, :] = False
    return burn.from_numpy(seen)


ROWS = LARGE[2]
MASKS: dict[str, Any] = {
    "none": lambda q, k, v: ops.attention(q, k, v),
    "causal": lambda q, k, v: ops.attention(q, k, v, causal=True),
    "constant bools": lambda q, k, v: ops.attention(q, k, v, hidden((ROWS, ROWS))),
    "computed bools": lambda q, k, v: ops.attention(
        q, k, v, ops.greater(v[:, :1, :, 0][:, :, None], 0.0)
    ),
    "numbers": lambda q, k, v: ops.attention(
        q, k, v, burn.from_numpy(masked((LARGE[1], ROWS, ROWS), True))
    ),
    "computed numbers": lambda q, k, v: ops.attention(q, k, v, k[..., 0][:, :, None]),
    "two masks": lambda q, k, v: ops.attention(
        q, k, v, burn.from_numpy(normal(1, 1, ROWS, ROWS)) + k[..., :1].mT
    ),
    "shared heads": lambda q, k, v: ops.attention(q, k[:, :1], v[:, :1], scale=0.2),
    "narrow values": lambda q, k, v: ops.attention(q, k, v[..., :7]),
    "plain softmax": lambda q, k, v: ops.matmul(
        ops.softmax(ops.matmul(q, k.mT) / 3.0 + hidden_scores()), v
    ),
}


def hidden_scores() -> Any:
    """Return numbers that hide keys, with every key of some rows."""
    return burn.from_numpy(np.where(hidden((ROWS, ROWS)).numpy(), 0, -inf)).cast(
        burn.float32
    )


def merged(name: str) -> Any:
    """Return a function of ``[batch, rows, heads * size]`` and its attention."""

    def run(q: Any, k: Any, v: Any) -> Any:
        parts = (ops.split_heads(x, LARGE[1]) for x in (q, k, v))
        return ops.merge_heads(MASKS[name](*parts))

    return run


def operands_of(seed: int) -> list[Any]:
    batch, count, rows, size = LARGE
    given = (normal(batch, rows, count * size, seed=seed + i) for i in range(3))
    return [burn.from_numpy(each) for each in given]


def primitives_of(plan: Any) -> list[str]:
    return [s.primitive.name for s in optimized(plan).steps if isinstance(s, Step)]


@needs_measured
@pytest.mark.parametrize("name", sorted(MASKS))
@pytest.mark.parametrize("is_numpy", [False, True])
@pytest.mark.parametrize("is_large", [False, True])
def test_plans(
    name: str, is_numpy: bool, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:  # the second call has the kernel
        monkeypatch.setattr(attention, "LARGE", 1)
    run = merged(name)
    plan = burn.compile(run)
    for seed in range(4):
        given = operands_of(seed)
        with engine.numpy_only():
            expected = run(*given).numpy()
        if is_numpy:
            with engine.numpy_only():
                actual = plan(*given).numpy()
        else:
            actual = plan(*given).numpy()
        np.testing.assert_allclose(actual, expected, 1e-5, 1e-5)
    assert "scaled_attention" in primitives_of(plan)


@needs_measured
def test_the_second_call_of_a_large_model_has_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "LARGE", 1)
    plan, given = burn.compile(merged("none")), operands_of(0)
    _, second, third = (plan(*given).numpy() for _ in range(3))
    np.testing.assert_array_equal(second, third)


@needs_measured
def test_a_plan_has_one_generated_kernel() -> None:
    plan, given = burn.compile(merged("causal")), operands_of(0)
    for _ in range(3):
        plan(*given)
    (row,) = [
        r for r in plan.profile(*given).rows if "scaled_attention" in r.primitives
    ]
    assert GENERATED in row.kernels


@pytest.mark.parametrize(
    "change",
    [
        lambda q, k, v: ops.attention(q[:, :, :1], k, v),
        lambda q, k, v: ops.attention(q[:, :, :9], k[:, :, :9], v[:, :, :9]),
        lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k.mT) + q[..., :1]), v),
        lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k.mT), axis=-2), v),
        lambda q, k, v: ops.attention(*(x.cast(burn.float64) for x in (q, k, v))),
    ],
)
def test_what_has_no_kernel(change: Any) -> None:
    plan = burn.compile(change)
    for seed in range(3):
        given = [burn.from_numpy(heads(LARGE, seed + i)) for i in range(3)]
        assert_close(plan(*given).numpy(), change(*given).numpy())
    assert "scaled_attention" not in primitives_of(plan)


class Block(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        self.attention = nn.MultiheadAttention(8, 2)

    def __call__(self, x: Any) -> Any:
        return self.attention(x, x, x)[0]


def test_weights_that_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LEAST_ATTENTION", 1)
    assert_trained_alike(Block, 2, 9, 8, scale=1 / 4)


@pytest.mark.parametrize("value", [np.nan, inf, -inf, 1e20, 3e38])
@pytest.mark.parametrize("position", range(3))
def test_what_is_not_finite_is_as_in_eager_calls(value: float, position: int) -> None:
    run = merged("none")
    plan = burn.compile(run)
    for seed in range(5):
        given = operands_of(seed)
        if seed == 3:
            array = given[position].numpy().copy()
            array[1, 4:7, 3] = value
            given[position] = burn.from_numpy(array)
        with np.errstate(all="ignore"):
            expected = run(*given).numpy()
            np.testing.assert_allclose(plan(*given).numpy(), expected, 1e-4, 1e-4)


def test_the_fallback_of_the_second_call_reads_grouped_heads() -> None:
    query, key = heads((2, 4, 9, 8), 1), heads((2, 2, 9, 8), 2)
    out = np.empty((2, 4, 9, 8), np.float32)
    attend(Attention(query, key, key, None, out, out, 1.0, False, True))
    key = np.repeat(key, 2, axis=1)
    scores = masked_softmax.kernel(np.matmul(query, key.swapaxes(-1, -2)))
    assert_close(out, np.matmul(scores, key))


def test_explicit_vectors_are_compiled_without_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine()._llvm, "create_pass_builder", None)
    text = source_of(Form(TILES[16], True, True, True))
    assert machine()._compile(text, "1")
    with pytest.raises(TypeError):
        machine()._compile(text.removeprefix(EXPLICIT), "2")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["none", "bools", "floats"])
@pytest.mark.parametrize("rank", [3, 4])
def test_calls_outside_of_plans_follow_the_definition(
    dtype: type, kind: str, rank: int
) -> None:
    shapes = [(2, 4, 5, 16), (2, 4, 7, 16), (2, 4, 7, 16)]
    query, key, value = (
        normal(*shape[4 - rank :], seed=seed).astype(dtype)
        for seed, shape in enumerate(shapes)
    )
    seen = normal(5, 7) > -0.5
    seen[-1] = False
    masks = {"none": None, "bools": seen, "floats": np.where(seen, 0, -9).astype(dtype)}
    operands = [query, key, value, masks[kind]]
    expected = scaled_attention.kernel(*operands, scale=0.2)
    actual = scaled_attention.kernel_for(burn.Cpu())(*operands, scale=0.2)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
