"""Dropout: when it acts, what it keeps, and that it can be repeated."""

import numpy as np
import pytest

import burn
from burn import nn, ops

X = np.random.default_rng(1).standard_normal((30, 20, 50)).astype(np.float32)
TRAINING = burn.Autodiff(burn.Cpu())


def test_it_acts_in_training_only() -> None:
    layer = nn.Dropout(0.4, seed=3)
    x = burn.tensor(X)
    assert layer(x) is x
    assert list(layer.boxes()) == []
    layer.to(TRAINING)
    y = layer(x).numpy()
    kept = y != 0
    np.testing.assert_allclose(kept.mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(y[kept], X[kept] / 0.6, rtol=1e-5)
    assert layer.valid()(x) is x


def test_masks_differ_from_call_to_call_and_repeat_with_the_seed() -> None:
    first, second = nn.Dropout(seed=3).to(TRAINING), nn.Dropout(seed=3).to(TRAINING)
    x = burn.tensor(X)
    masks = [first(x).numpy() for _ in range(2)]
    assert np.any((masks[0] == 0) != (masks[1] == 0))
    for mask in masks:
        np.testing.assert_array_equal(second(x).numpy(), mask)
    other = nn.Dropout(seed=4).to(TRAINING)(x).numpy()
    assert np.any(other != masks[0])


def test_seeds_follow_the_sequence_of_the_module() -> None:
    outs = []
    for _ in range(2):
        nn.init.seed(12)
        pair = [nn.Dropout().to(TRAINING)(burn.tensor(X)).numpy() for _ in range(2)]
        assert np.any(pair[0] != pair[1])
        outs.append(pair)
    np.testing.assert_array_equal(outs[0], outs[1])


def test_gradient_has_the_mask_of_the_forward_pass() -> None:
    layer = nn.Dropout(0.25, seed=5).to(TRAINING)
    x = burn.tensor(X, TRAINING).require_grad()
    y = layer(x)
    grads = ops.sum(y).backward()
    expected = (y.numpy() != 0) / np.float32(0.75)
    np.testing.assert_allclose(grads[x].numpy(), expected, rtol=1e-6)


def test_extremes() -> None:
    x = burn.tensor(X)
    assert nn.Dropout(0.0).to(TRAINING)(x) is x
    assert not np.any(nn.Dropout(1.0).to(TRAINING)(x).numpy())
    with pytest.raises(ValueError, match="1.5"):
        nn.Dropout(1.5)
