"""Random operators: their distributions, and reproducibility by seed."""

from collections.abc import Callable
from math import erf, sqrt
from typing import Any

import numpy as np
import pytest

from burn import Tensor, dtypes
from burn.backend.cpu import Cpu
from burn_ir import RawGraph, RawModel, RawNode, Type, build, evaluate
from burn_ir.errors import ModelError
from burn_ir.graph import Graph
from burn_ir.ops.support import element_type
from tests.laws import models, oracle
from tests.strategies.registry import Array, Example

SHAPE = (20, 30, 50)


def graph_of(name: str, inputs: list[Array], attrs: dict[str, Any]) -> Graph:
    example = Example(attrs, inputs)
    return models.built(("", name), 22, example, stored=False)


def drawn(name: str, inputs: list[Array], **attrs: Any) -> Array:
    """Return random values of the operator."""
    example = Example(attrs, inputs)
    graph = graph_of(name, inputs, attrs)
    (y,) = evaluate(graph, models.operands(example, stored=False))
    array: Array = y.numpy()
    return array


def drawn_elsewhere(name: str, inputs: list[Array], **attrs: Any) -> Array:
    """Return random values of onnxruntime."""
    example = Example(attrs, inputs)
    model = models.onnx_model(("", name), 21, example, stored=False)
    actual = oracle.by_onnxruntime(model, models.by_name(example, stored=False))
    assert actual is not None
    return np.asarray(actual[0])


def distance(sample: Array, distribution: Callable[[Array], Array]) -> float:
    """Return the Kolmogorov-Smirnov statistic times the root of the sample size."""
    x = np.sort(sample.astype(np.float64).ravel())
    upto = distribution(x)
    step = np.arange(x.size + 1) / x.size
    gap = max(np.abs(upto - step[1:]).max(), np.abs(upto - step[:-1]).max())
    return float(gap * sqrt(x.size))


def between(low: float, high: float) -> Callable[[Array], Array]:
    return lambda x: np.clip((x - low) / (high - low), 0.0, 1.0)


def gaussian(mean: float, scale: float) -> Callable[[Array], Array]:
    root = np.vectorize(erf)
    return lambda x: 0.5 * (1.0 + root((x - mean) / (scale * sqrt(2.0))))


#: One in ten thousand samples from the distribution has a larger distance than this.
FAR = 2.23


@pytest.mark.parametrize("code", [1, 11])
@pytest.mark.parametrize("like", [False, True])
def test_uniform(like: bool, code: int) -> None:
    name = "RandomUniformLike" if like else "RandomUniform"
    inputs = [np.zeros(SHAPE, np.float32)] if like else []
    attrs = {"dtype": code, "low": -2.0, "high": 3.0} | (
        {} if like else {"shape": SHAPE}
    )
    x = drawn(name, inputs, **attrs)
    assert (x.shape, x.dtype) == (SHAPE, np.float32 if code == 1 else np.float64)
    assert -2.0 <= x.min() < -1.99
    assert 2.99 < x.max() < 3.0
    np.testing.assert_allclose([x.mean(), x.var()], [0.5, 25 / 12], atol=0.05)
    assert distance(x, between(-2.0, 3.0)) < FAR
    assert distance(x, between(-2.0, 3.1)) > FAR
    other = drawn_elsewhere(name, inputs, **attrs, seed=1.0)
    assert distance(other, between(-2.0, 3.0)) < FAR


@pytest.mark.parametrize("code", [1, 11])
@pytest.mark.parametrize("like", [False, True])
def test_normal(like: bool, code: int) -> None:
    name = "RandomNormalLike" if like else "RandomNormal"
    inputs = [np.zeros(SHAPE, np.float32)] if like else []
    attrs = {"dtype": code, "mean": 1.5, "scale": 0.5} | (
        {} if like else {"shape": SHAPE}
    )
    x = drawn(name, inputs, **attrs)
    assert (x.shape, x.dtype) == (SHAPE, np.float32 if code == 1 else np.float64)
    np.testing.assert_allclose([x.mean(), x.std()], [1.5, 0.5], atol=0.01)
    assert distance(x, gaussian(1.5, 0.5)) < FAR
    assert distance(x, gaussian(1.5, 0.55)) > FAR
    other = drawn_elsewhere(name, inputs, **attrs, seed=1.0)
    assert distance(other, gaussian(1.5, 0.5)) < FAR


