"""First values of parameters, drawn when they are read."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from burn.box import Buffer, Deferred, Parameter
from burn.dtypes import DType, float32
from burn.tensor import Tensor, from_numpy

Draw = Callable[[np.random.Generator], np.ndarray[Any, Any]]


class _Seeds:
    """One seed for each parameter, by order of construction."""

    def __init__(self) -> None:
        self.sequence = np.random.SeedSequence(0)

    def draw(self) -> np.random.Generator:
        (child,) = self.sequence.spawn(1)
        return np.random.default_rng(child)


_seeds = _Seeds()


def seed(value: int) -> None:
    """Restart the sequence of seeds: modules constructed after it draw the same."""
    _seeds.sequence = np.random.SeedSequence(value)


@contextmanager
def separate_seeds() -> Iterator[None]:
    """Within, modules take their seeds from a sequence that nobody else does."""
    before = _seeds.sequence
    seed(0)
    try:
        yield
    finally:
        _seeds.sequence = before


def generator() -> np.random.Generator:
    """A generator with a seed of its own, the next in the sequence."""
    return _seeds.draw()


def constant(shape: tuple[int, ...], value: float, dtype: DType = float32) -> Deferred:
    """``value`` everywhere."""

    def make() -> Tensor:
        return from_numpy(np.full(shape, value, dtype))

    return Deferred(shape, dtype, make)


def uniform(shape: tuple[int, ...], bound: float, dtype: DType = float32) -> Deferred:
    """Uniform between ``-bound`` and ``bound``."""
    return _drawn(shape, dtype, lambda rng: rng.uniform(-bound, bound, shape))


def normal(
    shape: tuple[int, ...],
    std: float = 1.0,
    dtype: DType = float32,
    zero_row: int | None = None,
) -> Deferred:
    """Normal with mean 0 and standard deviation ``std``; the row ``zero_row`` is 0."""

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        rows = rng.normal(0.0, std, shape)
        if zero_row is not None:
            rows[zero_row] = 0
        return rows

    return _drawn(shape, dtype, draw)


def kaiming_uniform(shape: tuple[int, ...], fan_in: int) -> Deferred:
    """Uniform within ``1 / sqrt(fan_in)``, PyTorch's default for weights and biases."""
    return uniform(shape, 1.0 / math.sqrt(fan_in) if fan_in else 0.0)


def _drawn(shape: tuple[int, ...], dtype: DType, draw: Draw) -> Deferred:
    rng = generator()

    def make() -> Tensor:
        return from_numpy(draw(rng).astype(dtype))

    return Deferred(shape, dtype, make)


def parameter(*shape: int, dtype: DType = float32) -> Parameter:
    """A parameter outside of any layer, drawn from a normal distribution (0.02)."""
    return Parameter(normal(shape, 0.02, dtype))


def buffer(*shape: int, dtype: DType = float32, persistent: bool = True) -> Buffer:
    """A buffer whose contents come from a record.

    With ``persistent=False`` it is in no ``state_dict``, as in PyTorch.
    Reading it before the weights are loaded raises ``RuntimeError``: there is no value
    that a model could mean.
    """

    def make() -> Tensor:
        raise RuntimeError(
            f"a buffer {dtype}{list(shape)} is read before the weights are loaded"
        )

    return Buffer(Deferred(shape, dtype, make), persistent)
