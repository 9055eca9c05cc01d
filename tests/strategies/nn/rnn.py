"""Examples of recurrent layers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, floats, integers

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}


def recurrent(draw: Draw, version: int, name: str) -> Example:
    """A layer with some of its operands left out."""
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    inputs = operands(draw, name, count)
    hidden = 0 if inputs[2] is None else inputs[2].shape[-1]
    attrs = {"direction": direction, "hidden_size": hidden}
    attrs |= choices(draw, version, name, count)
    newer = None
    if version < 7:
        newer = (7, dict(attrs))
        attrs["output_sequence"] = 1
    return Example(
        attrs,
        inputs,
        3 if name == "LSTM" else 2,
        stored=frozenset({1, 2, 3} & set(range(len(inputs)))),
        resizable=False,
        smooth="clip" not in attrs,
        newer=newer,
        rtol=1e-4,
        atol=1e-5,
    )


def operands(draw: Draw, name: str, count: int) -> list[Array | None]:
    """The sequences, weights and first states of a layer of ``count`` directions."""
    time, batch, features, hidden = (draw(st.integers(1, 4)) for _ in range(4))
    gates, state = GATES[name], (count, batch, hidden)
    lengths = integers(draw, (batch,), 1, time, np.int32)
    inputs: list[Array | None] = [
        floats(draw, (time, batch, features)),
        floats(draw, (count, gates * hidden, features)),
        floats(draw, (count, gates * hidden, hidden)),
        optional(draw, (count, 2 * gates * hidden)),
        lengths if draw(st.booleans()) else None,
        optional(draw, state),
    ]
    if name == "LSTM":
        inputs += [optional(draw, state), optional(draw, (count, 3 * hidden))]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def choices(draw: Draw, version: int, name: str, count: int) -> dict[str, Any]:
    """Attributes that are mostly not at their defaults."""
    attrs: dict[str, Any] = {"clip": 0.75} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        attrs["activations"] = tuple(
            draw(st.sampled_from(["Tanh", "Sigmoid", "Softsign"]))
            for _ in ACTIVATIONS[name] * count
        )
    elif name == "RNN":
        attrs["activations"] = ("Tanh",) * count
    if name == "GRU" and version >= 3:
        attrs["linear_before_reset"] = draw(st.integers(0, 1))
    return attrs


def optional(draw: Draw, shape: tuple[int, ...]) -> Array | None:
    """Numbers, or an operand left out."""
    return floats(draw, shape) if draw(st.booleans()) else None


@case("LSTM")
def lstm(draw: Draw, version: int) -> Example:
    return recurrent(draw, version, "LSTM")


@case("GRU")
def gru(draw: Draw, version: int) -> Example:
    return recurrent(draw, version, "GRU")


@case("RNN")
def rnn(draw: Draw, version: int) -> Example:
    return recurrent(draw, version, "RNN")
