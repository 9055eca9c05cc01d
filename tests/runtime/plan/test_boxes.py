"""Plans follow what boxes hold, whenever they are set and whatever it is."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.bind.program import CHANGES
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


def gated(x: Any, p: Any, q: Any) -> Any:
    """Much after the last use of ``p``, where its memory would serve others."""
    y = ops.tanh(ops.tanh((x + p) * 2.0) + x) * x
    return ops.relu(y) - ops.silu(x) * q


def layered(x: Any, p: Any, q: Any) -> Any:
    return ops.relu(ops.linear(x, p) @ q) + x


def activated(x: Any, p: Any, q: Any) -> Any:
    """Activations of boxes alone, which could be computed in place."""
    return ops.tanh(p) + ops.silu(x) + ops.softmax(q)


def viewed(x: Any, p: Any, q: Any) -> Any:
    return [ops.transpose(p, 0, 1), p.value, x + ops.transpose(q, 0, 1), q.value]


def branching(x: Any, p: Any, q: Any) -> Any:
    y = ops.tanh(p) * x
    if bool(ops.sum(x) > 0):
        return ops.relu(y + q) * p
    return y - ops.tanh(ops.tanh(y * 3.0)) * q


FUNCTIONS = {f.__name__: f for f in (gated, layered, activated, viewed, branching)}


def leaves(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def follow(function: Any, sets: list[tuple[int, ...]], numpy: bool) -> None:
    """Compare call after call; ``sets`` are the boxes that are set before each."""
    boxes = [burn.Parameter(tensor(6, 6, seed=i)) for i in (50, 51)]
    compiled = burn.compile(lambda x: function(x, *boxes))
    for turn, numbers in enumerate(sets):
        for number in numbers:
            boxes[number].set(tensor(6, 6, seed=100 + 2 * turn + number))
        x = tensor(6, 6, seed=turn)
        if numpy:
            with engine.numpy_only():
                found = compiled(x)
        else:
            found = compiled(x)
        for a, b in zip(leaves(found), leaves(function(x, *boxes)), strict=True):
            assert_close(a.numpy(), b.numpy(), 1e-4)
    assert not compiled.notes


OFTEN = CHANGES + 2
#: Which of the two boxes are set before each call.
RHYTHMS: dict[str, list[tuple[int, ...]]] = {
    "always": [(0, 1)] * (OFTEN + 4),
    "then never": [(0,)] * OFTEN + [()] * 4,
    "then the other": [(0,)] * OFTEN + [(1,), (), (1,), ()] + [(1,)] * OFTEN + [()] * 2,
    "every third time": [(0,), (), ()] * (OFTEN + 2),
    "by turns": [(0,), (1,)] * (OFTEN + 1) + [()] * 2,
    "once, late": [(), (), (), (0, 1), (), ()],
}


@pytest.mark.parametrize("rhythm", RHYTHMS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("numpy", [False, True])
def test_boxes_that_are_set(name: str, rhythm: str, numpy: bool) -> None:
    follow(FUNCTIONS[name], RHYTHMS[rhythm], numpy)


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("when", range(1, CHANGES + 4))
def test_what_is_not_finite_is_seen_at_any_time(when: int, special: float) -> None:
    weight = burn.Parameter(tensor(4, 4, 3, 3))
    other = burn.Parameter(tensor(4))

    def function(x: Any) -> Any:
        return ops.relu(ops.conv(x, weight)) * ops.reshape(other, (1, 4, 1, 1))

    compiled = burn.compile(function)
    x = tensor(1, 4, 6, 6)
    for turn in range(CHANGES + 6):
        if turn <= CHANGES + 4:
            array = normal(4, 4, 3, 3, seed=turn)
            if turn == when:
                array[0, 0, 0, 0] = special
            weight.set(burn.from_numpy(array))
        if turn % 2:
            other.set(tensor(4, seed=turn))
        for _ in range(2):
            found, expected = compiled(x).numpy(), function(x).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_result_that_follows_from_boxes_alone_is_computed_anew() -> None:
    weight = burn.Parameter(tensor(3, 4))
    compiled = burn.compile(lambda x: [weight * 2.0, x + weight, weight.value])
    x = tensor(3, 4)
    kept = []
    for turn in range(7):
        value = normal(3, 4, seed=turn)
        weight.set(burn.from_numpy(value))
        for _ in range(2):
            found = compiled(x)
            np.testing.assert_array_equal(found[0].numpy(), value * 2)
            np.testing.assert_array_equal(found[2].numpy(), value)
        kept.append((found[0], found[2], value))
    for doubled, held, value in kept:
        np.testing.assert_array_equal(doubled.numpy(), value * 2)
        np.testing.assert_array_equal(held.numpy(), value)


def test_a_box_that_was_moved_is_not_computed_with() -> None:
    weight = burn.Parameter(tensor(4, 4))
    compiled = burn.compile(lambda x: ops.relu(x @ weight))
    x = tensor(2, 4)
    for _ in range(2):
        compiled(x)
    weight.to(burn.Autodiff(burn.Cpu()))
    for turn in range(2):
        weight.set(tensor(4, 4, seed=turn))
        found = compiled(x).sum().backward()[weight]
        expected = ops.relu(x @ weight).sum().backward()[weight]
        assert_close(found.numpy(), expected.numpy())
    weight.to(burn.Cpu())
    assert_close(compiled(x).numpy(), ops.relu(x @ weight).numpy())


class SetWhileItIsRead(burn.Parameter):
    """A box that another thread sets right after it was read, ``turns`` times."""

    turns = 0

    def held(self) -> burn.Tensor:
        held = super().held()
        if self.turns:
            self.turns -= 1
            self.set(burn.from_numpy(held.numpy() + np.float32(1.0)))
        return held


@pytest.mark.parametrize("before", [0, CHANGES + 1])
def test_a_box_that_is_set_while_it_is_read(before: int) -> None:
    weight = SetWhileItIsRead(tensor(4, 4))
    compiled = burn.compile(lambda x: x @ weight)
    x = tensor(2, 4)
    for turn in range(before + 1):
        compiled(x)
        weight.set(tensor(4, 4, seed=turn))
    for _ in range(3):
        weight.set(tensor(4, 4, seed=9))
        weight.turns = 1
        compiled(x)
        assert not weight.turns
        assert_close(compiled(x).numpy(), (x @ weight).numpy(), 1e-4)
