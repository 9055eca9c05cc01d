"""What processes that train together exchange arrays through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

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
