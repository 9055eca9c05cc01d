"""Cells become layers of one step in plans, and nothing else does."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.programs import program_of

pytestmark = needs_onednn

BATCH, INPUT, HIDDEN = 3, 5, 8
#: The layer of each cell, and how many states it has.
CELLS: dict[Any, tuple[str, int]] = {nn.LSTMCell: ("lstm", 2), nn.GRUCell: ("gru", 1)}


def made(kind: Any, width: int = INPUT, **options: Any) -> Any:
    cell = kind(width, HIDDEN, **options)
    for index, (_, box) in enumerate(cell.parameters()):
        box.set(burn.from_numpy(normal(*box.value.shape, seed=index) * np.float32(0.4)))
    return cell


def step(cell: Any, x: Any, states: Any) -> Any:
    """The states after a step, in a row."""
    if isinstance(cell, nn.LSTMCell):
        return cell(x, states)
    return (cell(x, *states),)


def tensors(*shapes: tuple[int, ...], seed: int) -> list[Any]:
    return [burn.from_numpy(normal(*s, seed=seed + i)) for i, s in enumerate(shapes)]


def names(compiled: Any) -> Counter[str]:
    """Return the count of each primitive in the only plan of ``compiled``."""
    steps = program_of(compiled)._root.steps
    return Counter(step.primitive.name for step in steps if isinstance(step, Step))


def compare(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Counter[str]:
    """Return the primitives in a function's plan; compare results with eager calls."""
    compiled = burn.compile(function)
    for seed in range(0, 30, 10):
        given = tensors(*shapes, seed=seed)
        with engine.numpy_only():
            expected = function(*given)
        for one, other in zip(compiled(*given), expected, strict=True):
            assert_close(one.numpy(), other.numpy())
    assert not compiled.notes
    return names(compiled)


STATE = (BATCH, HIDDEN)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("width", [INPUT, HIDDEN])
def test_a_cell(kind: Any, bias: bool, width: int) -> None:
    cell, (layer, states) = made(kind, width, bias=bias), CELLS[kind]
    actual = compare(
        lambda x, *s: step(cell, x, s), (BATCH, width), *[STATE for _ in range(states)]
    )
    assert actual[layer] == 1
    assert set(actual) <= {layer, "reshape", "take", "concat"}


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_without_a_state(kind: Any) -> None:
    cell = made(kind)

    def first(x: Any) -> Any:
        out = cell(x)
        return out if isinstance(out, tuple) else (out,)

    compare(first, (BATCH, INPUT))


@pytest.mark.parametrize("kind", CELLS)
def test_weights_of_several_steps_are_rearranged_once(kind: Any) -> None:
    cell, (layer, states) = made(kind), CELLS[kind]

    def unrolled(x: Any, *given: Any) -> Any:
        every = []
        for time in range(4):
            given = step(cell, x[:, time], given)
            every.append(given[0])
        return ops.stack(every, 1), *given

    actual = compare(unrolled, (BATCH, 4, INPUT), *[STATE for _ in range(states)])
    assert actual[layer] == 4
    assert actual["take"] == 4  # two weights and two biases
    assert not {"sigmoid", "tanh", "mul", "add", "linear", "split"} & {*actual}


def test_states_that_go_around_the_other_way() -> None:
    """Either product may be of the state, and sums are in any order."""
    cell = made(nn.LSTMCell)

    def written(x: Any, h: Any, c: Any) -> Any:
        back = ops.linear(h, cell.weight_hh, cell.bias_hh)
        gates = back + ops.linear(x, cell.weight_ih, cell.bias_ih)
        i, f, g, o = ops.split(gates, (HIDDEN,) * 4, 1)
        c = ops.tanh(g) * ops.sigmoid(i) + c * ops.sigmoid(f)
        return ops.tanh(c) * ops.sigmoid(o), c

    assert compare(written, (BATCH, INPUT), STATE, STATE)["lstm"] == 1


