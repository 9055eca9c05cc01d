"""The dataset protocol: a fixed number of items with random access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from operator import index as as_index
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
#: Positions of items: int64[N].
Indices = np.ndarray[Any, Any]
#: Returns the same batch for indices as ``stack`` for the items.
BatchReader = Callable[[Indices], Any]


@runtime_checkable
class Dataset(Protocol[T_co]):
    """A fixed number of items by index. Lists and PyTorch's map-style datasets conform.

    ``dataset[i]`` is called with ``0 <= i < len(dataset)``, in any order and in several
    processes. An item is an array, a number, a string, or a tuple, list, dict or named
    tuple of items.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T_co: ...


class Source(ABC, Generic[T]):
    """Base class of the datasets here; checks indices and supports negative ones."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def item(self, index: int) -> T:
        """Return the item at ``index``, which is in range."""

    def reader(self) -> BatchReader | None:
        """Return a function that reads a batch, if that is faster than by item."""
        return None

    def __getitem__(self, index: int, /) -> T:
        position, length = as_index(index), len(self)
        if not -length <= position < length:
            raise IndexError(
                f"{type(self).__name__}: expected an index below {length}, got {index}"
            )
        return self.item(position % length)

    def __iter__(self) -> Iterator[T]:
        return (self.item(index) for index in range(len(self)))


def reader_of(dataset: Dataset[Any]) -> BatchReader | None:
    """Return :meth:`Source.reader` of a dataset that has one, else None."""
    return dataset.reader() if isinstance(dataset, Source) else None
