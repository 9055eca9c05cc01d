"""Layers that draw random numbers, each from its own state.

A layer with a ``seed`` draws the same sequence in every run; each call continues the
sequence. By default the seed is the next one of :func:`burn.nn.init.seed`: layers
differ, and a program is reproducible unless it sets another seed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burn import dtypes, ops
from burn.box import Box
from burn.dtypes import DType
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor, from_numpy


class RandomState(Box):
    """The key and counter of a random number generator; not part of the record."""

    __slots__ = ()
    recorded = False


def random_state(seed: int | None) -> RandomState:
    """Return a state at the start of the sequence of ``seed``, or of the next seed."""
    key = int(init.generator().integers(2**63)) if seed is None else seed
    return RandomState(from_numpy(np.array([key % 2**64, 0], np.uint64)))


class _Random(Module):
    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self.random_state = random_state(seed)

    def draw(self, primitive: Callable[..., Any], *args: Any, dtype: DType) -> Tensor:
        """Return the values that ``primitive`` draws, and advance the state."""
        drawn, after = primitive(self.random_state, *args, dtype=dtype)
        self.random_state.set(after)
        out: Tensor = drawn
        return out


class RandomNormal(_Random):
    """Normally distributed numbers in ``shape``, drawn at each call."""

    def __init__(
        self,
        shape: Sequence[int],
        mean: float = 0.0,
        scale: float = 1.0,
        *,
        dtype: DType = dtypes.float32,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.shape, self.mean, self.scale = tuple(shape), mean, scale
        self.dtype = dtype

    def __call__(self) -> Tensor:
        return self.draw(
            ops.normal, self.shape, self.mean, self.scale, dtype=self.dtype
        )

    def describe(self) -> str:
        return f"{self.shape}, mean={self.mean}, scale={self.scale}"


class RandomNormalLike(_Random):
    """Normally distributed numbers in the shape of the argument.

    They have the dtype of the argument by default.
    """

    def __init__(
        self,
        mean: float = 0.0,
        scale: float = 1.0,
        *,
        dtype: DType | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.mean, self.scale, self.dtype = mean, scale, dtype

    def __call__(self, x: Tensor) -> Tensor:
        kind = self.dtype or x.dtype
        return self.draw(ops.normal, x.shape, self.mean, self.scale, dtype=kind)

    def describe(self) -> str:
        return f"mean={self.mean}, scale={self.scale}"


class RandomUniform(_Random):
    """Uniformly distributed numbers in [low, high), drawn at each call."""

    def __init__(
        self,
        shape: Sequence[int],
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: DType = dtypes.float32,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.shape, self.low, self.high = tuple(shape), low, high
        self.dtype = dtype

    def __call__(self) -> Tensor:
        return self.draw(ops.uniform, self.shape, self.low, self.high, dtype=self.dtype)

    def describe(self) -> str:
        return f"{self.shape}, low={self.low}, high={self.high}"


class RandomUniformLike(_Random):
    """Uniformly distributed numbers in [low, high) in the shape of the argument.

    They have the dtype of the argument by default.
    """

    def __init__(
        self,
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: DType | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.low, self.high, self.dtype = low, high, dtype

    def __call__(self, x: Tensor) -> Tensor:
        kind = self.dtype or x.dtype
        return self.draw(ops.uniform, x.shape, self.low, self.high, dtype=kind)

    def describe(self) -> str:
        return f"low={self.low}, high={self.high}"


class Bernoulli(_Random):
    """1 with the probabilities in the argument, else 0.

    The result has the dtype of the probabilities by default.
    """

    def __init__(self, *, dtype: DType | None = None, seed: int | None = None) -> None:
        super().__init__(seed)
        self.dtype = dtype

    def __call__(self, p: Tensor) -> Tensor:
        return self.draw(ops.bernoulli, p, dtype=self.dtype or p.dtype)


class Multinomial(_Random):
    """Classes drawn from the softmax of each row of logits: [N, C] -> [N, samples]."""

    def __init__(
        self, samples: int = 1, *, dtype: DType = dtypes.int32, seed: int | None = None
    ) -> None:
        super().__init__(seed)
        self.samples, self.dtype = samples, dtype

    def __call__(self, logits: Tensor) -> Tensor:
        return self.draw(ops.multinomial, logits, self.samples, dtype=self.dtype)

    def describe(self) -> str:
        return f"samples={self.samples}"
