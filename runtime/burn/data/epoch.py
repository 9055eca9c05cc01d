"""The current epoch of a loader, and random numbers per item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import numpy as np

_EPOCH: ContextVar[int] = ContextVar("burn.data.epoch", default=0)


class _Item:
    """The item that is being read, with a lazily created random generator."""

    def __init__(self, *key: int) -> None:
        self._key = key

    @cached_property
    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self._key)


_ITEM: ContextVar[_Item | None] = ContextVar("burn.data.item", default=None)


def current_epoch() -> int:
    """Return the epoch that a loader is reading, from 0; outside of loaders 0."""
    return _EPOCH.get()


def random() -> np.random.Generator:
    """Return the random generator of the current item, for augmentation.

    It is seeded by the seed of the loader, the epoch and the index of the item, so that
    results do not depend on the number of workers and are the same in a resumed run.
    Outside of loaders each call returns a new, unseeded generator.
    """
    item = _ITEM.get()
    return np.random.default_rng() if item is None else item.generator


@contextmanager
def reading_epoch(epoch: int) -> Iterator[None]:
    """Set the result of :func:`current_epoch` in this context."""
    token = _EPOCH.set(epoch)
    try:
        yield
    finally:
        _EPOCH.reset(token)


@contextmanager
def reading_item(seed: int, index: int) -> Iterator[None]:
    """Set the result of :func:`random` for one item of this epoch."""
    token = _ITEM.set(_Item(seed, current_epoch(), index))
    try:
        yield
    finally:
        _ITEM.reset(token)
