"""Programs: many threads, branches, and what is given and returned as it is."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import normal
from tests.runtime.programs import program_of

WEIGHT = burn.Parameter(burn.from_numpy(normal(6, 6, 3, 3, seed=1)))
MATRIX = burn.Parameter(burn.from_numpy(normal(8, 8, seed=2)))


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


def leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def assert_like(result: Any, expected: Any) -> None:
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(a, b)


def in_threads(work: Callable[[int], None], count: int = 8) -> None:
    """Do ``work`` in several threads; what one of them raises is raised."""
    with ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, range(count)):
            pass


class Block(nn.Module):
    """Attention with a residual, a norm and a branch on what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def __call__(self, x: Any) -> Any:
        scores = self.query(x) @ ops.transpose(self.key(x), -1, -2)
        y = self.norm(ops.softmax(scores) @ x + x)
        if bool(ops.sum(x) > 0):
            return [ops.relu(y) + ops.tanh(x), scores]
        return [y, x * 2.0 - y]


@pytest.mark.parametrize("shapes", [1, 4])
def test_threads_with_inputs_of_their_own(shapes: int) -> None:
    model = Block()
    compiled = burn.compile(model)
    given = [tensor(3 + n % shapes, 5, 8, seed=n) for n in range(8)]
    expected = [model(x) for x in given]

    def work(index: int) -> None:
        kept = []
        for _ in range(20):
            kept.append(compiled(given[index]))
        for result in kept:
            assert_like(result, expected[index])

    in_threads(work)
    assert not compiled.notes


def test_threads_that_meet_branches_for_the_first_time() -> None:
    def function(x: Any) -> Any:
        y, n = ops.tanh(x) * 3.0, int(ops.sum(x))
        z = ops.exp(x)
        if n > 5:
            return y @ MATRIX
        if n > 2:
            return ops.relu(z - y)
        return [y, z, ops.softmax(y)] if n > 0 else x + z

    for _ in range(5):
        compiled = burn.compile(function)

        def work(index: int, compiled: Any = compiled) -> None:
            for turn in range(12):
                number = (index * 5 + turn) % 10 - 1
                x = burn.from_numpy(np.full((4, 8), number / 32, np.float32))
                assert_like(compiled(x), function(x))

        in_threads(work)


def test_a_program_does_not_know_of_branches_that_are_recorded_later() -> None:
    from burn.plan.plan_ir import UnforeseenError

    def function(x: Any) -> Any:
        y = x + 1.0
        z = ops.tanh(y)
        return y * 2.0 if bool(ops.sum(x) > 0) else [z, ops.tanh(z)]

    compiled = burn.compile(function)
    for _ in range(2):
        compiled(burn.tensor([2.0]))
    program = program_of(compiled)
    assert program is not None
    compiled(burn.tensor([-2.0]))
    with pytest.raises(UnforeseenError):
        program.run([np.array([-2.0], np.float32)])
    assert_like(compiled(burn.tensor([-2.0])), function(burn.tensor([-2.0])))


def test_branches_whose_places_are_those_of_others() -> None:
    """A box in one branch has the number of something computed in another."""

    def function(x: Any) -> Any:
        y = ops.relu(x)
        if bool(ops.sum(x) > 0):
            return ops.linear(y, MATRIX.value) + y
        z = y * 3.0 + x
        return ops.tanh(ops.tanh(z @ (z + 1.0)) @ MATRIX)

    compiled = burn.compile(function)
    for turn in range(6):
        x = tensor(8, 8, seed=turn)
        x = x * float(np.sign(x.numpy().sum()) * (-1) ** turn)
        assert_like(compiled(x), function(x))
    assert not compiled.notes


