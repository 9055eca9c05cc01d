"""Worker processes that prefetch batches."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pickle import PicklingError
from typing import Any

from burn.data.dataset import Indices
from burn.data.reading import BatchSource

#: The number of prefetched batches of each worker.
AHEAD = 2
_source: BatchSource | None = None


class Workers:
    """Worker processes that prefetch batches; they start at the first batch and stay.

    They are spawned, not forked: a fork of a process with threads, such as oneDNN's,
    can deadlock. A script therefore needs ``if __name__ == "__main__":``, and the
    dataset and its functions must be picklable.
    """

    def __init__(self, count: int, source: BatchSource) -> None:
        self.count, self.source = count, source
        self._pool: ProcessPoolExecutor | None = None

    def read(self, epoch: int, batches: Iterable[Indices]) -> Iterator[Any]:
        """Yield the batches in order; each worker prefetches ``AHEAD`` of them.

        Raises:
            burn.data.ItemError: an item could not be read.
            RuntimeError: a worker was killed.
            TypeError: the dataset or a function cannot be pickled.
        """
        pool, waiting = self._started(), iter(batches)
        pending: deque[Future[Any]] = deque()

        def submit() -> None:
            indices = next(waiting, None)
            if indices is not None:
                pending.append(_submit(pool, epoch, indices))

        try:
            for _ in range(self.count * AHEAD):
                submit()
            while pending:
                batch = pending.popleft().result()
                submit()
                yield batch
        except BrokenProcessPool as error:
            self.close()
            raise RuntimeError(
                f"one of {self.count} workers of a loader ended unexpectedly: it was "
                "killed (out of memory?), or its script has no "
                "'if __name__ == \"__main__\":'"
            ) from error
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Stop the processes; the next batch starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.count,
                multiprocessing.get_context("spawn"),
                initializer=_start,
                initargs=(self.source,),
            )
        return self._pool


def _submit(pool: ProcessPoolExecutor, epoch: int, indices: Indices) -> Future[Any]:
    """Return the future batch. If a worker ended, it fails when the batch is due: the
    batches before it may have been read."""
    try:
        return pool.submit(_read, epoch, indices)
    except BrokenProcessPool as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed
    except (AttributeError, TypeError, PicklingError) as error:  # at the first batch
        raise TypeError(
            "expected a dataset and functions that can be sent to workers (no lambdas, "
            f"and functions and classes of a module's top level): {error}"
        ) from error


def _start(source: BatchSource) -> None:
    global _source
    _source = source
    # A terminal sends Ctrl-C to all processes. The main one handles it; its
    # end closes the pipes of the workers, which ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(epoch: int, indices: Indices) -> Any:
    assert _source is not None, "a worker starts with its source"
    return _source.read(epoch, indices)
