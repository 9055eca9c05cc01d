"""Chains of operations on elements compute what the operations do."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.fused import chained
from burn.plan.compiled import Compiled
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, laid_out, needs_onednn, normal
from tests.runtime.programs import program_of
from tests.sampling import example_count


def left(compiled: "Compiled[Any, Any]") -> list[str]:
    """The names of the primitives of the only plan."""
    steps = program_of(compiled)._root.steps
    return [step.primitive.name for step in steps if isinstance(step, Step)]


CASES: dict[str, tuple[Any, list[str]]] = {
    "two": (lambda x, y, r: x * 0.5 + y, ["chained"]),
    "taken-off": (lambda x, y, r: x - y * 0.25, ["chained"]),
    "by-a-tensor": (lambda x, y, r: x - y * r, ["chained"]),
    "many": (lambda x, y, r: ops.relu((x + y) / r * 2.0 - x), ["chained"]),
    "root": (
        lambda x, y, r: y / (ops.sqrt(ops.abs(x)) + 1.0),
        ["abs", "chained", "div"],
    ),
    "itself": (lambda x, y, r: x * x * x + y, ["chained"]),
    "both": (lambda x, y, r: x * 2.0 - y * 3.0, ["mul", "chained"]),
    "neg": (lambda x, y, r: -(x + y), ["chained"]),
    "used-twice": (lambda x, y, r: [z := x + y, z * 2.0], ["add", "mul"]),
    "spread": (lambda x, y, r: (x + y[:1]) * 2.0, ["getitem", "add", "mul"]),
    "over-number": (lambda x, y, r: 2.0 / (x * x + 1.0), ["chained", "div"]),
    "integers": (
        lambda x, y, r: ops.cast(x, dtype=burn.int32) * 2 + 1,
        ["cast", "mul", "add"],
    ),
    "infinite": (lambda x, y, r: (x + y) * float("inf"), ["add", "mul"]),
}


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_computes_the_same(name: str, numpy: bool) -> None:
    function, names = CASES[name]
    compiled = burn.compile(function, generated=False)
    given = [burn.from_numpy(normal(5, 30, 7, seed=seed)) for seed in (1, 2)]
    rate = burn.tensor(0.125)
    with engine.numpy_only() if numpy else engine.whatever_size():
        for _ in range(3):
            actual, expected = compiled(*given, rate), function(*given, rate)
            for a, b in zip(_several(actual), _several(expected), strict=True):
                assert_close(a.numpy(), b.numpy())
    assert left(compiled) == names


def _several(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


@needs_onednn
@settings(max_examples=example_count(40), deadline=None)
@given(data=st.data(), shape=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_chains_in_any_order_of_memory(data: st.DataObject, shape: list[int]) -> None:
    names = data.draw(
        st.lists(
            st.sampled_from(["add", "sub", "mul", "div", "relu", "sqrt"]), max_size=4
        )
    )
    orders = [data.draw(st.permutations(range(len(shape)))) for _ in range(6)]
    single = [data.draw(st.booleans()) for _ in range(5)]
    operands = [laid_out(np.abs(normal(*shape, seed=9)) + 1, orders[5])]
    chain: list[tuple[str, int | None]] = [("add", 0)]
    for number in range(len([n for n in names if n not in ("relu", "sqrt")])):
        one = np.abs(normal(seed=number)) + np.float32(0.5)
        many = laid_out(np.abs(normal(*shape, seed=number)) + 1, orders[number])
        operands.append(np.asarray(one) if single[number] else many)
    places = iter(range(1, len(operands)))
    for name in names:
        link = (name, None if name in ("relu", "sqrt") else next(places))
        if name == "sqrt":
            chain.append(("relu", None))
        chain.append(link)

    def function(x: Any, *others: Any) -> Any:
        return chained(x, *others, chain=tuple(chain))

    arrays = [laid_out(normal(*shape), orders[4]), *operands]
    compiled, given = burn.compile(function), [*map(burn.from_numpy, arrays)]
    for _ in range(2):
        actual = compiled(*given).numpy()
    assert_close(actual, chained.kernel(*arrays, chain=tuple(chain)))


@pytest.mark.parametrize("rank", [1, 2])
def test_a_number_of_what_is_written_over(rank: int) -> None:
    box = burn.Buffer(burn.from_numpy(normal(*(1, 2000)[-rank:], seed=3)))

    def step(x: Any) -> Any:
        before = box.value
        first = before[:1] if rank == 1 else before[:, :1]
        box.set((before + x) * first)
        return ops.sum(x)

    compiled, expected = burn.compile(step), box.numpy()
    for seed in range(4):
        x = burn.from_numpy(normal(*(1, 2000)[-rank:], seed=seed))
        compiled(x)
        expected = (expected + x.numpy()) * expected[..., :1]
        assert_close(box.numpy(), expected, 1e-4)


@pytest.mark.parametrize("generated", [None, False, True])
def test_chains_on_views_are_numpy_calls_of_the_plan(generated: bool | None) -> None:
    def function(x: Any, y: Any) -> Any:
        first, second = ops.split(x, (31, 31), axis=1)
        return ops.relu(first) * 0.5 + ops.relu(second) * y

    compiled = burn.compile(function, generated=generated)
    for seed in range(4):
        given = [burn.from_numpy(normal(5, 62, 67, seed=seed))]
        given.append(burn.from_numpy(normal(5, 31, 67, seed=seed + 9)))
        assert_close(compiled(*given).numpy(), function(*given).numpy())
    assert generated is not False or "chained" in left(compiled)
    rows = compiled.profile(*given).rows
    assert not [row for row in rows if "chained()" in row.kernels]


def test_few_elements_are_left_to_numpy() -> None:
    compiled = burn.compile(lambda x, y: (x + y) * 2.0)
    given = [burn.from_numpy(normal(3, 5, seed=seed)) for seed in (1, 2)]
    for _ in range(2):
        compiled(*given)
    assert left(compiled) == ["add", "mul"]


@needs_onednn
def test_chains_are_oft_onednns() -> None:
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    compiled = burn.compile(lambda x, y: (x + y) * 2.0)
    given = [burn.from_numpy(normal(30, 50, seed=seed)) for seed in (1, 2)]
    for _ in range(2):
        compiled(*given)
    assert session.primitives.implementations() == ["jit:uni"]