def test_branches_within_branches_keep_what_later_ones_need() -> None:
    def function(x: Any, n: Any) -> Any:
        values = [ops.tanh(x)]
        for step in range(int(n)):
            values.append(ops.relu(values[-1] @ MATRIX) + values[step // 2])
            if bool(ops.max(values[-1]) > 4.0):
                values.append(values[0] - values[-1])
                break
        return [ops.softmax(values[-1]), values[0] * values[len(values) // 2]]

    compiled = burn.compile(function)
    for turn in range(24):
        x = tensor(5, 8, seed=turn % 7) * (0.1 + turn % 3)
        n = burn.tensor(turn % 4)
        assert_like(compiled(x, n), function(x, n))


def test_the_same_input_twice_and_views_of_it() -> None:
    def function(x: Any, y: Any) -> Any:
        z = ops.relu(x @ y)
        return [x, y, z, ops.transpose(z, 0, 1), z[1:], z[::-1], x + y, ops.tanh(x)]

    compiled = burn.compile(function)
    for turn in range(4):
        x = tensor(6, 6, seed=turn)
        before = x.numpy().copy()
        other = x if turn % 2 else ops.transpose(x, 0, 1)
        actual, expected = compiled(x, other), function(x, other)
        assert_like(actual, expected)
        for y in actual[2:]:
            y.data[...] = 7.0
        np.testing.assert_array_equal(x.numpy(), before)


SPECIAL = (np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_inputs_that_are_not_finite(special: float, dtype: Any) -> None:
    def function(x: Any) -> Any:
        y = ops.relu(ops.conv(ops.cast(x, dtype=burn.float32), WEIGHT, padding=1))
        return [y, x]

    compiled = burn.compile(function)
    for turn in range(5):
        array = normal(2, 6, 7, 8, seed=turn).astype(dtype)
        if turn % 2:
            array[0, 1, 2, 3] = special
        x = burn.from_numpy(array)
        actual, expected = (leaves(f(x))[0].numpy() for f in (compiled, function))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("way", ["weight", "sum", "folded", "list"])
def test_constants_that_are_no_numbers(way: str) -> None:
    special = np.nan
    filters, image = normal(6, 6, 3, 3, seed=3), normal(1, 6, 5, 5, seed=4)
    (filters if way == "weight" else image)[0, 1, 2, 2] = special
    weight, other = burn.from_numpy(filters), burn.from_numpy(image)
    folded = burn.Parameter(burn.from_numpy(np.full((1, 6, 1, 1), -1.0, np.float32)))

    def function(x: Any) -> Any:
        if way == "sum":
            x = x + other
        elif way == "folded":
            x = x + ops.log(folded)
        elif way == "list":
            x = ops.concat([x, other], 0)
        return ops.relu(ops.conv(x, weight if way == "weight" else WEIGHT))

    compiled = burn.compile(function)
    for turn in range(3):
        x = tensor(1, 6, 5, 5, seed=turn)
        expected = function(x).numpy()
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["masked_softmax", "softmax", "log_softmax"])
@pytest.mark.parametrize("numpy", [False, True])
def test_rows_that_are_masked(name: str, numpy: bool) -> None:
    from burn.primitive import primitives

    softmax = primitives()[name]

    def function(x: Any, mask: Any) -> Any:
        scores = ops.where(mask > 0, x @ ops.transpose(x, 1, 2), -np.inf)
        return softmax(scores) @ x

    compiled = burn.compile(function)
    rng = np.random.default_rng(0)
    for turn in range(6):
        mask = rng.integers(0, 2, (3, 7, 7))
        mask[turn % 3, turn] = turn % 2  # a whole row of it
        args = tensor(3, 7, 8, seed=turn), burn.from_numpy(mask)
        if numpy:
            with engine.numpy_only():
                actual = compiled(*args)
        else:
            actual = compiled(*args)
        assert_like(actual, function(*args))


def test_functions_that_raise_now_and_then() -> None:
    def function(x: Any, i: Any) -> Any:
        y = ops.take(x, i, 0) * 2.0
        if bool(ops.max(y) > 8.0):
            raise KeyError("too large")
        return ops.tanh(y)

    compiled = burn.compile(function)
    for turn in range(3):
        for number, scale in ((1, 1.0), (9, 1.0), (2, 50.0), (0, 1.0)):
            x = burn.from_numpy(np.abs(normal(4, 3, seed=turn)) * np.float32(scale))
            i = burn.tensor([number])
            if number == 9:
                with pytest.raises(IndexError, match="out of bounds"):
                    compiled(x, i)
            elif scale > 1:
                with pytest.raises(KeyError, match="too large"):
                    compiled(x, i)
            else:
                assert_like(compiled(x, i), function(x, i))


def test_strings_go_through_plans() -> None:
    def function(words: Any, index: Any) -> Any:
        chosen = ops.take(words, index, 0)
        both = ops.concat([chosen, words], 0)
        same = ops.equal(chosen, words)
        return [chosen, both, same, ops.where(same, words, chosen), words]

    compiled = burn.compile(function)
    kept = []
    for turn in range(4):
        words = burn.from_numpy(np.array([f"w{turn}", "b", "ü"], object))
        index = burn.tensor([turn % 3, 1, 0])
        actual = compiled(words, index)
        kept.append((actual, function(words, index)))
    for actual, expected in kept:
        assert_like(actual, expected)
    assert not compiled.notes


def test_empty_tensors() -> None:
    def function(x: Any) -> Any:
        y = ops.relu(x) @ MATRIX
        return [y, ops.softmax(y), ops.sum(y), y[:, 8:], ops.concat([y, y], 0), x[2:]]

    compiled = burn.compile(function)
    for shape in ((0, 8), (2, 8), (0, 8), (3, 0, 8), (0, 8)):
        x = tensor(*shape)
        assert_like(compiled(x), function(x))
    assert not compiled.notes


def test_results_that_are_constants() -> None:
    array = normal(3, seed=9)
    constant = burn.from_numpy(array)

    def function(x: Any) -> Any:
        return [constant, ops.full((2,), 3.0), x * constant, MATRIX.value, 2.5][:4]

    compiled = burn.compile(function)
    for turn in range(3):
        x = tensor(3, seed=turn)
        assert_like(compiled(x), function(x))
        assert compiled(x)[0] is constant
