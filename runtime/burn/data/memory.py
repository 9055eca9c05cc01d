"""Datasets of arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn.data.collate import stack
from burn.data.dataset import BatchReader, Dataset, Indices, Source, reader_of
from burn.tensor import Tensor


class Memory(Source[Any]):
    """A dataset of the rows of one array, or of tuples of rows of several arrays.

    ``Memory(images, labels)[3]`` is ``(images[3], labels[3])``. Arrays are shared, not
    copied; tensors and lists are accepted.

    Raises:
        ValueError: there is no array, one is a scalar, or lengths differ.
    """

    def __init__(self, *arrays: Any) -> None:
        self.arrays = [_rows(array) for array in arrays]
        lengths = [len(array) for array in self.arrays]
        if len(set(lengths)) != 1:
            raise ValueError(f"expected arrays of one length, got lengths {lengths}")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def item(self, index: int) -> Any:
        parts = tuple(array[index] for array in self.arrays)
        return parts if len(parts) > 1 else parts[0]

    def reader(self) -> BatchReader:
        return self._read

    def _read(self, indices: Indices) -> Any:
        parts = tuple(
            (
                array[indices]
                if isinstance(array, np.ndarray)
                else stack([array[int(index)] for index in indices])
            )
            for array in self.arrays
        )
        return parts if len(parts) > 1 else parts[0]


def _rows(array: Any) -> Any:
    if isinstance(array, Tensor):
        array = array.numpy()
    if isinstance(array, np.ndarray) and array.ndim == 0:
        raise ValueError("expected an array with a first axis, got a scalar")
    return array if isinstance(array, np.ndarray | Sequence) else np.asarray(array)


class Zipped(Source[tuple[Any, ...]]):
    """Tuples of the items of several datasets at the same index.

    Raises:
        ValueError: there is no dataset, or lengths differ.
    """

    def __init__(self, *datasets: Dataset[Any]) -> None:
        lengths = [len(dataset) for dataset in datasets]
        if len(set(lengths)) != 1:
            raise ValueError(f"expected datasets of one length, got lengths {lengths}")
        self.datasets = datasets

    def __len__(self) -> int:
        return len(self.datasets[0])

    def item(self, index: int) -> tuple[Any, ...]:
        return tuple(dataset[index] for dataset in self.datasets)

    def reader(self) -> BatchReader | None:
        readers = [reader for x in self.datasets if (reader := reader_of(x))]
        if len(readers) < len(self.datasets):
            return None
        return lambda indices: tuple(read(indices) for read in readers)
