"""Batch loaders with a reproducible and resumable order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.data.collate import as_tensors
from burn.data.dataset import Dataset, Indices
from burn.data.reading import BatchSource
from burn.data.workers import Workers

State = dict[str, int | str | list[Any]]


class Loader:
    """Batches of ``dataset`` for one epoch in each iteration.

    Arrays become tensors of ``backend``. The items of each batch follow from
    ``shuffle`` and the epoch, not from ``workers`` or earlier reads. Each
    ``for`` loop is an epoch, even if it is left early. After :meth:`load_state_dict` it
    is the rest of one.

    Args:
        dataset: anything with a length and items by index.
        batch: the number of items of a batch. The last one has the remaining items.
        shuffle: the seed of the order, which differs in each epoch; None keeps it. True
            is the seed 0, False is None.
        collate: makes a batch of a list of items, in the worker; by default
            :func:`~burn.data.stack`.
        workers: the number of processes that read ahead; with 0 this one reads.
        drop_last: whether to leave out a last batch that is not full.
        backend: where tensors are; ``Cpu()`` by default.
        rank, ranks: which share of every batch this process gets, of how many. Each has
            ``batch / ranks`` items or one more.

    Raises:
        ValueError: a number is out of its range, or some rank gets nothing of the last
            batch.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch: int = 1,
        *,
        shuffle: int | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        workers: int = 0,
        drop_last: bool = False,
        backend: Backend | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        if isinstance(shuffle, bool):
            shuffle = 0 if shuffle else None
        self.dataset, self.batch, self.shuffle = dataset, batch, shuffle
        self.workers, self.drop_last, self.backend = workers, drop_last, backend
        self.rank, self.ranks = rank, ranks
        self._check()
        self._source = BatchSource(dataset, collate, shuffle or 0)
        self._workers = Workers(workers, self._source) if workers else None
        #: The epoch of the loop that runs, or of the next one.
        self.epoch = 0
        #: The number of batches of the epoch that were yielded.
        self.position = 0
        self._is_begun = False

    def _check(self) -> None:
        if not hasattr(self.dataset, "__len__"):
            kind = type(self.dataset).__name__
            raise TypeError(
                "expected a dataset with a length and items by index, as a list, got "
                f"{kind}; list(...) makes one of an iterator"
            )
        if self.batch < 1 or self.workers < 0:
            raise ValueError(
                f"expected batch >= 1 and workers >= 0, got {self.batch} and "
                f"{self.workers}"
            )
        if self.shuffle is not None and self.shuffle < 0:
            raise ValueError(f"expected shuffle >= 0 or None, got {self.shuffle}")
        if not 0 <= self.rank < self.ranks:
            raise ValueError(
                f"expected 0 <= rank < ranks, got {self.rank} of {self.ranks}"
            )
        rest = 0 if self.drop_last else len(self.dataset) % self.batch
        smallest = rest or self.batch
        if smallest < self.ranks:
            raise ValueError(
                f"expected an item for each of {self.ranks} ranks in every batch, got "
                f"a batch of {smallest}; change 'batch' or set drop_last"
            )

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        full, rest = divmod(len(self.dataset), self.batch)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._is_begun:
            self.epoch, self.position = self.epoch + 1, 0
        self._is_begun = True
        return self._batches(self.epoch, self.position)

    def _batches(self, epoch: int, start: int) -> Iterator[Any]:
        order = self._order(epoch)
        shares = (self._share(order, number) for number in range(start, len(self)))
        batches: Iterator[Any]
        if self._workers is None:
            batches = (self._source.read(epoch, indices) for indices in shares)
        else:
            batches = self._workers.read(epoch, shares)
        for position, batch in enumerate(batches, start + 1):
            if self.epoch == epoch:
                self.position = position
            yield as_tensors(batch, self.backend)
        if self.epoch == epoch:
            self.epoch, self.position, self._is_begun = epoch + 1, 0, False

    def _order(self, epoch: int) -> Indices:
        if self.shuffle is None:
            return np.arange(len(self.dataset))
        generator = np.random.default_rng([self.shuffle, epoch])
        return generator.permutation(len(self.dataset))

    def _share(self, order: Indices, number: int) -> Indices:
        items = order[number * self.batch : (number + 1) * self.batch]
        first, end = (len(items) * r // self.ranks for r in (self.rank, self.rank + 1))
        return items[first:end]

    def _identity(self) -> dict[str, int | str]:
        """Return the properties that two states must share to select equal batches."""
        return {
            "length": len(self.dataset),
            "batch": self.batch,
            "shuffle": "none" if self.shuffle is None else self.shuffle,
            "drop_last": int(self.drop_last),
        }

    def state_dict(self) -> State:
        """Return the epoch, its number of yielded batches, and the identity.

        In the body of a loop the current batch counts as yielded; after a whole epoch
        the state is that before the next one. ``rank`` and ``workers`` are not
        included.
        """
        return {"epoch": self.epoch, "position": self.position, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next loop continue after the batches counted by ``state``.

        Raises:
            ValueError: a key is missing or unknown, a value is out of range, or the
                state is of another dataset, batch or seed.
        """
        identity = self._identity()
        keys = {"epoch", "position", *identity}
        if state.keys() != keys:
            raise ValueError(
                f"state of a loader: expected {sorted(keys)}, got {sorted(state)}"
            )
        for name, expected in identity.items():
            if state[name] != expected:
                raise ValueError(
                    f"state of a loader: expected {name} {expected}, got "
                    f"{state[name]}; to change it begin a run in another folder, after "
                    "step.load(checkpoint)"
                )
        epoch, position = int(state["epoch"]), int(state["position"])
        if epoch < 0 or not 0 <= position <= len(self):
            raise ValueError(
                f"state of a loader: expected an epoch >= 0 and a position up to "
                f"{len(self)}, got {epoch} and {position}"
            )
        self.epoch, self.position, self._is_begun = epoch, position, False

    def close(self) -> None:
        """Stop the workers. They also stop when the program exits."""
        if self._workers is not None:
            self._workers.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
