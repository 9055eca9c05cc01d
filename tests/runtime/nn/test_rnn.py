"""Recurrent layers against PyTorch's equations written out, gate by gate."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops

RNG = np.random.default_rng(17)
TIME, BATCH, INPUT, HIDDEN, LAYERS = 4, 3, 5, 2, 2
STATES = {nn.LSTM: 2, nn.GRU: 1, nn.RNN: 1}
KINDS = list(STATES)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_cell(x: Any, h: Any, c: Any, w: Any, r: Any, bx: Any, bh: Any) -> Any:
    i, f, g, o = np.split(x @ w.T + bx + h @ r.T + bh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(x: Any, h: Any, w: Any, r: Any, bx: Any, bh: Any) -> Any:
    xr, xz, xn = np.split(x @ w.T + bx, 3, -1)
    hr, hz, hn = np.split(h @ r.T + bh, 3, -1)
    z = sigmoid(xz + hz)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h,)


def rnn_cell(x: Any, h: Any, w: Any, r: Any, bx: Any, bh: Any) -> Any:
    return (np.tanh(x @ w.T + bx + h @ r.T + bh),)


CELLS: Any = {nn.LSTM: lstm_cell, nn.GRU: gru_cell, nn.RNN: rnn_cell}


def naive(layer: Any, x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
    """Outputs and last states for ``[time, batch, input]``, one cell at a time."""
    cell = CELLS[type(layer)]
    zero = np.zeros(1, np.float32)
    suffixes = ["", "_reverse"] if layer.bidirectional else [""]
    ends = []
    for depth in range(layer.num_layers):
        outs = []
        for side, suffix in enumerate(suffixes):
            path = f"_l{depth}{suffix}"
            pair = [
                getattr(layer, n + path).numpy() for n in ("weight_ih", "weight_hh")
            ]
            for n in ("bias_ih", "bias_hh"):
                pair.append(getattr(layer, n + path).numpy() if layer.bias else zero)
            state = tuple(s[depth * len(suffixes) + side] for s in states)
            steps = x[::-1] if side else x
            found = []
            for step in steps:
                state = cell(step, *state, *pair)
                found.append(state[0])
            outs.append(np.stack(found[::-1] if side else found))
            ends.append(state)
        x = np.concatenate(outs, -1)
    return x, [np.stack(parts) for parts in zip(*ends, strict=True)]


def flat(result: Any) -> list[Any]:
    y, last = result
    return [y, *last] if isinstance(last, tuple) else [y, last]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_values(kind: Any, bidirectional: bool, bias: bool) -> None:
    layer = kind(INPUT, HIDDEN, LAYERS, bias=bias, bidirectional=bidirectional)
    x = RNG.standard_normal((TIME, BATCH, INPUT)).astype(np.float32)
    shape = (LAYERS * (1 + bidirectional), BATCH, HIDDEN)
    for given in (False, True):
        states = [
            RNG.standard_normal(shape).astype(np.float32) * given
            for _ in range(STATES[kind])
        ]
        y, last = naive(layer, x, states)
        tensors = tuple(map(burn.tensor, states))
        state = None if not given else tensors if len(tensors) > 1 else tensors[0]
        found = flat(layer(burn.tensor(x), state))
        for got, want in zip(found, [y, *last], strict=True):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_first(kind: Any) -> None:
    layer = kind(INPUT, HIDDEN, bidirectional=True, batch_first=True)
    x = RNG.standard_normal((BATCH, TIME, INPUT)).astype(np.float32)
    state = np.zeros((2, BATCH, HIDDEN), np.float32)
    y, last = naive(layer, x.swapaxes(0, 1), [state] * STATES[kind])
    found = flat(layer(burn.tensor(x)))
    np.testing.assert_allclose(found[0].numpy(), y.swapaxes(0, 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1].numpy(), last[0], rtol=1e-5, atol=1e-6)


def test_names_and_shapes_are_those_of_pytorch() -> None:
    layer = nn.LSTM(INPUT, HIDDEN, 2, bidirectional=True)
    shapes = {path: box.shape for path, box in layer.boxes()}
    assert list(shapes)[:5] == [
        *("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"),
        "weight_ih_l0_reverse",
    ]
    assert shapes["weight_ih_l0"] == (4 * HIDDEN, INPUT)
    assert shapes["weight_ih_l1_reverse"] == (4 * HIDDEN, 2 * HIDDEN)
    assert shapes["bias_hh_l1"] == (4 * HIDDEN,)
    assert len(shapes) == 16
    assert repr(layer) == "LSTM(5, 2, num_layers=2, bidirectional=True)"
    assert "bias_ih_l0" not in dict(nn.GRU(3, 2, bias=False).boxes())


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_its_gradient(kind: Any) -> None:
    layer = kind(INPUT, HIDDEN, LAYERS, bidirectional=True)
    x = RNG.standard_normal((TIME, BATCH, INPUT)).astype(np.float32)
    layer.to(burn.Autodiff(burn.Cpu()))
    grads = ops.sum(layer(burn.tensor(x))[0]).backward()
    zero = [np.zeros((2 * LAYERS, BATCH, HIDDEN))] * STATES[kind]
    for _, parameter in layer.parameters():
        direction = RNG.standard_normal(parameter.shape).astype(np.float32)
        value, ends = parameter.value.detach(), []
        for sign in (1, -1):
            moved = value.numpy() + sign * np.float32(2e-3) * direction
            parameter.set(burn.tensor(moved))
            ends.append(naive(layer, x.astype(np.float64), zero)[0].sum())
        parameter.set(value)
        slope = float(np.sum(grads[parameter].numpy() * direction))
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 4e-3, 5e-3, 5e-3)


def test_relu() -> None:
    layer = nn.RNN(INPUT, HIDDEN, nonlinearity="relu", bidirectional=True)
    y, _ = layer(burn.tensor(RNG.standard_normal((TIME, BATCH, INPUT), np.float32)))
    assert y.numpy().min() == 0.0
    with pytest.raises(ValueError, match="'gelu'"):
        nn.RNN(2, 2, nonlinearity="gelu")
