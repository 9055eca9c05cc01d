"""Dropout, with a random state of its own."""

import numpy as np

from burn import ops
from burn.box import Box
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor, from_numpy


class RandomState(Box):
    """The key and counter that random numbers come from; not part of the record."""

    __slots__ = ()
    recorded = False


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
        key = int(init.generator().integers(2**63)) if seed is None else seed
        self.random_state = RandomState(
            from_numpy(np.array([key % 2**64, 0], np.uint64))
        )

    def __call__(self, x: Tensor) -> Tensor:
        if self.p == 0.0 or not self.random_state.backend.tracks_gradients:
            return x
        y, after = ops.dropout(x, self.random_state, p=self.p)
        self.random_state.set(after)
        return y

    def describe(self) -> str:
        return f"p={self.p}"
