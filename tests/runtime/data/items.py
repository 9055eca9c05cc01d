"""Datasets and functions that workers can import."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from burn import data


class Squares:
    """The squares below ``length`` squared: a dataset by its protocol alone."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, float(index * index)


class Broken(Squares):
    """Squares of which item 5 cannot be read."""

    def __getitem__(self, index: int) -> tuple[int, float]:
        if index == 5:
            raise OSError("cannot read the file")
        return super().__getitem__(index)


class UnpicklableError(Exception):
    """An error that cannot be sent from a worker."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.function: Callable[[], str] = lambda: second


class Odd(Squares):
    """Squares of which item 2 raises what cannot be pickled."""

    def __getitem__(self, index: int) -> tuple[int, float]:
        if index == 2:
            raise UnpicklableError("a", "b")
        return super().__getitem__(index)


class Fatal(Squares):
    """Squares of which item 3 ends the process."""

    def __getitem__(self, index: int) -> tuple[int, float]:
        if index == 3:
            os._exit(1)
        return super().__getitem__(index)


def noisy(item: tuple[int, float]) -> Any:
    """Return the index and random numbers of the item."""
    noise = data.random()
    return item[0], noise.random(3), noise.integers(100)


def as_row(item: tuple[int, float]) -> dict[str, Any]:
    """Return the item by names, with an array."""
    index, square = item
    return {"index": index, "square": square, "array": np.full(3, index, np.int16)}


def first_only(items: list[tuple[int, float]]) -> list[int]:
    """Return a batch that is no array: the first parts."""
    return [index for index, _ in items]
