"""Plans: compiled functions do what they do when they are not."""

import gc
import weakref
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.plan import compiled as compiled_module
from tests.runtime.onednn import normal


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


def same(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def close(actual: Any, expected: Any) -> None:
    """Products of plans and eager calls may differ by the order of their sums."""
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, function: Any) -> None:
        self.function, self.count = function, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.function(*args, **kwargs)


def test_a_function_is_run_once_for_each_shape_and_dtype() -> None:
    function = Counted(lambda x, y: ops.relu(x @ y) + 1.0)
    compiled = burn.compile(function)
    for shape in ((2, 3), (4, 3), (2, 3), (4, 3), (2, 3)):
        x, y = tensor(*shape, seed=shape[0]), tensor(3, 5)
        close(compiled(x, y), ops.relu(x @ y) + 1.0)
    assert function.count == 2
    compiled(x.cast(burn.float64), y.cast(burn.float64))
    assert function.count == 3
    assert not compiled.notes


def test_inputs_and_results_may_be_nested() -> None:
    function = Counted(
        lambda xs, scale, *, names: {"sum": [xs[0] + xs[1], scale], **names}
    )
    compiled = burn.compile(function)
    for seed in range(3):
        x, y = tensor(3, seed=seed), tensor(3, seed=seed + 9)
        actual = compiled((x, y), 2.0, names={"x": x})
        same(actual["sum"][0], x + y)
        same(actual["x"], x)
        assert actual["sum"][1] == 2.0
    compiled((x, y), 3.0, names={"x": x})
    assert function.count == 2


class Pair(NamedTuple):
    """A result with names, as generated modules have."""

    left: burn.Tensor
    right: list[burn.Tensor]


def test_tuples_may_have_names() -> None:
    function = Counted(lambda pair: Pair(pair.left * 2.0, [pair.left, *pair.right]))
    compiled = burn.compile(function)
    for seed in range(3):
        given = Pair(tensor(3, seed=seed), [tensor(2)])
        actual = compiled(given)
        assert type(actual) is Pair
        same(actual.left, given.left * 2.0)
        assert len(actual.right) == 2
    assert function.count == 1


def test_parameters_are_read_in_every_call() -> None:
    layer = nn.Linear(4, 3)
    function = Counted(layer)
    compiled = burn.compile(function)
    x = tensor(2, 4)
    for step in range(4):
        same(compiled(x), layer(x))
        layer.weight.set(layer.weight.value * float(step))
    assert function.count == 1


def test_what_follows_from_parameters_alone_is_not_frozen() -> None:
    weight = burn.Parameter(tensor(4, 4))
    compiled = burn.compile(lambda x: x @ (weight / ops.reduce_l2(weight)))
    x = tensor(2, 4)
    for step in range(3):
        close(compiled(x), x @ (weight / ops.reduce_l2(weight)))
        weight.set(tensor(4, 4, seed=step))


def test_constants_are_constants() -> None:
    compiled = burn.compile(lambda x: x + ops.arange(3).cast(burn.float32) * 2.0)
    for seed in range(3):
        x = tensor(2, 3, seed=seed)
        same(compiled(x), x + ops.arange(3).cast(burn.float32) * 2.0)


def branching(x: Any) -> Any:
    if bool(ops.sum(x) > 0):
        return x * 2.0
    if int(ops.sum(x)) < -3:
        return x - 1.0
    return -x, x


def test_branches_are_recorded_when_they_are_taken() -> None:
    function = Counted(branching)
    compiled = burn.compile(function)
    values = [1.0, 2.0, -1.0, -5.0, 3.0, -1.0, -5.0]
    for value in values * 2:
        x = burn.tensor([value])
        actual, expected = compiled(x), branching(x)
        assert type(actual) is type(expected)
        for a, b in zip(actual, expected, strict=True):
            same(a, b)
    assert function.count == 3
    assert not compiled.notes


def test_loops_until_a_value_is_reached() -> None:
    def halve(x: Any) -> Any:
        steps = 0
        while bool(ops.max(x) > 1.0):
            x, steps = x * 0.5, steps + 1
        return x, steps

    compiled = burn.compile(halve)
    for value in (0.5, 8.0, 3.0, 100.0, 8.0, 0.1):
        actual, expected = compiled(burn.tensor([value])), halve(burn.tensor([value]))
        same(actual[0], expected[0])
        assert actual[1] == expected[1]


def test_too_many_values_end_the_plan() -> None:
    compiled = burn.compile(lambda x: x * float(ops.sum(x)))
    for value in range(40):
        x = burn.tensor([float(value), 1.0])
        same(compiled(x), x * float(value + 1))
    assert compiled.notes == ["17.0 was read, after 16 recordings"]


def test_shapes_that_depend_on_values_are_not_planned() -> None:
    compiled = burn.compile(lambda x: ops.nonzero(x).shape[1])
    counts = [compiled(burn.tensor([1.0] * n + [0.0] * (4 - n))) for n in (1, 3, 2, 4)]
    assert counts == [1, 3, 2, 4]
    assert "nonzero" in compiled.notes[0]


def test_other_values_of_one_shape_are() -> None:
    compiled = burn.compile(lambda x, n: x[: int(n)] if int(n) < 2 else x[1:])
    x = tensor(4)
    for n in (1, 3, 0, 1):
        same(compiled(x, burn.tensor(n)), x[:n] if n < 2 else x[1:])


