"""Counter-based random numbers: equal states give equal numbers.

A state is a uint64 tensor ``[key, counter]``. Every function returns the next state, so
there is no hidden generator and replays are exact.
"""

import math
from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.casting import cast
from burn.ops.elementwise import reciprocal
from burn.ops.logic import greater_equal, less, logical_not, logical_or, where
from burn.ops.support import Array, accumulate, integers, namespace
from burn.primitive import composite, primitive

# Philox4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
_MULTIPLIERS = np.array([[0xCD9E8D57], [0xD2511F53]], np.uint64)
_WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)
_ROUNDS = 10
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox4x32(counter: Array, key: tuple[int, int]) -> Array:
    """Return random 32-bit words [4, n] for the words ``counter`` [4, n], in uint64.

    The words of even and those of odd rows are computed together.
    """
    xp = namespace(counter)
    even, odd = counter[0::2], counter[1::2]
    multipliers = xp.asarray(_MULTIPLIERS)
    for round_key in xp.asarray(_round_keys(key)):
        products = even[::-1] * multipliers
        even = products >> _HALF
        even ^= odd
        even ^= round_key
        odd = products
        odd &= _LOW
    return xp.stack([even, odd], axis=1).reshape(counter.shape)


def _round_keys(key: tuple[int, int]) -> Array:
    """Return the keys of all rounds, [rounds, 2, 1]."""
    first = np.array(key, np.uint64).reshape(2, 1)
    rounds = np.arange(_ROUNDS, dtype=np.uint64).reshape(-1, 1, 1)
    keys: Array = (first + rounds * _WEYL) & _LOW
    return keys


