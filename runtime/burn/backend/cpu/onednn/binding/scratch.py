"""Aligned memory, and scratchpads of primitives."""

from typing import Any

import numpy as np

from burn.backend.cpu.onednn.binding.api import Api
from burn.backend.cpu.onednn.binding.memory import Handle, address

_ALIGNMENT = 64


class Block:
    """``size`` bytes, aligned to a cache line."""

    __slots__ = ("_bytes", "address", "size")

    def __init__(self, size: int) -> None:
        self._bytes: np.ndarray[Any, Any] = np.empty(size + _ALIGNMENT, np.uint8)
        self.address = -(-address(self._bytes) // _ALIGNMENT) * _ALIGNMENT
        self.size = size


class Scratch:
    """The scratchpad of the primitives of one thread.

    Outgrown blocks are kept, since memory objects point to them; each block is at least
    twice as large as the one before, so they are less than half of the total.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._blocks: list[Block] = []

    def memory(self, descriptor: int, size: int) -> Handle:
        """Return a memory object of ``size`` bytes, for a primitive of this thread."""
        largest = self._blocks[-1].size if self._blocks else 0
        if size > largest:
            self._blocks.append(Block(max(size, 2 * largest)))
        address = self._blocks[-1].address
        where = (descriptor, self._api.engine, address)
        return Handle(self._api, "memory", "memory_create", *where)
