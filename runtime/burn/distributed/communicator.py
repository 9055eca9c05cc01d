"""The interface of collective operations."""

from __future__ import annotations

import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.backend.cpu.device import Cpu
from burn.tensor import Tensor, from_numpy

#: A NumPy array, or one of the library of the communicator's device.
Array = np.ndarray[Any, Any]


class Communicator(ABC):
    """Collective operations of ``size`` processes; this process has rank ``rank``.

    Every process calls the same operations in the same order, with arrays of the same
    shape and dtype: float32, float64 or integers.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """The rank of this process, from 0."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of processes."""

    @abstractmethod
    def all_reduce(self, array: Array) -> Array:
        """Return the sum over all processes, bitwise equal in each."""

    @abstractmethod
    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the array of the process ``root``."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all processes have called this."""

    def all_gather(self, array: Array) -> Array:
        """Return the arrays of all processes by rank, ``[size, *array.shape]``."""
        return np.stack([self.broadcast(array, root) for root in range(self.size)])

    def start_all_reduce(self, array: Array) -> Callable[[], Array]:
        """Start an :meth:`all_reduce`; the returned function waits for the result.

        The operation may overwrite ``array``. By default it completes before returning.
        """
        total = self.all_reduce(array)
        return lambda: total

    def bucket(self) -> Bucket:
        """Return a bucket for gradients that are reduced during the backward pass."""
        return HostBucket(self)

    def overlaps_on(self, device: Backend) -> bool:
        """Return whether plans on ``device`` can start reductions before they end."""
        return isinstance(device, Cpu)

    def to_array(self, tensor: Tensor) -> Array:
        """Return the elements of ``tensor`` as an array for the operations."""
        return tensor.numpy()

    def to_tensor(self, array: Array, device: Backend) -> Tensor:
        """Return the result of an operation as a tensor on ``device``."""
        return from_numpy(array, device)


class Bucket(ABC):
    """The flat gradients of some parameters, which are summed over all processes.

    In each training step :meth:`begin` is called first, :meth:`put` from within the
    plan of the gradients, and :meth:`start` and :meth:`sum` after it.
    """

    @abstractmethod
    def begin(self) -> None:
        """Prepare for the vector of the next step."""

    @abstractmethod
    def put(self, vector: Array, *, is_final: bool) -> Array:
        """Set the vector, and allow the reduction to start if ``is_final``.

        Recordings of plans put vectors that are not final. Returns a dummy array [1],
        which keeps the call in a plan.
        """

    @abstractmethod
    def start(self) -> None:
        """Start the reduction unless it has started."""

    @abstractmethod
    def sum(self) -> Array:
        """Wait for the sum over all processes and return it."""


class HostBucket(Bucket):
    """A bucket in host memory, whose reduction starts in :meth:`put`."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self._end: Callable[[], Array] | None = None

    def begin(self) -> None:
        self._end = None

    def put(self, vector: Array, *, is_final: bool) -> Array:
        if is_final and self._end is None:
            self._end = self._communicator.start_all_reduce(vector.copy())
        return np.zeros(1, np.float32)

    def start(self) -> None:
        if self._end is None:
            raise RuntimeError("a bucket of gradients was not filled by its plan")

    def sum(self) -> Array:
        assert self._end is not None
        return self._end()


def report_failure(
    communicator: Communicator,
    kind: type[BaseException],
    error: BaseException,
    stack: TracebackType | None,
) -> None:
    """Print an uncaught error with the rank of the process."""
    text = "".join(traceback.format_exception(kind, error, stack))
    rank = f"rank {communicator.rank} of {communicator.size}"
    print(f"{rank} failed:\n{text}", file=sys.stderr)
    sys.stderr.flush()
