"""Examples of the recurrent layers and cells that passes make."""

from typing import Any

from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, floats

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
flags = st.booleans()
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}


@case("LSTM", domain="burn")
def lstm(draw: Draw, version: int) -> Example:
    return stack(draw, "LSTM")


@case("GRU", domain="burn")
def gru(draw: Draw, version: int) -> Example:
    return stack(draw, "GRU")


@case("RNN", domain="burn")
def rnn(draw: Draw, version: int) -> Example:
    return stack(draw, "RNN", nonlinearity="tanh")


@case("LSTMCell", domain="burn")
def lstm_cell(draw: Draw, version: int) -> Example:
    return cell(draw, "LSTM")


@case("ProjectedLSTMCell", domain="burn")
def projected_lstm_cell(draw: Draw, version: int) -> Example:
    batch, features, hidden, size = (draw(st.integers(1, 3)) for _ in range(4))
    inputs: list[Array | None] = [floats(draw, (batch, features))]
    inputs += [floats(draw, (batch, size)), floats(draw, (batch, hidden))]
    shapes = (4 * hidden, features), (4 * hidden, size), (size, hidden)
    inputs += [floats(draw, shape) for shape in shapes]
    if draw(flags):
        inputs += [floats(draw, (4 * hidden,)) for _ in range(2)]
    return example({}, inputs, "LSTM", 2)


@case("GRUCell", domain="burn")
def gru_cell(draw: Draw, version: int) -> Example:
    return cell(draw, "GRU")


@case("RNNCell", domain="burn")
def rnn_cell(draw: Draw, version: int) -> Example:
    return cell(draw, "RNN", nonlinearity="tanh")


def stack(draw: Draw, kind: str, **attrs: Any) -> Example:
    """A stack of layers, with first states or without."""
    time, batch, features, hidden = (draw(st.integers(1, 3)) for _ in range(4))
    count, biased, both = draw(st.integers(1, 2)), draw(flags), draw(flags)
    attrs |= {"num_layers": count, "bidirectional": both}
    attrs["batch_first"] = draw(flags)
    ways = 1 + both
    shape = (batch, time) if attrs["batch_first"] else (time, batch)
    given = draw(flags)
    state = (count * ways, batch, hidden)
    inputs: list[Array | None] = [floats(draw, (*shape, features))]
    inputs += [floats(draw, state) if given else None for _ in range(STATES[kind])]
    for layer in range(count):
        width = features if layer == 0 else ways * hidden
        for _ in range(ways):
            inputs += parameters(draw, GATES[kind] * hidden, width, hidden, biased)
    return example(attrs, inputs, kind, 1 + STATES[kind])


def cell(draw: Draw, kind: str, **attrs: Any) -> Example:
    """One step, from states or from zeros."""
    batch, features, hidden = (draw(st.integers(1, 3)) for _ in range(3))
    given = draw(flags)
    inputs: list[Array | None] = [floats(draw, (batch, features))]
    for _ in range(STATES[kind]):
        inputs.append(floats(draw, (batch, hidden)) if given else None)
    rows, biased = GATES[kind] * hidden, draw(flags)
    inputs += parameters(draw, rows, features, hidden, biased)
    return example(attrs, inputs, kind, STATES[kind])


def example(
    attrs: dict[str, Any], inputs: list[Array | None], kind: str, outputs: int
) -> Example:
    """An example of which the parameters may be stored."""
    weights = range(1 + STATES[kind], len(inputs))
    return Example(
        attrs,
        inputs,
        outputs,
        stored=frozenset(weights),
        resizable=False,
        rtol=1e-4,
        atol=1e-5,
    )


def parameters(
    draw: Draw, rows: int, width: int, hidden: int, biased: bool
) -> list[Array | None]:
    """The weights of one layer in one direction, with biases or without."""
    results: list[Array | None] = [
        floats(draw, (rows, width)),
        floats(draw, (rows, hidden)),
    ]
    return results + [floats(draw, (rows,)) for _ in range(2 * biased)]
