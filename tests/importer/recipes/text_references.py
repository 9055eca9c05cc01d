"""Networks of text in NumPy and float64, by the keys of their weights."""

from collections.abc import Iterable, Mapping
from math import erf
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn_import import load
from tests.importer.recipes.test_recipes import saved
from tests.modules import Array

Shapes = dict[str, tuple[int, ...]]


class ReferenceWeights:
    """Weights by key, below a prefix, and the layers that use them."""

    def __init__(self, weights: Mapping[str, Array], prefix: str = "") -> None:
        self.weights = weights
        self.prefix = prefix

    def at(self, name: str) -> "ReferenceWeights":
        """Return the child ``name``."""
        return ReferenceWeights(self.weights, f"{self.prefix}{name}.")

    def get(self, name: str) -> Array:
        """Return a weight."""
        return self.weights[self.prefix + name].astype(np.float64)

    def has(self, name: str) -> bool:
        """Return whether there is this weight."""
        return self.prefix + name in self.weights

    def linear(self, name: str, x: Array) -> Array:
        """Return the result of a linear layer."""
        out = x @ self.get(f"{name}.weight").T
        return out + self.get(f"{name}.bias") if self.has(f"{name}.bias") else out

    def norm(self, name: str, x: Array, eps: float) -> Array:
        """Return the result of a layer norm."""
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return x * self.get(f"{name}.weight") + self.get(f"{name}.bias")

    def rms(self, name: str, x: Array, eps: float, plus: float = 0.0) -> Array:
        """Return the result of an RMS norm."""
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return x * (self.get(f"{name}.weight") + plus)


def attend(
    parts: Iterable[Array],
    count: int,
    mask: Array | None = None,
    scale: float | None = None,
    bound: float = 0.0,
) -> Array:
    """Return attention of a query, a key and a value in ``count`` heads.

    ``mask`` is bool, or a term to add; ``bound`` is the soft cap of the scores.
    """
    q, k, v = (x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2) for x in parts)
    size = q.shape[-1]
    result = q @ k.swapaxes(-1, -2) * (size**-0.5 if scale is None else scale)
    if bound:
        result = np.tanh(result / bound) * bound
    if mask is not None:
        result = np.where(mask, result, -1e30) if mask.dtype == bool else result + mask
    result = np.exp(result - result.max(-1, keepdims=True))
    result = result / result.sum(-1, keepdims=True)
    return np.concatenate(list(np.moveaxis(result @ v, 1, 0)), -1)


def visible(mask: Array, causal: bool = False) -> Array:
    """Return the bool mask ``[batch, 1, rows, columns]``."""
    length = mask.shape[1]
    order = np.tril(np.ones((length, length), bool)) if causal else np.True_
    return np.asarray((mask[:, None, None, :] != 0) & order)


def gelu(x: Array) -> Array:
    """Return GELU by the error function."""
    return np.asarray(x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))))


def gelu_tanh(x: Array) -> Array:
    """Return GELU with the tanh approximation."""
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


def drawn(shapes: Shapes, seed: int = 7) -> dict[str, Array]:
    """Return random weights of these shapes; norms are near their initial values."""
    rng = np.random.default_rng(seed)
    return {
        key: np.asarray(rng.normal(size=shape) * 0.4, np.float32)
        for key, shape in shapes.items()
    }


def linear(name: str, size: int, out: int, bias: bool = True) -> Shapes:
    """Return the shapes of a linear layer."""
    shapes: Shapes = {f"{name}.weight": (out, size)}
    return shapes | {f"{name}.bias": (out,)} if bias else shapes


def norm(name: str, size: int, bias: bool = True) -> Shapes:
    """Return the shapes of a norm."""
    shapes: Shapes = {f"{name}.weight": (size,)}
    return shapes | {f"{name}.bias": (size,)} if bias else shapes


def tokens(batch: int, length: int, padding: int) -> tuple[Array, Array]:
    """Return tokens and their mask, with ``padding`` at the end of the last row.

    There are 30 tokens; the first three are reserved for padding and the like.
    """
    rng = np.random.default_rng(length)
    ids = rng.integers(3, 30, (batch, length))
    mask = np.ones_like(ids)
    ids[-1, -2:], mask[-1, -2:] = padding % 30, 0
    return ids, mask


def results(model: Any, *inputs: Array) -> list[Array]:
    """Return the outputs of a model."""
    result = model(*map(burn.tensor, inputs))
    return [x.numpy() for x in (result if isinstance(result, tuple) else (result,))]


def close(actual: Array, expected: Array) -> None:
    """Return if both are equal up to rounding."""
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=1e-5)


def loaded(
    folder: Path,
    weights: dict[str, Array],
    stored: dict[str, Array] | None = None,
    **config: Any,
) -> Any:
    """Return the model of weights, which has them, or those that are ``stored``."""
    model: Any = load(saved(folder, weights, **config))
    actual = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    for key, array in (weights if stored is None else stored).items():
        np.testing.assert_array_equal(actual[key], array, err_msg=key)
    return model