def test_results_with_a_history_are_left_to_eager_runs() -> None:
    layer = nn.Linear(4, 3).to(Autodiff(Cpu()))
    compiled = burn.compile(layer)
    x = tensor(2, 4)
    for _ in range(2):
        grads = compiled(x).sum().backward()
        same(grads[layer.weight], layer(x).sum().backward()[layer.weight])
    assert compiled.notes == ["the result has a history: detach() it"]


def test_large_values_are_not_branched_on() -> None:
    compiled = burn.compile(lambda x: x + float(x.numpy().max()))
    for seed in range(3):
        x = tensor(20, 20, seed=seed)
        same(compiled(x), x + float(x.numpy().max()))
    assert compiled.notes == ["float32[20, 20] is read on the host"]


def test_functions_that_differ_without_a_reason_are_given_up() -> None:
    turns = iter(range(100))
    compiled = burn.compile(
        lambda x: x * 2.0 if bool(ops.sum(x) > next(turns) % 2) else x + 1.0
    )
    for value in (1.0, -1.0, 1.0, -1.0):
        compiled(burn.tensor([value]))
    assert compiled.notes
    assert "not what was done before" in compiled.notes[0]


def test_a_plan_in_a_plan_is_a_part_of_it() -> None:
    inner = Counted(lambda x: x * 2.0)
    compiled_inner = burn.compile(inner)
    compiled = burn.compile(lambda x: compiled_inner(x) + 1.0)
    for _ in range(3):
        same(compiled(burn.tensor([3.0])), burn.tensor([7.0]))
    assert inner.count == 1


def test_errors_are_those_of_the_function() -> None:
    compiled = burn.compile(lambda x, i: ops.take(x, i, 0))
    x = tensor(3)
    same(compiled(x, burn.tensor([1])), x[1:2])
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, burn.tensor([7]))
    same(compiled(x, burn.tensor([2])), x[2:])


def test_arguments_that_may_hide_tensors_are_left_to_eager_runs() -> None:
    function = Counted(lambda box: box["x"] if isinstance(box, dict) else box.x)
    compiled = burn.compile(function)

    class Holder:
        x = burn.tensor([1.0])

    for _ in range(2):
        same(compiled(Holder()), burn.tensor([1.0]))
    assert function.count == 2


def test_the_oldest_plans_go() -> None:
    compiled = burn.compile(Counted(lambda x: x + 1.0))
    with pytest.warns(RuntimeWarning, match="Counted was recorded for 16 comb") as seen:
        for extent in range(20):
            compiled(tensor(extent + 1))
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert "recorded for 20 combinations" in compiled.notes[0]
    assert len(compiled._plans) == compiled_module.PLANS


def test_values_go_when_they_are_needed_no_more() -> None:
    alive: list[int] = []
    seen: list[Any] = []

    @burn.primitive.primitive(no_gradient="it counts")
    def watched_for_plans(x: Any) -> Any:
        gc.collect()
        alive.append(sum(reference() is not None for reference in seen))
        out = x + 1
        seen.append(weakref.ref(out))
        return out

    def chain(x: Any) -> Any:
        for _ in range(6):
            x = watched_for_plans(x)
        return x

    compiled = burn.compile(chain)
    compiled(tensor(8))
    seen.clear()
    alive.clear()
    compiled(tensor(8))
    assert max(alive) <= 1


def test_threads_share_plans() -> None:
    model = nn.Linear(16, 16)
    compiled = burn.compile(lambda x: branching(ops.tanh(model(x)) + x[:1]))
    inputs = [tensor(4, 16, seed=seed) for seed in range(8)]
    expected = [branching(ops.tanh(model(x)) + x[:1]) for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(50):
            pair = zip(compiled(inputs[index]), expected[index], strict=True)
            if any(not np.allclose(a.numpy(), b.numpy(), 1e-5, 1e-6) for a, b in pair):
                wrong.append(index)

    threads = [Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_same_tensors_in_other_arguments_have_other_plans() -> None:
    def function(*args: Any, **kwargs: Any) -> Any:
        kinds = [type(arg).__name__ for arg in args]
        tensors = [t for arg in args for t in (arg if type(arg) is tuple else (arg,))]
        total = sum(map(ops.sum, (*tensors, *kwargs.values())), burn.tensor(0.0))
        return total * (1.0 + 10 * len(kinds) + 100 * kinds.count("tuple"))

    x, y = burn.tensor(np.ones((2, 3), np.float32)), burn.tensor(np.ones(4, np.float32))
    compiled = burn.compile(function)
    for _ in range(3):
        for args in ((x, y), ((x, y),), (x, (y,)), (y, x), (x,), ()):
            assert compiled(*args).item() == function(*args).item()
        assert compiled(x, other=y).item() == function(x, other=y).item()
    assert len(compiled._plans) == 7


def test_modules_are_arguments_and_other_types_are_noted() -> None:
    layers, x = [nn.Linear(3, 3), nn.Linear(3, 3)], tensor(2, 3)
    function = Counted(lambda layer, x: layer(x))
    compiled = burn.compile(function)
    for _ in range(3):
        for layer in layers:
            close(compiled(layer, x), layer(x))
    assert function.count == len(layers) and compiled.notes == []
    other = burn.compile(lambda x: burn.tensor(x["a"]) + 1)
    other({"a": x.numpy()})
    assert len(other.notes) == 1 and "type numpy.ndarray are not" in other.notes[0]
