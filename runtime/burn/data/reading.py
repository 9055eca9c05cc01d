"""Reading of batches, in this process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from burn.data.collate import stack
from burn.data.dataset import Dataset, Indices, reader_of
from burn.data.epoch import reading_epoch, reading_item

Collate = Callable[[list[Any]], Any]


class ItemError(RuntimeError):
    """An item could not be read; ``index`` is its index in the dataset."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message, index)
        self.index = index

    def __str__(self) -> str:
        return str(self.args[0])


class _NamedItem:
    """A context manager that converts any error to :class:`ItemError`."""

    def __init__(self, dataset: Dataset[Any], index: int) -> None:
        self._dataset, self._index = dataset, index

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            name = type(self._dataset).__name__
            message = f"item {self._index} of {name}: {type(error).__name__}: {error}"
            raise ItemError(message, self._index) from error


class BatchSource:
    """A picklable reader of batches by item indices, sent to each worker once."""

    def __init__(
        self, dataset: Dataset[Any], collate: Collate | None, seed: int
    ) -> None:
        self.dataset, self.collate, self.seed = dataset, collate, seed

    def read(self, epoch: int, indices: Indices) -> Any:
        """Return the batch of the items at ``indices``, as arrays.

        Raises:
            ItemError: an item could not be read.
        """
        with reading_epoch(epoch):
            read = reader_of(self.dataset) if self.collate is None else None
            if read is not None:
                return read(indices)
            items = [self._item(int(index)) for index in indices]
        return (self.collate or stack)(items)

    def _item(self, index: int) -> Any:
        with _NamedItem(self.dataset, index), reading_item(self.seed, index):
            return self.dataset[index]
