"""Recurrent cells: the same as layers that run one step, with PyTorch's names."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops

RNG = np.random.default_rng(23)
BATCH, INPUT, HIDDEN = 3, 5, 2
LAYERS: Any = {nn.LSTMCell: nn.LSTM, nn.GRUCell: nn.GRU, nn.RNNCell: nn.RNN}
KINDS = list(LAYERS)


def normal(*shape: int) -> Any:
    return burn.tensor(RNG.standard_normal(shape).astype(np.float32))


def same_layer(cell: Any, **options: Any) -> Any:
    """The layer of one step that has the cell's weights."""
    layer = LAYERS[type(cell)](INPUT, HIDDEN, bias=cell.bias_ih is not None, **options)
    layer.load_state_dict({f"{k}_l0": v for k, v in cell.state_dict().items()})
    return layer


def step(cell: Any, x: Any, states: list[Any]) -> list[Any]:
    """The states after one step of a cell."""
    if isinstance(cell, nn.LSTMCell):
        return list(cell(x, tuple(states) if states else None))
    return [cell(x, *states)]


def layer_step(layer: Any, x: Any, states: list[Any]) -> list[Any]:
    """The last states of a layer after a sequence of one."""
    given = [state.unsqueeze(0) for state in states]
    if isinstance(layer, nn.LSTM):
        return [s.squeeze(0) for s in layer(x, tuple(given) if given else None)[1]]
    return [layer(x, *given)[1].squeeze(0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_a_cell_is_a_layer_of_one_step(kind: Any, bias: bool, given: bool) -> None:
    cell = kind(INPUT, HIDDEN, bias=bias)
    count = (2 if kind is nn.LSTMCell else 1) * given
    x, states = normal(BATCH, INPUT), [normal(BATCH, HIDDEN) for _ in range(count)]
    expected = layer_step(same_layer(cell), x.unsqueeze(0), states)
    for got, want in zip(step(cell, x, states), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_relu() -> None:
    cell = nn.RNNCell(INPUT, HIDDEN, nonlinearity="relu")
    x = normal(BATCH, INPUT)
    (expected,) = layer_step(same_layer(cell, nonlinearity="relu"), x.unsqueeze(0), [])
    np.testing.assert_allclose(cell(x).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="tanh or relu, got 'gelu'"):
        nn.RNNCell(2, 2, nonlinearity="gelu")


def test_names_and_shapes_are_those_of_pytorch() -> None:
    shapes = {path: box.shape for path, box in nn.LSTMCell(INPUT, HIDDEN).boxes()}
    assert shapes == {
        "weight_ih": (4 * HIDDEN, INPUT),
        "weight_hh": (4 * HIDDEN, HIDDEN),
        "bias_ih": (4 * HIDDEN,),
        "bias_hh": (4 * HIDDEN,),
    }
    assert [path for path, _ in nn.GRUCell(3, 2, bias=False).boxes()] == [
        "weight_ih",
        "weight_hh",
    ]
    assert repr(nn.GRUCell(3, 2, bias=False)) == "GRUCell(3, 2, bias=False)"


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_layer(kind: Any) -> None:
    cell, x = kind(INPUT, HIDDEN), normal(BATCH, INPUT)
    layer = same_layer(cell)
    cell.to(burn.Autodiff(burn.Cpu()))
    layer.to(burn.Autodiff(burn.Cpu()))
    found = ops.sum(step(cell, x, [])[0]).backward()
    expected = ops.sum(layer_step(layer, x.unsqueeze(0), [])[0]).backward()
    parameters = dict(layer.parameters())
    for name, parameter in cell.parameters():
        want = expected[parameters[f"{name}_l0"]].numpy()
        np.testing.assert_allclose(found[parameter].numpy(), want, rtol=1e-4, atol=1e-5)