@pytest.mark.parametrize("code", [1, 6, 9, 11])
def test_bernoulli(code: int) -> None:
    p = np.broadcast_to(np.linspace(0, 1, 5, dtype=np.float32), (300, 40, 5))
    x = drawn("Bernoulli", [np.ascontiguousarray(p)], dtype=code)
    assert x.dtype == element_type(code)
    assert set(np.unique(x).tolist()) == {0, 1}
    np.testing.assert_allclose(x.mean((0, 1)), p[0, 0], atol=0.015)
    assert np.all(x[..., 0] == 0)
    assert np.all(x[..., -1] == 1)


@pytest.mark.parametrize("code", [6, 7])
def test_multinomial(code: int) -> None:
    logits = np.array([[0.0, 1.0, -np.inf, 2.0], [3.0, 0.0, 0.0, -1.0]], np.float32)
    x = drawn("Multinomial", [logits + 100], sample_size=20000, dtype=code)
    assert (x.shape, x.dtype) == ((2, 20000), np.int32 if code == 6 else np.int64)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    counts = np.stack([np.bincount(row, minlength=4) for row in x]) / 20000
    np.testing.assert_allclose(counts, expected, atol=0.015)
    assert np.all(counts[0, 2] == 0)
    other = drawn_elsewhere(
        "Multinomial", [logits[1:]], sample_size=20000, dtype=code, seed=1.0
    )
    elsewhere = np.bincount(other[0], minlength=4) / 20000
    np.testing.assert_allclose(elsewhere, expected[1], atol=0.015)


def test_a_seed_repeats_and_another_differs() -> None:
    for name in ("RandomUniform", "RandomNormal"):
        first, again, other, part = (
            drawn(name, [], shape=SHAPE, seed=seed) for seed in (3.0, 3.0, 4.0, 3.5)
        )
        np.testing.assert_array_equal(first, again)
        assert np.mean(first == other) < 1e-3
        assert np.mean(first == part) < 1e-3


def test_what_cannot_be_drawn_is_refused() -> None:
    integers = np.zeros((2, 3), np.int64)
    refused: list[tuple[str, list[Array], dict[str, Any], str]] = [
        ("RandomNormalLike", [integers], {}, "got int64"),
        ("RandomUniform", [], {"shape": (2,), "dtype": 7}, "got int64"),
        ("RandomNormal", [], {"shape": (2, -1)}, "0 or more"),
        ("Multinomial", [np.zeros((2, 3, 4), np.float32)], {}, "logits"),
        ("Multinomial", [np.zeros((2, 3), np.float32)], {"dtype": 1}, "got float32"),
    ]
    for name, inputs, attrs, message in refused:
        with pytest.raises(ModelError, match=message):
            graph_of(name, inputs, attrs)


def training(version: int, attrs: dict[str, Any], **operands: Array) -> Graph:
    """Return a graph of Dropout with all operands but the data stored."""
    names = ("x", *operands)
    node = RawNode("Dropout", "", attrs, names, ("y", "mask"), "node")
    inputs = {"x": Type(dtypes.float32, SHAPE)}
    graph = RawGraph("main", inputs, ("y", "mask"), (node,), operands)
    return build(RawModel(graph, {"": version}))


@pytest.mark.parametrize(
    ("version", "attrs", "operands"),
    [
        (1, {"ratio": 0.3}, {}),
        (6, {"ratio": 0.3, "is_test": 0}, {}),
        (13, {}, {"r": np.array(0.3, np.float32), "t": np.array(True)}),
        (22, {"seed": 3}, {"r": np.array(0.3, np.float32), "t": np.array(True)}),
    ],
)
def test_dropout_in_training(
    version: int, attrs: dict[str, Any], operands: dict[str, Array]
) -> None:
    graph = training(version, attrs, **operands)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    y, mask = (t.numpy() for t in evaluate(graph, [Tensor(x, Cpu())]))
    assert mask.dtype == (np.float32 if version < 10 else np.bool_)
    np.testing.assert_allclose(mask.mean(), 0.7, atol=0.01)
    np.testing.assert_allclose(y, x * mask / 0.7, rtol=1e-5)


@pytest.mark.parametrize("version", [7, 10])
def test_dropout_of_versions_that_cannot_be_told_to_train(version: int) -> None:
    graph = training(version, {"ratio": 0.3})
    x = np.ones(SHAPE, np.float32)
    y, mask = (t.numpy() for t in evaluate(graph, [Tensor(x, Cpu())]))
    assert mask.dtype == (np.float32 if version < 10 else np.bool_)
    np.testing.assert_array_equal(y, x)
    assert np.all(mask == 1)
