"""Lazy views of datasets; items are read on access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from burn.data.dataset import BatchReader, Dataset, Indices, Source, reader_of

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Source[R]):
    """The results of ``function`` on the items, computed on access.

    With workers in a loader, the function must be importable: no lambda.
    """

    def __init__(self, dataset: Dataset[T], function: Callable[[T], R]) -> None:
        self.dataset: Dataset[Any] = dataset
        self.function = function

    def __len__(self) -> int:
        return len(self.dataset)

    def item(self, index: int) -> R:
        return self.function(self.dataset[index])


class Selection(Source[T]):
    """The items at ``indices``, in that order; indices may repeat.

    Raises:
        IndexError: an index is not in the dataset.
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int] | Indices) -> None:
        chosen = np.asarray(indices)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise ValueError(
                f"expected a list of indices, got {chosen.dtype}{list(chosen.shape)}"
            )
        wrong = chosen[(chosen < 0) | (chosen >= len(dataset))]
        if wrong.size:
            raise IndexError(f"expected indices below {len(dataset)}, got {wrong[0]}")
        self.dataset = dataset
        self.indices = chosen.astype(np.int64)

    def __len__(self) -> int:
        return len(self.indices)

    def item(self, index: int) -> T:
        return self.dataset[int(self.indices[index])]

    def reader(self) -> BatchReader | None:
        read = reader_of(self.dataset)
        return None if read is None else lambda batch: read(self.indices[batch])


class Shuffled(Selection[T]):
    """All items in a permutation by ``seed``, which is the same in each epoch.

    It is meant for splits; a loader itself shuffles anew in each epoch.
    """

    def __init__(self, dataset: Dataset[T], seed: int = 0) -> None:
        super().__init__(dataset, np.random.default_rng(seed).permutation(len(dataset)))


class Partial(Source[T]):
    """The items from ``start`` to ``stop`` (exclusive).

    Raises:
        ValueError: the range is not within the dataset.
    """

    def __init__(
        self, dataset: Dataset[T], start: int = 0, stop: int | None = None
    ) -> None:
        length = len(dataset)
        end = length if stop is None else stop
        if not 0 <= start <= end <= length:
            raise ValueError(
                f"expected 0 <= start <= stop <= {length}, got {start} and {end}"
            )
        self.dataset, self.start, self.stop = dataset, start, end

    def __len__(self) -> int:
        return self.stop - self.start

    def item(self, index: int) -> T:
        return self.dataset[self.start + index]

    def reader(self) -> BatchReader | None:
        read = reader_of(self.dataset)
        return None if read is None else lambda batch: read(self.start + batch)


class Composed(Source[T]):
    """The concatenation of several datasets."""

    def __init__(self, *datasets: Dataset[T]) -> None:
        self.datasets = datasets
        self._ends = list(accumulate(len(dataset) for dataset in datasets))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def item(self, index: int) -> T:
        part = bisect_right(self._ends, index)
        start = self._ends[part - 1] if part else 0
        return self.datasets[part][index - start]


class Windows(Source[list[T]]):
    """Lists of ``size`` neighboring items; the next one starts ``stride`` later.

    A rest that fills no window is left out.

    Raises:
        ValueError: ``size`` or ``stride`` is less than 1.
    """

    def __init__(self, dataset: Dataset[T], size: int, stride: int = 1) -> None:
        if size < 1 or stride < 1:
            raise ValueError(f"expected size and stride >= 1, got {size} and {stride}")
        self.dataset, self.size, self.stride = dataset, size, stride

    def __len__(self) -> int:
        return max(0, (len(self.dataset) - self.size) // self.stride + 1)

    def item(self, index: int) -> list[T]:
        start = index * self.stride
        return [self.dataset[start + offset] for offset in range(self.size)]


def split(
    dataset: Dataset[T], fractions: Sequence[float], seed: int | None = 0
) -> list[Partial[T]]:
    """Return disjoint parts of a dataset, for example for training and validation.

    ``split(dataset, [0.8, 0.2])`` shuffles by ``seed`` first, unless it is None. The
    last part includes the rounding remainder if the fractions sum to 1.

    Raises:
        ValueError: a fraction is not positive, or they sum to more than 1.
    """
    total = sum(fractions)
    if not fractions or min(fractions) <= 0 or total > 1 + 1e-9:
        raise ValueError(
            f"expected positive fractions with a sum of at most 1, got {fractions}"
        )
    items = dataset if seed is None else Shuffled(dataset, seed)
    ends = [round(part * len(items)) for part in accumulate(fractions)]
    if total > 1 - 1e-9:
        ends[-1] = len(items)
    starts = [0, *ends[:-1]]
    return [Partial(items, a, b) for a, b in zip(starts, ends, strict=True)]
