"""Memory of plans: how much they reserve, and what happens where there is none."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.bind.arena import Arena
from burn.backend.cpu.bind.program import Program
from burn.plan.compiled import Compiled
from tests.runtime.programs import program_of

ROWS = 1000


def tensor(*shape: int) -> burn.Tensor:
    generator = np.random.default_rng(0)
    return burn.tensor(generator.standard_normal(shape).astype(np.float32))


def chain(x: burn.Tensor) -> burn.Tensor:
    """Return a sum after many steps that cannot be fused; two values live at a time."""
    for _ in range(20):
        x = ops.softmax(ops.softmax(x, axis=-1).transpose(0, 1), axis=-1)
        x = x.transpose(0, 1)
    return x.sum()


@pytest.fixture
def reserved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all chunks that arenas reserve from now on."""
    sizes: list[int] = []
    grow = Arena._grow

    def noted(arena: Arena, size: int) -> None:
        sizes.append(size)
        grow(arena, size)

    monkeypatch.setattr(Arena, "_grow", noted)
    return sizes


def test_a_plan_reserves_what_lives_at_one_time(reserved: list[int]) -> None:
    x, compiled = tensor(ROWS, 100), burn.compile(chain)
    expected = chain(x).numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-6)
    assert reserved
    assert sum(reserved) < 6 * x.numpy().nbytes  # of 40 values


def refuse(_: Arena, size: int) -> None:
    raise MemoryError(f"no {size} bytes")


def test_without_memory_a_plan_runs_without_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Arena, "_grow", refuse)
    x, compiled = tensor(ROWS, 4), burn.compile(chain)
    expected = chain(x).numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-6)
    (note,) = compiled.notes
    assert note.startswith("a plan runs without memory of its own: no ")


def test_boxes_are_set_once_where_there_is_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = burn.Buffer(burn.tensor(0.0))

    def count(x: burn.Tensor) -> burn.Tensor:
        counter.set(counter.value + x.sum())
        return x * 2.0

    compiled = burn.compile(count)
    monkeypatch.setattr(Arena, "_grow", refuse)
    for step in range(3):
        assert compiled(burn.tensor([1.0])).tolist() == [2.0]
        assert counter.value.item() == step + 1


def test_a_plan_takes_the_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Compiled(chain)
    first, second = tensor(ROWS, 4), tensor(ROWS, 5)
    for _ in range(2):
        compiled(first)
    program = program_of(compiled)
    grow = Arena._grow

    def grow_alone(arena: Arena, size: int) -> None:
        if program._node is not None:
            raise MemoryError
        grow(arena, size)

    monkeypatch.setattr(Arena, "_grow", grow_alone)
    for x in (second, second, first):
        expected = chain(x).numpy()
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-6)
    assert not compiled.notes
    assert program._node is not None


@pytest.mark.parametrize("kind", [TypeError, ValueError, IndexError])
def test_errors_of_plans_are_raised(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    compiled = burn.compile(chain)
    x = tensor(3, 4)
    compiled(x)

    def fail(_: Program, __: Any) -> None:
        raise kind("a defect of the plan")

    monkeypatch.setattr(Program, "run", fail)
    with pytest.raises(kind, match="a defect of the plan"):
        compiled(x)
