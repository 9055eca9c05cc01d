"""Dropout layers, each with its own random state."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar, cast, overload

from burn import ops
from burn.nn.module import Module
from burn.nn.random import random_state
from burn.tensor import Tensor

#: The output of a layer: its result, or the pair of it and the mask.
R = TypeVar("R")


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
        y, kept, after = ops.dropout_with_mask(x, self.random_state, p, training)
        self.random_state.set(after)
        return cast("R", (y, kept) if self.mask else y)

    def describe(self) -> str:
        return f"p={self.p}"
