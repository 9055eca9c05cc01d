"""Arrays that are the same in each run of a plan."""

from collections import Counter
from typing import Any

import numpy as np

from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array
from burn.record.memory_advice import forget


class Constants:
    """Constant arrays by identity and by start address, until they are dropped."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._starts: dict[int, list[Array]] = {}

    def copy(self) -> "Constants":
        """Return an independent copy."""
        other = Constants()
        other._counts = Counter(self._counts)
        other._starts = {start: list(arrays) for start, arrays in self._starts.items()}
        return other

    def __contains__(self, array: Array) -> bool:
        return id(array) in self._counts

    def at(self, start: int) -> list[Array]:
        """Return the constants that start at an address."""
        return self._starts.get(start, [])

    def add(self, array: Any) -> None:
        """Register a constant array, with a reference count."""
        if isinstance(array, np.ndarray):
            self._counts[id(array)] += 1
            self._starts.setdefault(address(array), []).append(array)

    def drop(self, array: Any) -> None:
        """Release an array that only prepared calls still read.

        Weights are read in packed form: the pages of their file are not needed.
        """
        if not isinstance(array, np.ndarray):
            return
        self._counts[id(array)] -= 1
        if not self._counts[id(array)]:
            del self._counts[id(array)]
            arrays = self._starts[address(array)]
            arrays[:] = [other for other in arrays if other is not array]
            forget(array)
