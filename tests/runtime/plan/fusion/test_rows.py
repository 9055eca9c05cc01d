"""Tables are trained at the rows that were looked up."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.indexing import add_rows, getitem_grad
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.programs import program_of


def table(rows: int = 400) -> Any:
    box = burn.Parameter(burn.from_numpy(normal(rows, 3, seed=1)))
    box.to(Autodiff(Cpu()))
    return box


def names(compiled: Any) -> list[str]:
    steps = program_of(compiled)._root.steps
    return [step.primitive.name for step in steps if isinstance(step, Step)]


def loss(box: Any, index: Any, axis: int) -> Any:
    return ops.sum(ops.take(box, index, axis) ** 3.0)


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("axis", [0, -2, 1])
@pytest.mark.parametrize("shape", [(4, 3), (7,), (2, 3, 2)])
def test_gradient_descent(shape: Any, axis: int, numpy: bool) -> None:
    eager, planned = table(), table()

    def step(box: Any) -> Any:
        def run(index: Any, rate: Any) -> Any:
            found = loss(box, index, axis)
            grad = found.backward()[box]
            box.set(box.value.detach() - grad * rate * 0.5)
            return found.detach()

        return run

    one, other = step(eager), burn.compile(step(planned))
    generator, bound = np.random.default_rng(0), 3 if axis == 1 else 11
    with engine.numpy_only() if numpy else engine.whatever_size():
        for turn in range(6):
            index = burn.from_numpy(generator.integers(-bound, bound, shape))
            rate = burn.tensor(0.01 * (turn + 1))
            a, b = one(index, rate), other(index, rate)
            assert_close(b.numpy(), a.numpy())
            assert_close(planned.numpy(), eager.numpy())
    assert not other.notes
    assert ("rows_added" in names(other)) == (axis != 1)


def test_a_gradient_that_is_used_otherwise_is_whole() -> None:
    eager, planned = table(), table()

    def step(box: Any) -> Any:
        def run(index: Any) -> Any:
            grad = loss(box, index, 0).backward()[box]
            box.set(box.value.detach() - grad * 0.01)
            return grad

        return run

    one, other = step(eager), burn.compile(step(planned))
    for index in ([1, 2, 1], [3, 3, 3], [0, -1, 5]):
        assert_close(other(burn.tensor(index)).numpy(), one(burn.tensor(index)).numpy())
        assert_close(planned.numpy(), eager.numpy())
    assert "rows_added" not in names(other)


def test_rows_that_become_infinite_are_seen() -> None:
    box = table()

    def step(index: Any, rate: Any) -> Any:
        grad = loss(box, index, 0).backward()[box]
        box.set(box.value.detach() - grad * rate)
        return ops.sum(ops.relu(box.value.detach()))

    compiled, plain = burn.compile(step), box.numpy().copy()
    for rate in (0.5, 0.25, 1e38, 1e38, 1.0, 0.5):
        with np.errstate(all="ignore"):
            rows = plain[[2, 5]]
            plain[[2, 5]] = rows - 3 * rows * rows * np.float32(rate)
        found = compiled(burn.tensor([2, 5]), burn.tensor(rate))
        np.testing.assert_allclose(box.numpy(), plain, rtol=1e-4)
        expected = np.maximum(plain, 0).sum()
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4)


@needs_onednn
@pytest.mark.parametrize(
    "key", [(slice(None), 0), 1, (slice(1, 3), slice(None, None, -2)), (0, 1), ...]
)
def test_gradients_of_views(key: Any) -> None:
    compiled = burn.compile(lambda x, y: getitem_grad(y, key, shape=x.shape) + x)
    x = burn.from_numpy(normal(4, 5))
    y = burn.from_numpy(np.asarray(normal(4, 5, seed=1)[key]))
    for _ in range(3):
        found = compiled(x, y).numpy()
    expected = x.numpy().copy()
    expected[key] += y.numpy()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("bound", "count"), [(1, 9), (3, 40), (50, 60), (9, 2), (4, 0)]
)
def test_rows_are_added_however_often_they_come(bound: int, count: int) -> None:
    index = np.random.default_rng(count).integers(0, bound, count)
    index[: count // 2] = bound // 2  # a long run among short ones
    rows, out = normal(count, 2, 3), normal(bound, 2, 3, seed=1)
    expected = out.astype(np.float64)
    np.add.at(expected, index, rows)
    add_rows(out, index, rows)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