def _words(state: Array, count: int) -> tuple[Array, Array]:
    """Return ``count`` random 32-bit words as uint64, and the next state."""
    xp = namespace(state)
    key, start = (int(part) for part in state.tolist())
    blocks = -(-count // 4)
    block = xp.arange(blocks, dtype=np.uint64) + np.uint64(start)
    counter = xp.zeros((4, blocks), np.uint64)
    counter[0], counter[1] = block & _LOW, block >> _HALF
    words = philox4x32(counter, (key & 0xFFFFFFFF, key >> 32)).T
    after = xp.asarray([key, (start + blocks) % 2**64], np.uint64)
    return words.reshape(-1)[:count], after


def _uniform(state: Array, count: int, dtype: DType) -> tuple[Array, Array]:
    """Return ``count`` numbers in [0, 1), of 24 random bits, or 53 for float64."""
    if dtype == dtypes.float64:
        words, after = _words(state, 2 * count)
        bits = (words[0::2] >> np.uint64(5)) << np.uint64(26)
        bits = bits | (words[1::2] >> np.uint64(6))
        return bits.astype(np.float64) * 2.0**-53, after
    words, after = _words(state, count)
    return (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24), after


@primitive(outputs=2, no_gradient="a random number depends on nothing")
def uniform(
    state: Array,
    shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DType = dtypes.float32,
) -> tuple[Array, Array]:
    """Return uniformly distributed numbers in [low, high), and the next state."""
    extents = integers(shape)
    unit, after = _uniform(state, math.prod(extents), dtype)
    return (unit * (high - low) + low).reshape(extents).astype(dtype), after


@primitive(outputs=2, no_gradient="a random number depends on nothing")
def normal(
    state: Array,
    shape: Any,
    mean: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DType = dtypes.float32,
) -> tuple[Array, Array]:
    """Return normally distributed numbers, and the next state.

    By the Box-Muller method, two numbers from two.
    """
    extents = integers(shape)
    count = math.prod(extents)
    half = -(-count // 2)
    xp = namespace(state)
    unit, after = _uniform(state, 2 * half, dtype)
    radius = xp.sqrt(-2.0 * xp.log1p(-unit[:half]))
    angle = (2.0 * math.pi) * unit[half:]
    pairs = xp.concatenate([radius * xp.cos(angle), radius * xp.sin(angle)])[:count]
    return (pairs * scale + mean).reshape(extents).astype(dtype), after


@composite(outputs=2)
def bernoulli(state: Any, p: Array, *, dtype: DType | None = None) -> Any:
    """Return 1 with the probabilities ``p``, else 0, and the next state.

    The result has the dtype of ``p`` unless another is given.
    """
    u, after = uniform(state, p.shape)
    return cast(u < p, dtype=dtype or p.dtype), after


@primitive(outputs=2, removable=True, memory_bound=True)
def dropout(x: Array, state: Array, *, p: float = 0.5) -> tuple[Array, Array]:
    """Return ``x`` with each element zeroed with probability ``p``, and the next state.

    Other elements are divided by ``1 - p``, which preserves the expectation.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"expected p in [0, 1], got {p}")
    unit, after = _uniform(state, x.size, dtypes.float32)
    mask = (unit >= p).reshape(x.shape)
    factor = mask * np.float32(1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return x * factor.astype(x.dtype), after


@dropout.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, state: Any, *, p: float = 0.5) -> Any:
    # The same state gives the same mask: nothing needs to be kept for this.
    return lambda: dropout(grad[0], state, p=p)[0]


@primitive(outputs=2, no_gradient="the results are integers")
def multinomial(
    state: Array, logits: Array, samples: Any, *, dtype: DType = dtypes.int32
) -> tuple[Array, Array]:
    """Return ``samples`` classes for each row of ``logits`` [N, C], and the next state.

    The probabilities are the softmax of a row; the result is [N, samples].
    """
    xp, (count,) = namespace(logits), integers(samples)
    rows, classes = logits.shape
    work = accumulate(logits).astype(np.float64)
    weights = xp.exp(work - xp.max(work, axis=1, keepdims=True))
    upto = xp.cumsum(weights, axis=1)
    unit, after = _uniform(state, rows * count, dtypes.float64)
    # One search for all rows: those of row i lie between i and i + 1.
    shift = xp.arange(rows, dtype=np.float64)[:, None]
    places = (xp.asarray(unit).reshape(rows, count) + shift).ravel()
    indices = xp.searchsorted((upto / upto[:, -1:] + shift).ravel(), places, "right")
    drawn = indices.reshape(rows, count) - shift.astype(np.int64) * classes
    return xp.clip(drawn, 0, classes - 1).astype(dtype), after


@composite(outputs=3)
def dropout_with_mask(
    x: Any, state: Any, ratio: Any = 0.5, training: Any = True
) -> Any:
    """Return :func:`dropout` as ``(y, mask, next state)``.

    ``ratio`` and ``training`` may be tensors of one element; without training, ``x`` is
    unchanged.
    """
    unit, after = uniform(state, x.shape)
    mask = logical_or(greater_equal(unit, ratio), logical_not(training))
    # With a ratio of 1 nothing is kept: no infinity need be multiplied with 0.
    rest = where(less(ratio, 1.0), 1.0 - ratio, 1.0)
    scale = where(training, reciprocal(rest), 1.0)
    return where(mask, x * cast(scale, dtype=x.dtype), 0.0), mask, after


@primitive(outputs=2, memory_bound=True)
def dropout_by_seed(
    x: Array, ratio: Any = 0.5, training: Any = True, *, seed: int
) -> tuple[Array, Array]:
    """Return :func:`dropout` with the mask that ONNX's reference draws from ``seed``.

    Every call restarts the Mersenne Twister of NumPy's ``RandomState`` from the seed.
    The results are ``(y, mask)``.
    """
    xp, p = namespace(x), float(ratio)
    if not bool(training):
        return x, xp.ones(x.shape, bool)
    drawn = np.random.RandomState(seed % 2**32).uniform(0.0, 1.0, x.shape)
    mask = xp.asarray(drawn >= p)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    work = accumulate(x)
    out = xp.where(mask, work, 0) * work.dtype.type(scale)
    return out.astype(x.dtype, copy=False), mask


@dropout_by_seed.vjp_reading({0: (1, 2)})
def _(
    grad: Any, out: Any, x: Any, ratio: Any = 0.5, training: Any = True, *, seed: int
) -> Any:
    # The same seed gives the same mask: nothing needs to be kept for this.
    return lambda: dropout_by_seed(grad[0], ratio, training, seed=seed)[0]
