"""Calls of recurrent layers, orders and running sums, which plans may trace."""

from typing import Any

from hypothesis import strategies as st

from tests.runtime.cpu.traceable_cases import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    Case,
    Draw,
    Operand,
    case,
    ranked,
)

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
#: The activations of a direction that NumPy computes, and those that oneDNN does.
ACTIVATIONS = {
    "lstm": (("Sigmoid", "Tanh", "Tanh"), ("HardSigmoid", "Softsign", "Elu")),
    "gru": (("Sigmoid", "Tanh"), ("Affine", "Softplus")),
    "rnn": (("Tanh",), ("LeakyRelu",)),
}


@case("lstm", "gru", "rnn")
def _recurrent(draw: Draw, op: Any) -> Case:
    time, batch, width, hidden = (draw(st.integers(1, 3)) for _ in range(4))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count, rows = 1 + (direction == "bidirectional"), GATES[op.name] * hidden
    options = {
        "direction": direction,
        "activations": draw(st.sampled_from(ACTIVATIONS[op.name])) * count,
        "clip": draw(st.sampled_from([None, 0.5])),
    }
    state = Operand((count, batch, hidden), "float32")
    operands = [
        Operand((time, batch, width), "float32"),
        Operand((count, rows, width), "float32"),
        Operand((count, rows, hidden), "float32"),
        Operand((count, 2 * rows), "float32"),
        *[state] * (1 + (op.name == "lstm")),
    ]
    if draw(st.booleans()):
        operands.append(Operand((batch,), "int32", below=time + 1))
    return Case(lambda *xs: list(op(*xs, **options)), operands)


@case("argmax", "argmin")
def _position(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    options = {
        "axis": draw(st.sampled_from([None, *range(-len(shape), len(shape))])),
        "keepdims": draw(st.booleans()),
        "select_last": draw(st.booleans()),
    }
    operand = Operand(shape, draw(st.sampled_from(NUMBERS)))
    return Case(lambda x: op(x, **options), [operand])


@case("topk")
def _largest(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    count, largest = draw(st.integers(0, shape[axis])), draw(st.booleans())
    operands = [Operand(shape, draw(st.sampled_from(NUMBERS)))]
    if draw(st.booleans()):
        return Case(lambda x: list(op(x, count, axis=axis, largest=largest)), operands)
    operands.append(Operand((1,), "int64", below=shape[axis] + 1))
    return Case(lambda x, k: list(op(x, k, axis=axis, largest=largest)), operands)


@case("cumsum", "cumprod")
def _running(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    options = {"exclusive": draw(st.booleans()), "reverse": draw(st.booleans())}
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    operand = Operand(shape, draw(st.sampled_from((*FLOATS, "int32", "int64"))))
    return Case(lambda x: op(x, axis, **options), [operand])


@case("chained")
def _chained(draw: Draw, op: Any) -> Case:
    shape, dtype = draw(ranked(0)), draw(st.sampled_from(("float32", "float64")))
    links = st.sampled_from([("relu", None), ("add", 0), ("mul", 1), ("sub", 0)])
    chain = tuple(draw(st.lists(links, min_size=1, max_size=3)))
    operands = [Operand(shape, dtype), Operand(shape, dtype), Operand((), dtype)]
    return Case(lambda *xs: op(*xs, chain=chain), operands)


@case("one_hot_mask")
def _one_hot(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(0))
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    operand = Operand(shape, draw(st.sampled_from(INTEGERS[:2])), below=5)
    return Case(lambda x: op(x, 4, axis=axis), [operand])
