"""Dropout layers, each with its own random state."""

from __future__ import annotations

import math
from typing import Generic, Literal, TypeVar, cast, overload

from burn import ops
from burn.nn.module import Module
from burn.nn.random import random_state
from burn.tensor import Tensor

#: The output of a layer: its result, or the pair of it and the mask.
R = TypeVar("R")
#: The limit of SELU at minus infinity, negated.
SELU_LIMIT = 1.7580993408473766


class Dropout(Module):
    """Zeroes elements with probability ``p`` in training; the identity in inference.

    A module is in training if it is on a backend that tracks gradients. Other elements
    are divided by ``1 - p`` (N. Srivastava et al., 2014). ``seed`` determines the
    masks; by default they follow :func:`burn.nn.init.seed`.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """

    def __init__(self, p: float = 0.5, *, seed: int | None = None) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"expected p in [0, 1], got {p}")
        self.p = p
        self.random_state = random_state(seed)

    def __call__(self, x: Tensor) -> Tensor:
        if self.p == 0.0 or not self.random_state.backend.tracks_gradients:
            return x
        y, after = ops.dropout(x, self.random_state, p=self.p)
        self.random_state.set(after)
        return y

    def describe(self) -> str:
        return f"p={self.p}"


class _ChannelDropout(Dropout):
    rank = 0

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank + 2:
            raise ValueError(f"expected rank {self.rank + 2}, got {list(x.shape)}")
        if self.p == 0.0 or not self.random_state.backend.tracks_gradients:
            return x
        shape = (*x.shape[:2], *(1,) * self.rank)
        factors = super().__call__(ops.ones(shape, dtype=x.dtype))
        return x * factors


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels of [N, C, length]."""

    rank = 1


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels of [N, C, H, W]."""

    rank = 2


class Dropout3d(_ChannelDropout):
    """Dropout of whole channels of [N, C, D, H, W]."""

    rank = 3


class AlphaDropout(Dropout):
    """Dropout that keeps mean 0 and variance 1, for :class:`SELU`.

    Dropped elements become the negative limit of SELU.
    """

    def __call__(self, x: Tensor) -> Tensor:
        if self.p in (0.0, 1.0) or not self.random_state.backend.tracks_gradients:
            return x if self.p < 1.0 else super().__call__(x)
        mask = super().__call__(ops.ones(x.shape, dtype=x.dtype)) > 0
        scale = 1.0 / math.sqrt((1.0 - self.p) * (1.0 + self.p * SELU_LIMIT**2))
        return (ops.where(mask, x, -SELU_LIMIT) + self.p * SELU_LIMIT) * scale


class DynamicDropout(Module, Generic[R]):
    """Dropout whose mode and probability are operands: ``layer(x, training, ratio)``.

    By default it trains, with probability ``p``, on any backend. With ``mask`` it also
    returns the mask of kept elements, which are divided by ``1 - ratio``. ``seed``
    determines the masks; by default they follow :func:`burn.nn.init.seed`.
    """

    @overload
    def __init__(
        self: DynamicDropout[Tensor],
        p: float = 0.5,
        *,
        mask: Literal[False] = False,
        seed: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: DynamicDropout[tuple[Tensor, Tensor]],
        p: float = 0.5,
        *,
        mask: Literal[True],
        seed: int | None = None,
    ) -> None: ...
    def __init__(
        self, p: float = 0.5, *, mask: bool = False, seed: int | None = None
    ) -> None:
        super().__init__()
        self.p = p
        self.mask = mask
        self.random_state = random_state(seed)

    def __call__(
        self, x: Tensor, training: Tensor | bool = True, ratio: Tensor | None = None
    ) -> R:
        """Return ``x`` with elements zeroed; with ``mask`` a pair of it and the
        mask.
        """
        p = self.p if ratio is None else ratio
        y, mask, after = ops.dropout_with_mask(x, self.random_state, p, training)
        self.random_state.set(after)
        return cast("R", (y, mask) if self.mask else y)

    def describe(self) -> str:
        return f"p={self.p}"