def gates_in_onnx_order(cell: Any, x: Any, h: Any, c: Any) -> Any:
    gates = cell._inputs(x) + cell._recurrent(h)
    i, o, f, g = ops.split(gates, (HIDDEN,) * 4, 1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def a_gate_is_a_result(cell: Any, x: Any, h: Any, c: Any) -> Any:
    gates = cell._inputs(x) + cell._recurrent(h)
    i, f, g, o = ops.split(gates, (HIDDEN,) * 4, 1)
    forget = ops.sigmoid(f)
    c = forget * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c, forget


def other_activation(cell: Any, x: Any, h: Any, c: Any) -> Any:
    gates = cell._inputs(x) + cell._recurrent(h)
    i, f, g, o = ops.split(gates, (HIDDEN,) * 4, 1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.relu(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def weights_that_are_computed(cell: Any, x: Any, h: Any, c: Any) -> Any:
    weight = cell.weight_hh.value * ops.sum(x)
    gates = cell._inputs(x) + ops.linear(h, weight)
    i, f, g, o = ops.split(gates, (HIDDEN,) * 4, 1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def one_bias(cell: Any, x: Any, h: Any, c: Any) -> Any:
    gates = cell._inputs(x) + ops.linear(h, cell.weight_hh)
    i, f, g, o = ops.split(gates, (HIDDEN,) * 4, 1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


OTHERS = [a_gate_is_a_result, gates_in_onnx_order, one_bias, other_activation]


@pytest.mark.parametrize("function", [*OTHERS, weights_that_are_computed])
def test_others_stay(function: Any) -> None:
    cell = made(nn.LSTMCell)
    actual = compare(
        lambda *given: function(cell, *given), (BATCH, INPUT), STATE, STATE
    )
    assert not actual["lstm"]


def test_a_reset_of_something_else_stays() -> None:
    cell = made(nn.GRUCell, HIDDEN)

    def mixed_with_the_input(x: Any, h: Any) -> Any:
        r, z, n = ops.split(cell._inputs(x), (HIDDEN,) * 3, 1)
        hr, hz, hn = ops.split(cell._recurrent(h), (HIDDEN,) * 3, 1)
        z = ops.sigmoid(z + hz)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return ((1.0 - z) * n + z * x,)

    def crossed(x: Any, h: Any) -> Any:
        r, z, n = ops.split(cell._inputs(x), (HIDDEN,) * 3, 1)
        hr, hz, hn = ops.split(cell._recurrent(h), (HIDDEN,) * 3, 1)
        z = ops.sigmoid(z + hr)
        n = ops.tanh(n + ops.sigmoid(r + hz) * hn)
        return ((1.0 - z) * n + z * h,)

    for function in (mixed_with_the_input, crossed):
        assert not compare(function, STATE, STATE)["gru"]


def test_without_an_engine_cells_stay() -> None:
    cell = made(nn.LSTMCell)
    compiled = burn.compile(lambda x, h, c: cell(x, (h, c)))
    with engine.numpy_only():
        for seed in range(3):
            compiled(*tensors((BATCH, INPUT), STATE, STATE, seed=seed))
        assert not names(compiled)["lstm"]


@pytest.mark.parametrize("kind", CELLS)
def test_cells_are_trained(kind: Any) -> None:
    cells, states = [made(kind).to(Autodiff(Cpu())) for _ in range(2)], CELLS[kind][1]

    def training(cell: Any) -> Any:
        def run(x: Any, *given: Any) -> Any:
            given = step(cell, x, step(cell, x * 2.0, given))
            loss = ops.sum(ops.concat([state * state for state in given]))
            grads = loss.backward()
            for _, box in cell.parameters():
                box.set(box.value.detach() - grads[box] * 0.01)
            return loss.detach()

        return run

    one, other = training(cells[0]), burn.compile(training(cells[1]))
    for seed in range(0, 40, 10):
        shapes = [(BATCH, INPUT), *[STATE for _ in range(states)]]
        given = tensors(*shapes, seed=seed)
        assert_close(other(*given).numpy(), one(*given).numpy(), 3e-5)
    for (_, a), (_, b) in zip(*(c.parameters() for c in cells), strict=True):
        assert_close(b.value.numpy(), a.value.numpy(), 3e-5)


def test_weights_that_are_set() -> None:
    cell = made(nn.GRUCell)
    compiled = burn.compile(cell)
    for factor in (1.0, 2.0, 3.0):
        for _, box in cell.parameters():
            box.set(burn.tensor(box.value.numpy() * np.float32(factor)))
        for seed in range(3):
            given = tensors((BATCH, INPUT), STATE, seed=seed)
            assert_close(compiled(*given).numpy(), cell(*given).numpy())
