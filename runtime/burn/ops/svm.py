"""Support vector machines: kernels, pairwise voting, probabilities."""

from typing import Any

import numpy as np

from burn.ops.activation import tanh
from burn.ops.elementwise import exp, pow
from burn.ops.matmul import linear, matmul
from burn.ops.reduction import sum as sum_
from burn.ops.shape import transpose
from burn.ops.support import Array, contract, namespace
from burn.primitive import composite, primitive

#: The maximum number of differences in memory.
_BLOCK = 1 << 22
#: The most rounds, and the largest error for each class, of coupled probabilities.
_ROUNDS, _TOLERANCE = 100, 0.005


@primitive
def squared_distance(x: Array, y: Array) -> Array:
    """Return the squared distances of the rows of ``x`` [n, f] from those of ``y``."""
    xp = namespace(x)
    out = xp.empty((len(x), len(y)), np.result_type(x, y))
    step = max(1, _BLOCK // max(1, y.size))
    for start in range(0, len(x), step):
        apart = x[start : start + step, None] - y
        out[start : start + step] = contract("nmf,nmf->nm", apart, apart)
    return out


@squared_distance.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    def toward(grad: Any, x: Any, y: Any) -> Any:
        return (x * sum_(grad, 1, keepdims=True) - matmul(grad, y)) * 2.0

    return lambda: toward(grad, x, y), lambda: toward(transpose(grad, 0, 1), y, x)


@composite(outputs=1)
def svm_kernel(
    x: Array,
    vectors: Array,
    *,
    kernel: str = "linear",
    gamma: float = 1.0,
    coef0: float = 0.0,
    degree: float = 3.0,
) -> Any:
    """Return the kernel of the rows of ``x`` [n, f] and ``vectors`` [m, f]: [n, m].

    ``kernel`` is "linear" (the product p), "poly" (``(gamma * p + coef0) ** degree``),
    "sigmoid" (``tanh(gamma * p + coef0)``) or "rbf" (``exp(-gamma * distance ** 2)``).
    """
    if kernel == "rbf":
        return exp(squared_distance(x, vectors) * -gamma)
    product = linear(x, vectors)
    if kernel == "linear":
        return product
    scaled = product * gamma + coef0
    return tanh(scaled) if kernel == "sigmoid" else pow(scaled, degree)


@primitive(no_gradient="the results are integers")
def pairwise_votes(decisions: Array, *, classes: int) -> Array:
    """Return how many pairs each class wins: int64 [samples, classes].

    ``decisions`` [samples, pairs] are above 0 where the first of a pair wins; the pairs
    are (0, 1), (0, 2), ..., (1, 2), ...
    """
    xp = namespace(decisions)
    out = xp.zeros((len(decisions), classes), np.int64)
    wins = decisions > 0
    for pair, (i, j) in enumerate(zip(*np.triu_indices(classes, 1), strict=True)):
        out[:, i] += wins[:, pair]
        out[:, j] += ~wins[:, pair]
    return out


@primitive(no_gradient="an iteration ends where a limit is passed")
def pairwise_probabilities(decisions: Array, a: Array, b: Array) -> Array:
    """Return probabilities [samples, classes] from decisions [samples, pairs].

    Each pair's decision s gives ``1 / (1 + exp(a * s + b))`` for its first class (Platt
    scaling); the probabilities that fit all pairs best are found by the iteration of
    Wu, Lin and Weng, "Probability Estimates for Multi-class Classification" (2004).
    """
    xp = namespace(decisions)
    classes = int((1 + (1 + 8 * decisions.shape[1]) ** 0.5) / 2)
    first, second = np.triu_indices(classes, 1)
    wins = 0.5 - 0.5 * xp.tanh((decisions * a + b).astype(np.float64) / 2)
    wins = xp.clip(wins, 1e-7, 1 - 1e-7)
    beats = xp.zeros((len(decisions), classes, classes))
    beats[:, first, second] = wins
    beats[:, second, first] = 1 - wins
    return _coupled(beats).astype(decisions.dtype)


def _coupled(beats: Array) -> Array:
    """Return class probabilities; ``beats[:, i, j]`` is that of i against j."""
    xp = namespace(beats)
    count, classes = beats.shape[:2]
    matrix = -xp.swapaxes(beats, 1, 2) * beats
    diagonal = np.arange(classes)
    matrix[:, diagonal, diagonal] = (beats**2).sum(1)
    out = xp.full((count, classes), 1.0 / classes)
    active = xp.arange(count)
    for _ in range(_ROUNDS):
        matrices, p = matrix[active], out[active]
        slope = contract("nij,nj->ni", matrices, p)
        level = (p * slope).sum(1)
        off = (xp.abs(slope - level[:, None]) >= _TOLERANCE / classes).any(1)
        if not bool(off.any()):
            break
        active = active[off]
        out[active] = _round(matrices[off], p[off], slope[off], level[off])
    return out


def _round(matrix: Array, p: Array, slope: Array, level: Array) -> Array:
    """Return ``p`` after one coordinate descent step for each class."""
    for i in range(p.shape[1]):
        own = matrix[:, i, i]
        step = (level - slope[:, i]) / own
        grown = 1 + step
        p[:, i] += step
        level = (level + step * (step * own + 2 * slope[:, i])) / grown**2
        slope = (slope + step[:, None] * matrix[:, i]) / grown[:, None]
        p /= grown[:, None]
    return p
