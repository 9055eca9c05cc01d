"""Generated kernels compute what NumPy's functions do."""

import sys
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.jit import machine as machines
from burn.backend.cpu.jit.calls import parse_call
from burn.backend.cpu.jit.groups import Frees, Group
from burn.backend.cpu.jit.source import BLOCK, group_kernel
from burn.backend.cpu.onednn.binding import engine
from burn.plan.compiled import Compiled
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.test_training import (
    assert_same_boxes,
    stepping,
    tensor,
    trained,
)
from tests.runtime.programs import programs_of
from tests.sampling import example_count


def calls(compiled: "Compiled[Any, Any]") -> int:
    """Return the number of calls of the last plan."""
    node = programs_of(compiled)[-1]._node
    assert node is not None
    return len(node.sequence)


def check(function: Any, *arrays: Any, exact: bool = False, count: int = 0) -> None:
    """Compare a function with itself compiled, in ``count`` calls, several times."""
    compiled = burn.compile(function, generated=True)
    for turn in range(3):
        tensors = [burn.from_numpy(array / (turn + 1)) for array in arrays]
        tensors = [
            t if t.dtype == a.dtype else ops.cast(t, dtype=a.dtype)
            for t, a in zip(tensors, arrays, strict=True)
        ]
        actual, expected = compiled(*tensors), function(*tensors)
        for a, b in zip(several(actual), several(expected), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if exact or a.dtype.kind in "bi":
                np.testing.assert_array_equal(a.numpy(), b.numpy())
            else:
                assert_close(a.numpy(), b.numpy())
    assert not compiled.notes
    if count:
        assert calls(compiled) == count


def several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def softmax(x: Any) -> Any:
    powers = ops.exp(x - ops.max(x, -1, keepdims=True))
    return powers / ops.sum(powers, -1, keepdims=True)


def rotary(x: Any, y: Any) -> Any:
    a, b, c, s = x[..., :4], x[..., 4:], y[..., :4], y[..., 4:]
    return ops.concat([a * c - b * s, b * c + a * s], -1)


#: By what they compute of arrays [3, 5, 8]: they are as exact as NumPy.
EXACT: dict[str, Any] = {
    "arithmetic": lambda x, y: (x + y) * x / (y * y + 1.0) - 2.0,
    "roots": lambda x, y: ops.sqrt(ops.abs(x)) - ops.reciprocal(y) * -x,
    "rounded": lambda x, y: ops.floor(x * 3) + ops.ceil(y) - ops.round(x + y),
    "extremes": lambda x, y: ops.maximum(x, y) * ops.minimum(x, 0.5) + ops.relu(y),
    "choice": lambda x, y: ops.where(x > y, x * 2, ops.where(x < 0, y, x + 1)),
    "truth": lambda x, y: ops.where((x > 0) & (y <= 0.5) | (x == y), x, -y),
    "answers": lambda x, y: [(x >= y) ^ (x != 0), ~(x < y)],
    "spread": lambda x, y: (x * y[:1] + y[:, :1]) * y[..., :1] - x[0, 0],
    "turned": lambda x, y: ops.permute(ops.permute(x, (2, 0, 1)) * 2 - 1, (1, 2, 0)),
    "joined": rotary,
    "largest": lambda x, y: x - ops.max(x * y, -1, keepdims=True),
    "smallest": lambda x, y: ops.min(x + y, (1, 2)) * 2 + 1,
    "integers": lambda x, y: ops.cast(
        ops.cast(x > y, dtype=burn.int32) * 3 + 1, dtype=burn.float32
    )
    * x,
    "long-integers": lambda x, y: ops.sum(
        ops.cast(x > y, dtype=burn.int64) * 7 - 2, -1
    ),
}
#: Sums are of another order, exponentials of another polynomial.
CLOSE: dict[str, Any] = {
    "mean": lambda x, y: ops.mean(x * y, -1),
    "all": lambda x, y: ops.mean((x - y) * (x - y)),
    "two-axes": lambda x, y: x - ops.sum(x * y, (1, 2), keepdims=True),
    "outer-axes": lambda x, y: ops.sum(x * y + 1, (0, 1)) * 2,
    "middle": lambda x, y: x / (1 + ops.sum(ops.abs(x), 1, keepdims=True)),
    "standard": lambda x, y: (x - ops.mean(x, -1, keepdims=True))
    / ops.sqrt(ops.mean(x * x, -1, keepdims=True) + 1e-5),
    "norm": lambda x, y: ops.rms_norm(x, y[0, 0]) * 2,
    "softmax": lambda x, y: softmax(x * 3 + y),
    "entropy": lambda x, y: -ops.sum(softmax(x) * y, -1),
    "sigmoid": lambda x, y: x / (1 + ops.exp(-x)) * y,
    "gelu": lambda x, y: x * (1 + ops.tanh(0.8 * (x + 0.04 * x * x * x))) * y,
    "doubles": lambda x, y: ops.sum(ops.cast(x, dtype=burn.float64) * 0.1, -1),
}
ONE = (
    *("arithmetic", "extremes", "answers", "joined", "largest", "all", "standard"),
    *("norm", "softmax", "entropy", "sigmoid", "two-axes"),
)


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_kernels_compute_the_same(name: str, numpy: bool) -> None:
    function = EXACT.get(name) or CLOSE[name]
    with engine.numpy_only() if numpy else engine.whatever_size():
        count = int(name in ONE and numpy)
        arrays = normal(3, 5, 8, seed=1), normal(3, 5, 8, seed=2)
        check(function, *arrays, exact=name in EXACT, count=count)


@pytest.mark.parametrize("name", ["softmax", "all", "standard", "joined", "spread"])
@pytest.mark.parametrize("shape", [(2, 3, 2 * BLOCK + 37), (257, 129, 8)])
def test_large_ones_are_done_in_blocks_and_by_all_threads(
    name: str, shape: tuple[int, ...]
) -> None:
    function = EXACT.get(name) or CLOSE[name]
    if name == "joined":
        shape = (*shape[:-1], 8)
    check(function, normal(*shape, seed=3), normal(*shape, seed=4))


def test_of_other_orders_in_memory() -> None:
    x = normal(4, 9, 7, 3).transpose(0, 3, 1, 2)
    y = normal(9, 4, 3, 7)[::-1].transpose(1, 2, 0, 3)[:, :, :, ::-1]
    for function in (lambda x, y: (x + y) * x - 1, CLOSE["standard"], softmax_of_first):
        check(function, x, y)


def softmax_of_first(x: Any, y: Any) -> Any:
    return softmax(x) * 2


@settings(max_examples=example_count(40), deadline=None)
@given(st.data())
def test_any_reduction_between_operations(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    kept = data.draw(st.booleans())
    name = data.draw(st.sampled_from(["sum", "mean", "max", "min"]))
    axis = tuple(sorted(axes))

    def function(x: Any, y: Any) -> Any:
        total = getattr(ops, name)(x * y - 0.5, axis, keepdims=kept)
        return [total * 2 + 1, x + total if kept else total]

    check(function, normal(*shape, seed=5), normal(*shape, seed=6))


def test_exponentials_are_within_two_units() -> None:
    x = np.concatenate([np.linspace(-110, 95, 100_001), np.linspace(-1, 1, 10_001)])
    x = x.astype(np.float32)
    y, z = np.empty_like(x), np.empty_like(x)
    run(np.exp, (x,), y)
    with np.errstate(all="ignore"):
        np.exp(x, out=z)
    exact = np.exp(x.astype(np.float64))
    normal_ = (exact > np.finfo(np.float32).tiny) & (exact < np.finfo(np.float32).max)
    units = np.abs(y[normal_] - exact[normal_]) / np.spacing(z[normal_])
    assert units.max() < 2
    np.testing.assert_array_equal(y[x > 89], np.inf)
    np.testing.assert_allclose(
        y[~normal_ & (x < 0)], exact[~normal_ & (x < 0)], atol=2.8e-45, rtol=0
    )


@pytest.mark.parametrize("is_one_first", [False, True])
def test_denominators_of_sigmoid_are_one_function(is_one_first: bool) -> None:
    x = np.concatenate([np.linspace(-110, 88, 100_001), np.linspace(-1, 1, 10_001)])
    x = np.append(x, [np.nan, -np.inf]).astype(np.float32)
    y, z = np.empty_like(x), np.empty_like(x)
    operands = (1, y) if is_one_first else (y, 1.0)
    text = run_together(
        partial(np.exp, x, out=y),
        partial(np.add, *operands, out=y),
        partial(np.divide, x, y, out=z),
    )
    assert "ashr" not in text  # of powers in two factors, for results that are tiny
    exact = np.exp(x.astype(np.float64)) + 1
    np.testing.assert_allclose(y, exact, rtol=3e-7)
    np.testing.assert_allclose(z, x / exact, rtol=5e-7)


def run(function: Any, args: Any, target: Any) -> None:
    """Do one of NumPy's functions by a kernel."""
    run_together(partial(function, *args, out=target))


def run_together(*calls: Any) -> str:
    """Do calls of NumPy by one kernel, and return its source."""
    group, frees = Group(0), Frees([])
    for call in calls:
        actual = parse_call(call)
        assert actual is not None and group.take(actual, frees)
    kernel = group_kernel(group, group.stores(frees))
    call, _, _owned = machines.machine().call(kernel)
    call()
    return kernel.text


def test_what_is_not_a_number_stays() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0] * 5, np.float32)
    y = np.empty_like(x)
    function: Any
    for function in (np.exp, np.negative, np.absolute, np.sqrt, np.square, np.rint):
        run(function, (x,), y)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(y, function(x), rtol=3e-7)
    for function in (np.maximum, np.minimum, np.add):
        run(function, (x, x[::-1].copy()), y)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(y, function(x, x[::-1]))


