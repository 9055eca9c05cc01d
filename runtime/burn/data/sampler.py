"""Random sampling of items of another dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from burn.data.dataset import BatchReader, Dataset, Indices, Source, reader_of
from burn.data.epoch import current_epoch

T = TypeVar("T")


class Sampler(Source[T]):
    """``size`` items of ``dataset``, drawn anew for each epoch of a loader.

    The draw follows from ``seed`` and the epoch. ``size`` is how long an epoch is and
    may exceed the number of items if ``replacement`` is set.

    Args:
        replacement: whether an item may be drawn several times.
        weights: how often each item is drawn, relative to the others: [N], finite and
            not negative. Those of rare classes can be raised with it.

    Raises:
        ValueError: there are fewer items to draw than ``size``, or weights are wrong.
    """

    def __init__(
        self,
        dataset: Dataset[T],
        size: int,
        *,
        replacement: bool = True,
        weights: Sequence[float] | np.ndarray[Any, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.dataset, self.size, self.seed = dataset, size, seed
        self.replacement = replacement
        self.shares = None if weights is None else _shares(weights, len(dataset))
        available = len(dataset)
        if self.shares is not None:
            available = int(np.count_nonzero(self.shares))
        if size < 0 or (size and not available):
            raise ValueError(f"expected items to draw {size} from, got {available}")
        if not replacement and size > available:
            raise ValueError(
                f"expected at least {size} items to draw without replacement, "
                f"got {available}"
            )
        self._draw: tuple[int, Indices] | None = None

    def __len__(self) -> int:
        return self.size

    def item(self, index: int) -> T:
        return self.dataset[int(self.indices()[index])]

    def reader(self) -> BatchReader | None:
        read = reader_of(self.dataset)
        return None if read is None else lambda batch: read(self.indices()[batch])

    def indices(self) -> Indices:
        """Return the sampled indices for the current epoch: int64[size]."""
        epoch = current_epoch()
        if self._draw is None or self._draw[0] != epoch:
            generator = np.random.default_rng([self.seed, epoch])
            chosen = generator.choice(
                len(self.dataset), self.size, self.replacement, self.shares
            )
            self._draw = epoch, chosen
        return self._draw[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_draw": None}


def _shares(weights: Any, length: int) -> np.ndarray[Any, Any]:
    array = np.asarray(weights, np.float64)
    if array.shape != (length,):
        raise ValueError(f"expected {length} weights, got shape {list(array.shape)}")
    if not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ValueError("expected weights >= 0, finite, and not all of them 0")
    shares: np.ndarray[Any, Any] = array / array.sum()
    return shares
