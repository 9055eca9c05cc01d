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
    time, batch, features, hidden = (draw(st.integers(1, 4)) for _ in range(4))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    gates = GATES[name]
    attrs: dict[str, Any] = {"direction": direction, "hidden_size": hidden}
    state = (count, batch, hidden)
    inputs: list[Array | None] = [
        floats(draw, (time, batch, features)),
        floats(draw, (count, gates * hidden, features)),
        floats(draw, (count, gates * hidden, hidden)),
    ]
    inputs.append(optional(draw, (count, 2 * gates * hidden)))
    inputs.append(
        integers(draw, (batch,), 1, time, np.int32) if draw(st.booleans()) else None
    )
    inputs.append(optional(draw, state))
    if name == "LSTM":
        inputs += [optional(draw, state), optional(draw, (count, 3 * hidden))]
    if draw(st.booleans()):
        attrs["clip"] = 0.75
    if draw(st.booleans()):
        attrs["activations"] = tuple(
            draw(st.sampled_from(["Tanh", "Sigmoid", "Softsign"]))
            for _ in ACTIVATIONS[name] * count
        )
    elif name == "RNN":
        attrs["activations"] = ("Tanh",) * count
    if name == "GRU" and version >= 3:
        attrs["linear_before_reset"] = draw(st.integers(0, 1))
    newer = None
    if version < 7:
        newer = (7, dict(attrs))
        attrs["output_sequence"] = 1
    while inputs[-1] is None:
        inputs.pop()
    outputs = 3 if name == "LSTM" else 2
    return Example(
        attrs,
        inputs,
        outputs,
        stored=frozenset({1, 2, 3} & set(range(len(inputs)))),
        resizable=False,
        smooth="clip" not in attrs,
        newer=newer,
        rtol=1e-4,
        atol=1e-5,
    )


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
