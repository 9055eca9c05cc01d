"""Dropout between the layers of a recurrent stack, in training alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn

P = 0.3
KINDS: dict[str, dict[str, Any]] = {
    "LSTM": {"batch_first": True, "bidirectional": True},
    "GRU": {},
    "RNN": {"nonlinearity": "relu"},
}


def layers(
    kind: str, dropout: float, *, training: bool = False, layers: int = 2
) -> Any:
    """Return a stack with the weights of a seed, whatever its dropout."""
    module = getattr(nn, kind)(4, 64, layers, dropout=dropout, **KINDS[kind])
    rng = np.random.default_rng(0)
    state = {
        key: rng.uniform(-0.4, 0.4, x.shape).astype(np.float32)
        for key, x in module.state_dict().items()
    }
    module.load_state_dict(state)
    if module.dropout is not None:
        module.dropout = nn.Dropout(dropout, seed=5)
    return module.to(Autodiff(Cpu())) if training else module


def example(*shape: int) -> Any:
    return burn.tensor(np.random.default_rng(1).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [3, 1, 0])
def test_inference_has_no_dropout(kind: str, batch: int) -> None:
    x = example(batch, 5, 4) if kind == "LSTM" else example(5, batch, 4)
    expected = layers(kind, 0.0)(x)[0].numpy()
    dropped = layers(kind, P)
    assert set(dropped.state_dict()) == set(layers(kind, 0.0).state_dict())
    np.testing.assert_array_equal(dropped(x)[0].numpy(), expected)
    np.testing.assert_array_equal(burn.compile(dropped)(x)[0].numpy(), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_lower_layers_are_dropped_in_training(kind: str) -> None:
    """The upper layer is given the outputs of the lower one after the same dropout."""
    x = example(3, 5, 4) if kind == "LSTM" else example(5, 3, 4)
    stack = layers(kind, P, training=True)
    lower, upper = layers(kind, 0.0, layers=1), layers(kind, 0.0)
    one = {k: v for k, v in upper.state_dict().items() if "_l0" in k}
    lower.load_state_dict(one)
    y = lower(x)[0]
    y = y.transpose(0, 1) if kind == "LSTM" else y
    drop = nn.Dropout(P, seed=5)
    drop.to(Autodiff(Cpu()))
    dropped = drop(y).numpy()
    assert abs((dropped == 0).mean() - P) < 0.2 or kind == "RNN"
    top = getattr(nn, kind)(y.shape[-1], 64, 1, **KINDS[kind])
    state = upper.state_dict()
    top.load_state_dict(
        {key.replace("_l1", "_l0"): x for key, x in state.items() if "_l1" in key}
    )
    y = burn.tensor(dropped)
    y = y.transpose(0, 1) if kind == "LSTM" else y
    np.testing.assert_allclose(
        stack(x)[0].numpy(), top(y)[0].numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_and_compiled_calls(kind: str) -> None:
    x = example(3, 5, 4) if kind == "LSTM" else example(5, 3, 4)
    eager, compiled = (layers(kind, P, training=True) for _ in range(2))
    step = burn.compile(compiled)
    for _ in range(3):
        one, other = eager(x)[0], step(x)[0]
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    weight = dict(eager.parameters())["weight_hh_l0"]
    gradient = (eager(x)[0] ** 2).sum().backward()[weight]
    assert np.abs(gradient.numpy()).max() > 0


def test_one_layer_has_no_dropout_and_draws_no_state() -> None:
    assert nn.LSTM(3, 4, dropout=0.5).dropout is None
    assert nn.GRU(3, 4, 2).dropout is None
    assert "dropout=0.25" in nn.GRU(3, 4, 2, dropout=0.25).describe()
    with pytest.raises(ValueError, match="expected p in"):
        nn.LSTM(3, 4, 2, dropout=1.5)
