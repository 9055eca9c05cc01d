"""Dropout, with a random state of its own."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar, cast, overload

from burn import ops
from burn.nn.module import Module
from burn.nn.random import random_state
from burn.tensor import Tensor

#: What a layer gives: its result, or the pair of it and the mask.
R = TypeVar("R")


class Dropout(Module):
    """Makes elements 0 with probability ``p`` in training, and nothing otherwise.

    In training means that the module is on a backend that tracks gradients. What is
    kept is divided by ``1 - p`` (N. Srivastava et al., 2014). ``seed`` fixes the masks;
    without it they follow :func:`burn.nn.init.seed`.

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


class DynamicDropout(Module, Generic[R]):
    """Makes elements 0 whatever the backend, if it is called to train.

    The mode and the probability are operands: ``layer(x, training, ratio)``. Without
    them it trains, with probability ``p``. With ``mask`` it also returns which elements
    were kept. What is kept is divided by ``1 - ratio``. ``seed`` fixes the masks;
    without it they follow :func:`burn.nn.init.seed`.
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
        """``x`` with elements dropped; with ``mask`` the pair of it and the mask."""
        p = self.p if ratio is None else ratio
        y, kept, after = ops.dropout_with_mask(x, self.random_state, p, training)
        self.random_state.set(after)
        return cast("R", (y, kept) if self.mask else y)

    def describe(self) -> str:
        return f"p={self.p}"
