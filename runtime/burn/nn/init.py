"""Initial values of parameters, drawn lazily."""

# An annotation that is evaluated would import ``numpy.random`` with the first layer.
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from burn.box import Buffer, Deferred, Parameter
from burn.dtypes import DType, float32
from burn.tensor import Tensor, from_numpy

Draw = Callable[["np.random.Generator"], np.ndarray[Any, Any]]


class _Seeds:
    """The sequence of seeds of parameters, by order of construction."""

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.numbers = count()

    def following(self) -> Callable[[], np.random.Generator]:
        """Return a function that creates a new generator with the next seed."""
        value, number = self.value, next(self.numbers)

        def make() -> np.random.Generator:
            # The child with this number of ``SeedSequence(value).spawn``.
            # Imports numpy.random: modules that load their weights draw nothing.
            sequence = np.random.SeedSequence(value, spawn_key=(number,))
            return np.random.default_rng(sequence)

        return make


class _Current:
    """The current sequence of seeds."""

    seeds = _Seeds()


def seed(value: int) -> None:
    """Restart the sequence of seeds: modules constructed afterwards are
    reproducible.
    """
    _Current.seeds = _Seeds(value)


@contextmanager
def separate_seeds() -> Iterator[None]:
    """Make modules in this context take their seeds from a separate sequence."""
    before = _Current.seeds
    seed(0)
    try:
        yield
    finally:
        _Current.seeds = before


def generator() -> np.random.Generator:
    """Return a generator with the next seed of the sequence."""
    return _Current.seeds.following()()


def constant(shape: tuple[int, ...], value: float, dtype: DType = float32) -> Deferred:
    """Return ``shape`` filled with ``value``."""

    def make() -> Tensor:
        return from_numpy(np.full(shape, value, dtype))

    return Deferred(shape, dtype, make)


def uniform(shape: tuple[int, ...], bound: float, dtype: DType = float32) -> Deferred:
    """Return uniform values between ``-bound`` and ``bound``."""
    return _drawn(shape, dtype, lambda rng: rng.uniform(-bound, bound, shape))


def normal(
    shape: tuple[int, ...],
    std: float = 1.0,
    dtype: DType = float32,
    zero_row: int | None = None,
) -> Deferred:
    """Return normal values with deviation ``std``; the row ``zero_row`` is 0."""

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        rows = rng.normal(0.0, std, shape)
        if zero_row is not None:
            rows[zero_row] = 0
        return rows

    return _drawn(shape, dtype, draw)


def kaiming_uniform(
    shape: tuple[int, ...], fan_in: int, dtype: DType = float32
) -> Deferred:
    """Return uniform values within ``1 / sqrt(fan_in)``, PyTorch's default."""
    return uniform(shape, 1.0 / math.sqrt(fan_in) if fan_in else 0.0, dtype)


def kaiming_normal(shape: tuple[int, ...], gain: float = math.sqrt(2.0)) -> Deferred:
    """Return normal values with deviation ``gain / sqrt(fan_in)``, by default for
    ReLU.
    """
    return normal(shape, gain / math.sqrt(_fans(shape)[0]))


def xavier_uniform(
    shape: tuple[int, ...], gain: float = 1.0, dtype: DType = float32
) -> Deferred:
    """Return uniform values within ``gain * sqrt(6 / (fan_in + fan_out))``."""
    return uniform(shape, gain * math.sqrt(6.0 / sum(_fans(shape))), dtype)


def xavier_normal(shape: tuple[int, ...], gain: float = 1.0) -> Deferred:
    """Return normal values with deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""
    return normal(shape, gain * math.sqrt(2.0 / sum(_fans(shape))))


def trunc_normal(
    shape: tuple[int, ...],
    std: float = 1.0,
    bound: float = 2.0,
    dtype: DType = float32,
) -> Deferred:
    """Return normal values with deviation ``std``, redrawn outside of [-bound, bound].

    Raises:
        ValueError: ``bound`` is below ``std``, where few draws would be within.
    """
    if bound < std:
        raise ValueError(f"expected bound >= std, got {bound} and {std}")

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        drawn = rng.normal(0.0, std, shape)
        while (outside := np.abs(drawn) > bound).any():
            drawn[outside] = rng.normal(0.0, std, int(outside.sum()))
        return drawn

    return _drawn(shape, dtype, draw)


def orthogonal(
    shape: tuple[int, ...], gain: float = 1.0, dtype: DType = float32
) -> Deferred:
    """Return orthonormal rows, or columns if there are fewer, times ``gain``.

    Axes after the first count as columns.
    """
    rows, columns = shape[0], math.prod(shape[1:])

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        tall = rng.normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diagonal(r))  # uniform over all orthogonal matrices
        matrix: np.ndarray[Any, Any] = gain * (q if rows >= columns else q.T)
        return matrix.reshape(shape)

    return _drawn(shape, dtype, draw)


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return ``fan_in`` and ``fan_out`` of a shape [out, in, ...].

    Raises:
        ValueError: there are fewer than two axes.
    """
    if len(shape) < 2:
        raise ValueError(f"expected a weight of at least two axes, got {list(shape)}")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _drawn(shape: tuple[int, ...], dtype: DType, draw: Draw) -> Deferred:
    rng = _Current.seeds.following()

    def make() -> Tensor:
        return from_numpy(draw(rng()).astype(dtype))

    return Deferred(shape, dtype, make)


def parameter(*shape: int, dtype: DType = float32) -> Parameter:
    """Return a parameter outside of any layer, drawn from a normal distribution
    (0.02).
    """
    return Parameter(normal(shape, 0.02, dtype))


def buffer(*shape: int, dtype: DType = float32, persistent: bool = True) -> Buffer:
    """Return a buffer whose value is loaded from a record.

    With ``persistent=False`` it is not in the ``state_dict``, as in PyTorch. Reading it
    before the weights are loaded raises ``RuntimeError``, because there is no
    meaningful default.
    """

    def make() -> Tensor:
        raise RuntimeError(
            f"a buffer {dtype}{list(shape)} is read before the weights are loaded"
        )

    return Buffer(Deferred(shape, dtype, make), persistent)
