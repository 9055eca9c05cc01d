"""Layers that draw: shapes, dtypes, and which calls repeat which."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn
from burn.dtypes import bool_, float16, float64, int64

X = np.random.default_rng(1).standard_normal((30, 20, 50)).astype(np.float32)
TRAINING = burn.Autodiff(burn.Cpu())

LAYERS: list[tuple[Callable[..., Any], list[Any]]] = [
    (lambda **s: nn.RandomNormal((30, 20, 50), 1.0, 2.0, **s), []),
    (lambda **s: nn.RandomUniform((30, 20, 50), -1.0, 2.0, **s), []),
    (lambda **s: nn.RandomNormalLike(**s), [X]),
    (lambda **s: nn.RandomUniformLike(dtype=float64, **s), [X]),
    (lambda **s: nn.Bernoulli(dtype=bool_, **s), [np.abs(np.tanh(X))]),
    (lambda **s: nn.Multinomial(40, dtype=int64, **s), [X[0]]),
    (lambda **s: nn.DynamicDropout(0.3, **s), [X]),
]


def calls(
    layer: Any, operands: list[Any], count: int = 2
) -> list[np.ndarray[Any, Any]]:
    return [layer(*map(burn.tensor, operands)).numpy() for _ in range(count)]


@pytest.mark.parametrize(("make", "operands"), LAYERS)
def test_calls_go_on_and_a_seed_repeats_them(
    make: Callable[..., Any], operands: list[Any]
) -> None:
    layer = make(seed=3)
    assert list(layer.boxes()) == []
    first, second = calls(layer, operands)
    assert np.any(first != second)
    np.testing.assert_array_equal(calls(make(seed=3), operands), [first, second])
    assert np.any(calls(make(seed=4), operands)[0] != first)


@pytest.mark.parametrize(("make", "operands"), LAYERS)
def test_without_a_seed_layers_differ_and_a_program_repeats(
    make: Callable[..., Any], operands: list[Any]
) -> None:
    runs = []
    for _ in range(2):
        nn.init.seed(12)
        pair = [calls(make(), operands, 1)[0] for _ in range(2)]
        assert np.any(pair[0] != pair[1])
        runs.append(pair)
    np.testing.assert_array_equal(runs[0], runs[1])


def test_shapes_and_dtypes() -> None:
    x = burn.tensor(X.astype(np.float16))
    assert nn.RandomNormal((2, 0, 3), dtype=float64)().dtype == float64
    assert nn.RandomNormal((2, 0, 3))().shape == (2, 0, 3)
    assert nn.RandomNormalLike()(x).dtype == float16
    assert nn.RandomUniformLike(dtype=float64)(x).dtype == float64
    assert nn.Bernoulli()(burn.tensor(np.ones((3, 4), np.float64))).dtype == float64
    drawn = nn.Multinomial(5)(burn.tensor(X[0]))
    assert (drawn.shape, drawn.dtype) == ((20, 5), burn.int32)


def test_dropout_that_is_told_when_to_act() -> None:
    layer = nn.DynamicDropout(0.4, mask=True, seed=1)
    x = burn.tensor(X)
    y, mask = layer(x)
    np.testing.assert_allclose(mask.numpy().mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(y.numpy(), X * mask.numpy() / 0.6, rtol=1e-5)
    for message in (False, burn.tensor(np.array(False))):
        y, mask = layer(x, message)
        np.testing.assert_array_equal(y.numpy(), X)
        assert mask.numpy().all()
    y, mask = layer(x, burn.tensor(np.array(True)), burn.tensor(np.float32(0.9)))
    np.testing.assert_allclose(mask.numpy().mean(), 0.1, atol=0.01)
    y, mask = layer(x, True, burn.tensor(np.float32(1.0)))
    assert not np.any(y.numpy())
    assert not np.any(mask.numpy())


def test_gradient_of_dropout_has_the_mask_of_the_forward_pass() -> None:
    layer = nn.DynamicDropout(0.25, seed=5).to(TRAINING)
    x = burn.tensor(X, TRAINING).require_grad()
    y: Tensor = layer(x)
    expected = (y.numpy() != 0) / np.float32(0.75)
    grads = y.sum().backward()
    np.testing.assert_allclose(grads[x].numpy(), expected, rtol=1e-6)


def test_first_values_are_those_of_spawned_seeds() -> None:
    nn.init.seed(7)
    layers = [nn.init.normal((3,)) for _ in range(3)]
    children = np.random.SeedSequence(7).spawn(3)
    for layer, child in list(zip(layers, children, strict=True))[::-1]:
        expected = np.random.default_rng(child).normal(0.0, 1.0, (3,))
        for _ in range(2):  # drawn anew, the values are the same
            actual = layer.make().numpy()
            np.testing.assert_array_equal(actual, expected.astype(np.float32))


def test_separate_seeds_take_none_of_the_others() -> None:
    nn.init.seed(3)
    expected = [nn.init.generator().integers(100) for _ in range(2)]
    nn.init.seed(3)
    actual = [nn.init.generator().integers(100)]
    with nn.init.separate_seeds():
        nn.init.generator()
    actual.append(nn.init.generator().integers(100))
    assert actual == expected
