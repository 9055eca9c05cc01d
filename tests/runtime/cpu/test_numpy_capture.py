"""Kernels that are traced compute with the numbers of the call, not of the first."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.bind.numpy_capture import Traced
from burn.backend.cpu.onednn.binding import engine
from burn.primitive import Composite, primitives
from tests.runtime.cpu.traceable_cases import MAKERS, Operand, names_of_makers
from tests.runtime.onednn import normal
from tests.runtime.programs import calls_of

NAMES = sorted(
    name
    for name, made in primitives().items()
    if made.traceable and not isinstance(made, Composite) and not made.host
)
#: What an operand of a call is in the function that is compiled.
ROLES = ("input", "input", "made", "parameter", "constant")


def test_every_traceable_primitive_has_calls() -> None:
    assert names_of_makers() == set(NAMES)


def values(operand: Operand, rng: Any) -> Any:
    """Random numbers for an operand: finite ones, and whole ones in part."""
    shape, dtype = operand.shape, np.dtype(operand.dtype)
    if operand.below is not None:
        return np.asarray(rng.integers(0, operand.below, shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if dtype.kind in "iu":
        low = 1 if operand.positive else (0 if dtype.kind == "u" else -4)
        return np.asarray(rng.integers(low, 5, shape), dtype)
    array = np.round(rng.standard_normal(shape), 1) * 1.5
    return np.asarray(np.abs(array) + 0.1 if operand.positive else array, dtype)


def laid(array: Any, how: int) -> Any:
    """The same numbers in another layout: transposed, backwards, with gaps."""
    if how == 1:
        return np.ascontiguousarray(array.T).T.reshape(array.shape)
    if how == 2 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if how == 3 and array.ndim:
        gaps = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        gaps[..., ::2] = array
        return gaps[..., ::2]
    return array


def leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def assert_same(result: Any, expected: Any) -> None:
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype.kind == "f":
            eps = float(np.finfo(b.dtype).eps) * 32
            np.testing.assert_allclose(a, b, rtol=eps, atol=eps)
        else:
            np.testing.assert_array_equal(a, b)


def outcome(function: Any, args: list[Any]) -> Any:
    try:
        return function(*args)
    except (ValueError, TypeError, IndexError) as error:
        return type(error)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=7)
@given(data=st.data(), seed=st.integers(0, 1000))
@pytest.mark.sampled(6)
def test_no_number_of_the_first_call_is_kept(
    name: str, data: st.DataObject, seed: int
) -> None:
    names_of_makers()
    call = MAKERS[name](data.draw)
    rng = np.random.default_rng(seed)
    roles = [data.draw(st.sampled_from(ROLES)) for _ in call.operands]
    roles[data.draw(st.integers(0, len(roles) - 1))] = "input"
    layout = [data.draw(st.integers(0, 3)) for _ in call.operands]
    given = [burn.from_numpy(values(operand, rng)) for operand in call.operands]
    held = [burn.Parameter(tensor) for tensor in given]

    def function(*xs: Any) -> Any:
        stand: dict[str, Any] = {"parameter": held, "constant": given}
        args = [stand.get(role, xs)[i] for i, role in enumerate(roles)]
        for i, role in enumerate(roles):
            if role == "made":
                args[i] = ops.where(args[i] == args[i], args[i], args[i])
        return call.function(*args)

    compiled = burn.compile(function)
    with engine.numpy_only(), np.errstate(all="ignore"):
        for turn in range(4):
            arrays = [values(operand, rng) for operand in call.operands]
            pairs = zip(arrays, layout, strict=True)
            xs = [burn.from_numpy(laid(array, how)) for array, how in pairs]
            expected, actual = outcome(function, xs), outcome(compiled, xs)
            if isinstance(expected, type) or isinstance(actual, type):
                assert actual is expected
            else:
                assert_same(actual, expected)
            if turn == 2:
                for box, operand in zip(held, call.operands, strict=True):
                    box.set(burn.from_numpy(values(operand, rng)))


@contextmanager
def sequence_of(compiled: Any) -> Iterator[list[Any]]:
    """The functions that the only plan of ``compiled`` calls."""
    yield calls_of(compiled)


#: Functions whose kernels are nothing but noted calls.
TRACED: dict[str, Any] = {
    "softmax": lambda x: ops.softmax(x),
    "softmax of channels": lambda x: ops.softmax(x, axis=1),
    "layer_norm": lambda x: ops.layer_norm(x, x[0, 0, 0], axis=-1),
    "gelu": lambda x: ops.gelu(x),
    "mean": lambda x: ops.mean(x, (1, 2)),
    "linear": lambda x: ops.linear(x, x[0, 0]),
    "matmul": lambda x: ops.matmul(x, ops.transpose(x, -1, -2)),
    "resize": lambda x: ops.resize(x, None, (2, 3, 7, 9), mode="linear"),
    "pad": lambda x: ops.pad(x, (0, 0, 1, 1, 0, 0, 1, 2)),
    "concat": lambda x: ops.concat([x, x[:, :1], x], 1),
    "take": lambda x: ops.take(x, np.array([1, 0]), 1),
    "scatter_nd": lambda x: ops.scatter_nd(x, np.array([[1, 0], [0, 2]]), x[:, 1] * 2),
    "scatter_nd of a constant": lambda x: ops.scatter_nd(
        burn.from_numpy(np.ones((3, 3, 4, 5), np.float32)), np.array([[2], [0]]), x
    ),
    "scatter_elements": lambda x: ops.scatter_elements(
        x, np.array([[[[1, 0]]]]), x[:1, :1, :1, :2] * 2, axis=3
    ),
    "scatter_nd of sums": lambda x: ops.scatter_nd(
        x, np.array([[1, 0], [1, 0]]), x[:, 1] * 2, reduction="add"
    ),
    "scatter_elements of maxima": lambda x: ops.scatter_elements(
        x, np.array([[[[1, 1]]]]), x[:1, :1, :1, :2] * 2, axis=3, reduction="max"
    ),
    "topk": lambda x: ops.topk(x, 2, axis=1)[0],
    "gather_nd": lambda x: ops.gather_nd(x, np.array([[1, 2], [0, 0]])),
    "gather_elements": lambda x: ops.gather_elements(x, np.array([[[[1, 0]]]]), 3),
    "clip": lambda x: ops.clip(x, -1.0, 1.0),
    "where": lambda x: ops.where(x > 0, x, -1.0),
    "batch_norm": lambda x: ops.batch_norm(x, *[x[0, :, 0, 0] ** 2] * 4),
}


@pytest.mark.parametrize("name", TRACED)
def test_kernels_are_traced(name: str) -> None:
    compiled = burn.compile(TRACED[name])
    with engine.numpy_only():
        for seed in range(3):
            x = burn.from_numpy(normal(2, 3, 4, 5, seed=seed))
            assert_same(compiled(x), TRACED[name](x))
        with sequence_of(compiled) as calls:
            assert calls
            assert StepCall not in calls


#: Functions that read numbers in Python, so that a kernel runs in every call.
READ: dict[str, Any] = {
    "roll": lambda x, i: ops.roll(x, i, (0,)),
    "trilu": lambda x, i: ops.trilu(x, i),
    "sum": lambda x, i: ops.sum(x[:3], i),
    "pad": lambda x, i: ops.pad(x, ops.concat([i, [0], 1 - i, [0]], 0)),
    "reverse_sequence": lambda x, i: ops.reverse_sequence(
        x, ops.concat([i, i + 1, 4 - i], 0)
    ),
    "resize": lambda x, i: ops.resize(
        x, ops.concat([i, i], 0).cast(burn.float32) * 0.01 + 2.0, mode="linear"
    ),
    "clip": lambda x, i: ops.clip(x, i.cast(burn.float64).sum() - 1.0),
}


@pytest.mark.parametrize("name", READ)
def test_what_kernels_read_is_read_anew(name: str) -> None:
    compiled = burn.compile(READ[name])
    with engine.numpy_only():
        for seed, number in enumerate([0, 1, 0, 1, 1]):
            x = burn.from_numpy(normal(4, 3, seed=seed))
            i = burn.from_numpy(np.array([number]))
            assert_same(compiled(x, i), READ[name](x, i))
    assert not compiled.notes


def test_every_method_of_arrays_is_captured_or_refused() -> None:
    """NumPy calls methods of arrays without asking; a new one must not go unnoticed."""
    methods = {
        name
        for name in dir(np.ndarray)
        if not name.startswith("_") and callable(getattr(np.ndarray, name))
    }
    assert methods - vars(Traced).keys() == {"tobytes", "view"}


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("extent", [3, 90])
def test_entries_of_small_and_large_results(axis: int, extent: int) -> None:
    compiled = burn.compile(lambda x, i: ops.take(x, i, axis))
    x = burn.from_numpy(normal(extent, extent, extent))
    for entries in ([[0, 1]], [[-extent, extent - 1]], [[-1, -2]]):
        indices = burn.from_numpy(np.array(entries))
        actual, expected = compiled(x, indices), np.take(x.numpy(), entries, axis)
        np.testing.assert_array_equal(actual.numpy(), expected)
    for wrong in (extent, -extent - 1):
        with pytest.raises(IndexError, match=f"{wrong} is out of bounds"):
            compiled(x, burn.from_numpy(np.array([[0, wrong]])))
