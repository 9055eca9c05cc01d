"""What processes that train together exchange arrays through."""

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
    """Collective operations of ``size`` processes; this one has the number ``rank``.

    Every process calls the same operations in the same order, with arrays of the same
    shape and dtype: float32, float64 or integers.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many processes there are."""

    @abstractmethod
    def all_reduce(self, array: Array) -> Array:
        """The sum over all processes, with the same bits in each."""

    @abstractmethod
    def broadcast(self, array: Array, root: int = 0) -> Array:
        """The array of the process ``root``."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all processes are here."""

    def all_gather(self, array: Array) -> Array:
        """The arrays of all processes by rank, ``[size, *array.shape]``."""
        return np.stack([self.broadcast(array, root) for root in range(self.size)])

    def start_all_reduce(self, array: Array) -> Callable[[], Array]:
        """Begin an :meth:`all_reduce`; the function that is returned ends it.

        ``array`` may be changed by the operation. Without a subclass's own it is over
        when this returns.
        """
        total = self.all_reduce(array)
        return lambda: total

    def bucket(self) -> Bucket:
        """A place for gradients that are summed while others are computed."""
        return HostBucket(self)

    def overlaps_on(self, device: Backend) -> bool:
        """Whether plans on ``device`` can begin sums before they end."""
        return isinstance(device, Cpu)

    def to_array(self, tensor: Tensor) -> Array:
        """The elements of ``tensor`` as the operations take them."""
        return tensor.numpy()

    def to_tensor(self, array: Array, device: Backend) -> Tensor:
        """The result of an operation as a tensor on ``device``."""
        return from_numpy(array, device)


class Bucket(ABC):
    """The flat gradients of some parameters on the way to their sum.

    In each step of training it gets :meth:`begin`, :meth:`put` from within the plan of
    the gradients, and :meth:`start` and :meth:`sum` after it.
    """

    @abstractmethod
    def begin(self) -> None:
        """Expect the vector of the next step."""

    @abstractmethod
    def put(self, vector: Array, *, is_final: bool) -> Array:
        """Take the vector, of which the sum may begin if ``is_final``.

        Recordings of plans put vectors that are not final. Returns an array [1] of no
        meaning, which keeps the call in a plan.
        """

    @abstractmethod
    def start(self) -> None:
        """Begin the sum if it has not begun."""

    @abstractmethod
    def sum(self) -> Array:
        """Wait for the sum over all processes."""


class HostBucket(Bucket):
    """A bucket in host memory, which is summed from the moment it is put."""

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
    place = f"rank {communicator.rank} of {communicator.size}"
    print(f"{place} failed:\n{text}", file=sys.stderr)
    sys.stderr.flush()
