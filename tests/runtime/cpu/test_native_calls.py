"""Single calls of a plan as machine code, and batches of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.bind.finite import NotFiniteError, expect_numbers
from burn.backend.cpu.bind.magnitudes import check_within
from burn.backend.cpu.bind.native_calls import single
from burn.backend.cpu.bind.numpy_capture import assign, item, take_rows
from burn.backend.cpu.jit.batches import Batch
from burn.backend.cpu.jit.entries import Entry, Native, batches
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.programs import program_of
from tests.sampling import example_count

pytest.importorskip("llvmlite")

KINDS: tuple[Any, ...] = (np.float32, np.float64, np.int32, np.int64)
SEEDS = st.integers(0, 2**32 - 1)


def status(call: Callable[[], Any]) -> int:
    """Run the kernel of a call and return its status."""
    found = single(call)
    assert found is not None
    made = machine().call(found.kernel)
    result: int = made.call()
    return result


def compare(call: Callable[[], Any], target: Any, *sources: Any) -> None:
    """Compare a kernel with the call that it replaces.

    There may be none where ``sources`` are not in row-major order.
    """
    if single(call) is None and not all(a.flags.c_contiguous for a in sources):
        return
    before = target.copy()
    assert status(call) == 0
    actual = target.copy()
    np.copyto(target, before)
    call()
    if target.dtype.kind == "f":
        assert_close(actual, target)
    else:
        np.testing.assert_array_equal(actual, target)


def strided(rng: Any, array: Any) -> Any:
    """The array in another memory order, or as part of a larger one."""
    if rng.random() < 0.3:
        return array
    order = rng.permutation(array.ndim)
    moved = np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    if rng.random() < 0.5 or not array.ndim:
        return moved
    wide = np.repeat(moved, 2, axis=-1)[..., ::2]
    return wide[..., ::-1][..., ::-1] if rng.random() < 0.5 else wide


def numbers(rng: Any, shape: tuple[int, ...], kind: Any) -> Any:
    return (rng.standard_normal(shape) * 5).astype(kind)


def extents(rng: Any, least: int, most: int) -> tuple[int, ...]:
    return tuple(rng.integers(1, 5, rng.integers(least, most + 1)).tolist())


@settings(max_examples=example_count(60), deadline=None)
@given(SEEDS)
def test_take(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(4)]
    source = strided(rng, numbers(rng, extents(rng, 1, 4), kind))
    axis = int(rng.integers(source.ndim))
    extent = source.shape[axis]
    indices = rng.integers(-extent, extent, extents(rng, 0, 2))
    indices = np.asarray(indices, (np.int32, np.int64)[rng.integers(2)])
    shape = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    target = np.empty(shape, kind)
    compare(partial(source.take, indices, axis, target), target, source)
    compare(partial(take_rows, source, indices, axis, target), target, source)
    outside = np.full_like(indices, rng.choice([extent, -extent - 1]))
    source = np.ascontiguousarray(source)
    assert status(partial(source.take, outside, axis, target)) == 1


@settings(max_examples=example_count(60), deadline=None)
@given(SEEDS)
def test_keys_of_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(4)]
    array = strided(rng, numbers(rng, extents(rng, 1, 4), kind))
    count = int(rng.integers(1, array.ndim + 1))
    places = extents(rng, 1, 2)
    key = tuple(
        rng.integers(-extent, extent, places if n == 0 or rng.random() < 0.5 else (1,))
        for n, extent in enumerate(array.shape[:count])
    )
    shape = (*places, *array.shape[count:])
    target = np.empty(shape, kind)
    compare(partial(assign, target, partial(item, array, key)), target, array)
    values = strided(rng, numbers(rng, shape, kind))
    memory = array.copy("K")
    for name in ("add", "multiply", "maximum", "minimum"):
        call = partial(getattr(np, name).at, memory, key, values)
        compare(call, memory, memory, values)
    compare(partial(memory.__setitem__, key, values), memory, memory, values)
    memory, values = np.ascontiguousarray(memory), np.ascontiguousarray(values)
    outside = (key[0] + 2 * array.shape[0], *key[1:])
    assert status(partial(memory.__setitem__, outside, values)) == 1


@settings(max_examples=example_count(40), deadline=None)
@given(SEEDS)
def test_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(2)]
    rows, depth, columns = rng.integers(1, 9, 3).tolist()
    batch = extents(rng, 0, 2)
    x = strided(rng, numbers(rng, (*batch, rows, depth), kind))
    y = strided(rng, numbers(rng, (*batch[rng.integers(2) :], depth, columns), kind))
    target = strided(rng, np.empty((*batch, rows, columns), kind))
    compare(partial(np.matmul, x, y, out=target), target)


@settings(max_examples=example_count(40), deadline=None)
@given(SEEDS)
def test_extremes_and_their_first_places(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(4)]
    x = strided(rng, numbers(rng, extents(rng, 1, 4), kind).round())
    if x.dtype.kind == "f" and rng.random() < 0.5:
        x[rng.random(x.shape) < 0.3] = np.nan
    axis = int(rng.integers(-x.ndim, x.ndim))
    keeps = bool(rng.integers(2))
    function = (np.argmin, np.argmax)[rng.integers(2)]
    target = np.empty_like(function(x, axis=axis, keepdims=keeps))
    target = np.asarray(target)
    if target.ndim:
        call = partial(function, x, axis=axis, keepdims=keeps)
        compare(partial(assign, target, call), target)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.int32, np.int64])
def test_integers_of_floats(kind: Any, wanted: Any) -> None:
    x = normal(3, 4, 5).astype(kind) * 1e6
    for array in (x, x.transpose(2, 0, 1), x[:, :1]):
        target = np.empty((5, 3, 4) if array.shape[0] == 5 else (3, 4, 5), wanted)
        compare(partial(np.copyto, target, array, casting="unsafe"), target)
    least = np.array([-(2.0 ** (8 * np.dtype(wanted).itemsize - 1))], kind)
    compare(partial(np.copyto, target[:1, 0, 0], least, casting="unsafe"), target)
    for wrong in (-least, least * 1.5, least * np.nan, least * np.inf):
        call = partial(np.copyto, target[:1, 0, 0], wrong, casting="unsafe")
        assert status(call) == 1


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("place", [(0, 0, 0), (2, 4, 6)])
@pytest.mark.parametrize("wrong", [11.0, -11.0, np.inf, -np.inf, np.nan])
def test_checks_of_magnitudes(kind: Any, place: Any, wrong: float) -> None:
    x = np.clip(normal(3, 5, 7), -9, 9).astype(kind)
    for array in (x, x.transpose(1, 2, 0), x[:, ::2], x[..., 0]):
        assert status(check_within(array, 10.0)) == 0
        assert status(partial(expect_numbers, array)) == 0
    x[place] = wrong
    for array in (x, x.transpose(1, 2, 0), x[:, ::2], x[..., ::3]):
        call = check_within(array, 10.0)
        assert status(call) == 1
        with pytest.raises(NotFiniteError):
            call()
        assert status(partial(expect_numbers, array)) == int(np.isnan(wrong))


def check(function: Any, *cases: tuple[Any, ...], kernel: bool = True) -> Any:
    """Compare a function with itself compiled for several arguments in turn."""
    compiled: Any = burn.compile(function)
    for turn, arrays in enumerate((cases[0],) * 3 + cases):
        tensors = [burn.from_numpy(np.asarray(array)) for array in arrays]
        actual, expected = compiled(*tensors), function(*tensors)
        several = isinstance(actual, list | tuple)
        pairs = zip(actual, expected, strict=True) if several else [(actual, expected)]
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype), turn
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        if turn == 2 and kernel:
            node = program_of(compiled)._node
            assert node is not None
            assert any(entry.native for entry in node.sequence._calls)
    return compiled


@pytest.mark.parametrize("kind", [*KINDS, np.bool_])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (3, 3, 3), (1, 2, 3, 2)])
def test_nonzero_of_as_many_and_of_others(kind: Any, shape: Any) -> None:
    rng = np.random.default_rng(4)
    cases = [(rng.random(shape) < chance) for chance in (0.5, 0.5, 0.9, 0.2)]
    first, second = (case.astype(kind) for case in cases[:2])
    turned = np.roll(first, 1, axis=-1)
    nothing = np.zeros(shape, kind)
    rest = [(case.astype(kind),) for case in cases[2:]]
    check(ops.nonzero, (first,), (turned,), (second,), (nothing,), *rest)


@pytest.mark.parametrize("kind", KINDS)
def test_unique_of_as_many_and_of_others(kind: Any) -> None:
    x = np.array([[3, 1, 3], [2, 1, 0]]).astype(kind)
    others = [x.T.copy().T, x[::-1].copy(), x * 2, x * 0, np.arange(6).reshape(2, 3)]
    cases = [(other.astype(kind),) for other in others]
    if np.dtype(kind).kind == "f":
        broken = x.copy()
        broken[0, 0] = broken[1, 1] = np.nan
        cases += [(broken,), (-x * 0,)]
    check(ops.unique, (x,), *cases)
    many = np.random.default_rng(3).integers(0, 9, 200).astype(kind)
    check(ops.unique, (many,), (many[::-1].copy(),), kernel=False)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (3, 3, 3, 3, 3), (1, 1, 1, 2, 1)])
def test_sampling(is_weighted: bool, shape: tuple[int, ...]) -> None:
    batch, channels, taps, places, size = shape
    rng = np.random.default_rng(6)
    x, weight = normal(batch, channels, size), normal(batch, taps, places)
    cases = []
    for _ in range(3):
        index = rng.integers(-2, size, (batch, taps, places))
        cases.append((x, index, weight) if is_weighted else (x, index))
    check(ops.gather_sum, *cases)


def test_an_index_out_of_bounds_is_an_error_in_every_call() -> None:
    compiled: Any = burn.compile(lambda x, i: ops.take(x, i, 0) * 2.0 + x[0])
    x = burn.from_numpy(normal(3, 4))
    right = burn.from_numpy(np.array([2, -3, 0]))
    expected = compiled(x, right).numpy()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x, right).numpy(), expected)
        with pytest.raises(IndexError):
            compiled(x, burn.from_numpy(np.array([0, 3, 1])))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_plan_is_left_for_what_it_is_not_for(value: float) -> None:
    with engine.whatever_size():
        weight = burn.from_numpy(normal(4, 4, seed=1))

        def function(x: Any) -> Any:
            y = ops.matmul(ops.exp(x * 0.1), weight)
            return ops.softmax(ops.relu(ops.matmul(y, weight)) * x, axis=-1)

        x = normal(2, 3, 4)
        broken = x.copy()
        broken[1, 2, 3] = value
        check(function, (x,), (x * 2,), (broken,), (x,), kernel=False)


def test_failed_functions_are_made_up_for_in_order() -> None:
    x, target = np.arange(5.0), np.zeros(5)
    made: list[str] = []

    def native(limit: float) -> Any:
        found = single(check_within(x, limit))
        assert found is not None
        call = machine().call(found.kernel)
        owned.append(call)
        return call.native

    owned: list[Any] = []
    natives = [native(limit) for limit in (10.0, 1.0, 10.0, 2.0)]
    calls: list[Callable[[], Any]] = [partial(made.append, name) for name in "abcd"]
    batch = Batch(natives, calls, has_engine=False)
    for _ in range(2):
        made.clear()
        batch()
        assert made == ["b", "d"]

    def fails() -> None:
        raise NotFiniteError

    stopped = Batch(natives, [calls[0], fails, *calls[2:]], has_engine=False)
    for _ in range(2):
        made.clear()
        with pytest.raises(NotFiniteError):
            stopped()
        assert made == []
    assert not target.any()


def test_consecutive_calls_are_one() -> None:
    """Those of a small network of layers that oneDNN and kernels compute."""
    with engine.whatever_size():
        weight = burn.from_numpy(normal(4, 4, seed=1))

        def function(x: Any, index: Any) -> Any:
            y = ops.take(ops.matmul(x, weight), index, 1)
            return ops.matmul(ops.tanh(y + y[:, :1]), weight) * x

        x, index = normal(2, 3, 4), np.array([2, 0, 1])
        compiled = check(function, (x, index), (x * 2, index[::-1].copy()))
        node = program_of(compiled)._node
        assert node is not None
        groups = node.sequence._groups or []
        calls = [call for _, group in groups for call in group]
        assert len(node.sequence) > 2
        assert sum(type(call) is Batch for call in calls) == 1


def test_calls_with_different_numbers_of_threads_are_in_different_batches() -> None:
    native = Native(0, ())
    alone = [True, None, True, None, False, False, None, True]
    entries = [Entry(each, lambda: None, native=native) for each in alone]
    found = [[entry.alone for entry in run] for run in batches(entries, True)]
    assert found == [[True, None, True, None], [False, False, None], [True]]
    assert [len(run) for run in batches(entries, False)] == [1] * len(entries)


@needs_onednn
def test_large_layers_are_in_batches_with_what_is_between_them() -> None:
    weights = [burn.from_numpy(normal(256, 256, seed=n) / 16) for n in range(2)]

    def function(x: Any) -> Any:
        y = ops.matmul(x, weights[0])
        return ops.matmul(ops.abs(y) + y[:1] * 0.5, weights[1])

    x = normal(192, 256)
    compiled = check(function, (x,), (x * 2,), (-x,))
    node = program_of(compiled)._node
    assert node is not None
    calls = [call for _, group in node.sequence._groups or [] for call in group]
    assert len(node.sequence) > 2
    assert sum(type(call) is Batch for call in calls) == 1