def test_batches_share_their_code() -> None:
    compiled = burn.compile(lambda x, w: ops.rms_norm(x, w) * 2 + 1, generated=True)
    codes = machines.machine()._codes
    weight = burn.from_numpy(normal(48))
    sizes = []
    for batch in (3, 5, 8, 700):
        x = burn.from_numpy(normal(batch, 11, 48))
        for _ in range(2):
            assert_close(
                compiled(x, weight).numpy(), compiled.function(x, weight).numpy()
            )
        sizes.append(len(codes))
    assert sizes[0] == sizes[-1]


def test_values_that_are_needed_later_are_kept() -> None:
    def function(x: Any, y: Any) -> Any:
        a = x * 2
        b = a + y
        c = ops.sum(b * b, -1, keepdims=True)
        return [a, c, b / c, ops.matmul(b, ops.transpose(a, 1, 2))]

    check(function, normal(3, 5, 8, seed=1), normal(3, 5, 8, seed=2))


def test_branches_compute_the_same() -> None:
    def branching(x: Any) -> Any:
        y = x * 3 - 1
        return y * y if bool(ops.sum(y) > 0) else ops.exp(y) - y

    compiled = burn.compile(branching, generated=True)
    for shift in (2.0, -2.0, 2.0, -2.0):
        x = burn.from_numpy(normal(3, 5, 8) + np.float32(shift))
        assert_close(compiled(x).numpy(), branching(x).numpy())


def test_training_computes_the_same() -> None:
    nets, losses = [trained(), trained()], []
    steps: list[Any] = [
        stepping(nets[0]),
        burn.compile(stepping(nets[1]), generated=True),
    ]
    for seed in range(5):
        given_ = tensor(4, 3, 4, 6, seed=seed), tensor(4, 5, seed=seed + 9)
        losses.append([float(step(*given_).numpy()) for step in steps])
    expected, actual = zip(*losses, strict=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
    assert_same_boxes(*nets)


def test_threads_get_their_own_results() -> None:
    compiled = burn.compile(lambda x: softmax(x) * 2, generated=True)
    given_ = [burn.from_numpy(normal(70, 90, 80, seed=seed)) for seed in range(4)]
    expected = [compiled.function(x).numpy() for x in given_]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(5):
            if not np.allclose(compiled(given_[index]).numpy(), expected[index], 1e-5):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(n % 4,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_llvm_it_says_what_to_install(monkeypatch: Any) -> None:
    machines.machine.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    try:
        with pytest.raises(ImportError, match=r"pip install 'burn-runtime\[jit\]'"):
            burn.compile(softmax, generated=True)
    finally:
        machines.machine.cache_clear()
