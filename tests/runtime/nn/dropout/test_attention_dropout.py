"""Dropout of the weights of attention, in training alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops

P = 0.25
HEADS, GROUPS, ROWS, COLUMNS, SIZE = 4, 2, 5, 7, 8


def operands(*, batch: int = 2, backend: Any = None) -> list[Any]:
    """Return a query, a key, a value and a mask."""
    rng = np.random.default_rng(0)
    shapes = (HEADS, ROWS), (GROUPS, COLUMNS), (GROUPS, COLUMNS)
    arrays = [rng.normal(size=(batch, *s, SIZE)).astype(np.float32) for s in shapes]
    mask = rng.random((ROWS, COLUMNS)) < 0.7
    mask[0] = False
    return [burn.tensor(x, backend) for x in (*arrays, mask)]


def training(**options: Any) -> nn.Attention:
    layer = nn.Attention(P, seed=3, **options)
    layer.to(Autodiff(Cpu()))
    return layer


OPTIONS: list[dict[str, Any]] = [
    {},
    {"scale": 0.5, "softcap": 2.0},
    {"causal": True, "window": (2, -1)},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("batch", [2, 0])
def test_inference_is_the_function(options: dict[str, Any], batch: int) -> None:
    given = operands(batch=batch)
    expected = ops.attention(*given, **options).numpy()
    for layer in (nn.Attention(P, **options), training(**options).valid()):
        np.testing.assert_array_equal(layer(*given).numpy(), expected)
        np.testing.assert_array_equal(burn.compile(layer)(*given).numpy(), expected)


@pytest.mark.parametrize("options", OPTIONS)
def test_dropped_weights_in_training(options: dict[str, Any]) -> None:
    """With values that are an identity, the result is the weights themselves."""
    query, key, _, mask = operands()
    value = burn.tensor(
        np.broadcast_to(np.eye(COLUMNS, dtype=np.float32), (2, 2, 7, 7))
    )
    layer, expected = training(**options), ops.attention_weights(
        query, key, mask, **options
    )
    results = np.stack([layer(query, key, value, mask).numpy() for _ in range(200)])
    weights = expected.numpy()
    kept = results != 0
    np.testing.assert_allclose(
        results[kept], np.broadcast_to(weights / (1 - P), kept.shape)[kept], rtol=1e-5
    )
    assert abs(kept[:, weights > 0].mean() - (1 - P)) < 0.01
    assert not kept[:, weights == 0].any()
    np.testing.assert_allclose(results.mean(0), weights, atol=0.12)


def test_gradients_are_those_of_the_kept_weights() -> None:
    """Fresh layers of one seed drop the same weights."""
    backend = Autodiff(Cpu())
    query, key, value, mask = operands(backend=backend)
    query, value = query.require_grad(), value.require_grad()
    result = training()(query, key, value, mask)
    factors = np.random.default_rng(5).normal(size=result.shape).astype(np.float32)
    grads = (result * burn.tensor(factors)).sum().backward()

    def total(query: Any, value: Any) -> float:
        out = training()(burn.tensor(query), key, burn.tensor(value), mask)
        return float((out.numpy().astype(np.float64) * factors).sum())

    x, v = query.numpy(), value.numpy()
    step = np.random.default_rng(6).normal(size=x.shape).astype(np.float32)
    slope = (total(x + 0.01 * step, v) - total(x - 0.01 * step, v)) / 0.02
    assert abs(slope) > 0.1
    np.testing.assert_allclose((grads[query].numpy() * step).sum(), slope, rtol=2e-3)
    linear = (grads[value].numpy() * v).sum()
    np.testing.assert_allclose(linear, total(x, v), rtol=1e-3)


def test_compiled_calls_drop_the_same_weights() -> None:
    eager, compiled = training(), training()
    step = burn.compile(compiled)
    results = [(eager(*operands()).numpy(), step(*operands()).numpy()) for _ in "123"]
    for one, other in results:
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert (results[1][0] != results[2][0]).any()


def test_operands_without_heads() -> None:
    query, key, value, mask = operands()
    given = query[:, 0], key[:, 0], value[:, 0], mask
    np.testing.assert_array_equal(
        nn.Attention(P)(*given).numpy(), ops.attention(*given).numpy()
    )
    result = training()(*given)
    assert result.shape == (2, ROWS, SIZE)
    masks = burn.tensor(np.broadcast_to(mask.numpy(), (2, ROWS, COLUMNS)))
    np.testing.assert_array_equal(training()(*given[:3], masks).numpy(), result.numpy())


def test_ratios() -> None:
    query, key, value, mask = operands()
    layer = nn.Attention(1.0)
    layer.to(Autodiff(Cpu()))
    assert not layer(query, key, value, mask).numpy().any()
    with pytest.raises(ValueError, match=r"expected p in \[0, 1\], got 1.5"):
        nn.Attention(1.5)
