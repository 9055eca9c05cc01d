"""What a loader is reading: the epoch, and random numbers of each item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import numpy as np

_EPOCH: ContextVar[int] = ContextVar("burn.data.epoch", default=0)


class _Item:
    """The item that is being read. Its generator is made when it is asked for."""

    def __init__(self, *key: int) -> None:
        self._key = key

    @cached_property
    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self._key)


_ITEM: ContextVar[_Item | None] = ContextVar("burn.data.item", default=None)


def current_epoch() -> int:
    """The epoch that a loader is reading, from 0; outside of loaders 0."""
    return _EPOCH.get()


def random() -> np.random.Generator:
    """The random numbers of the item that is being read, for augmentation.

    They follow from the seed of the loader, the epoch and the index of the item, so
    that they do not depend on the number of workers, and a resumed run has the same.
    Outside of loaders they differ in each call.
    """
    item = _ITEM.get()
    return np.random.default_rng() if item is None else item.generator


@contextmanager
def reading_epoch(epoch: int) -> Iterator[None]:
    """Let :func:`current_epoch` be ``epoch``."""
    token = _EPOCH.set(epoch)
    try:
        yield
    finally:
        _EPOCH.reset(token)


@contextmanager
def reading_item(seed: int, index: int) -> Iterator[None]:
    """Let :func:`random` be the numbers of one item of this epoch."""
    token = _ITEM.set(_Item(seed, current_epoch(), index))
    try:
        yield
    finally:
        _ITEM.reset(token)
