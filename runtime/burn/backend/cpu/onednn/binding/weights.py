"""Packing of operands into layouts that a primitive chooses."""

from collections.abc import Callable

import numpy as np

from burn.backend.cpu.onednn.binding.api import ANY_LAYOUT as ANY_LAYOUT
from burn.backend.cpu.onednn.binding.cache import Packed, Primitives
from burn.backend.cpu.onednn.binding.capture import empty, noted_by, noting
from burn.backend.cpu.onednn.binding.memory import Array, Handle, address
from burn.backend.cpu.onednn.binding.prepared import Description
from burn.backend.cpu.onednn.binding.scratch import Block

_BYTE = np.dtype(np.uint8)


class Weights:
    """The conversion of a primitive's weights into the required layout.

    ``given`` describes the array, or the result of ``arrange``; ``which`` and ``index``
    select the descriptor of ``description``.
    """

    __slots__ = ("_arrange", "_given", "_key", "_packed", "_reorder", "_size")

    def __init__(
        self,
        primitives: Primitives,
        packed: Packed,
        given: Handle,
        view: tuple[object, ...],
        description: Description,
        which: int,
        index: int = 0,
        arrange: Callable[[Array], Array] | None = None,
    ) -> None:
        api = primitives.api
        wanted = description.descriptor(which, index)
        self._given, self._packed, self._arrange = given, packed, arrange
        self._size = api.size_of(wanted)
        self._reorder = None
        if arrange is not None or not api.same(given, wanted):
            self._reorder = primitives.reorder(given, wanted)
            assert self._reorder is not None
        # One array is read in different ways, by a convolution and by its transpose.
        self._key = (packed.layout(description, which, index), view)

    def place(self, array: Array) -> int:
        """Return the address of ``array`` in the required layout."""
        if self._reorder is None:
            return address(array)
        notes = noting()
        if notes is not None and not notes.is_constant(array):
            memory = empty((self._size,), _BYTE)
            self._write(array, address(memory))
            return address(memory)
        block = self._packed.get(array, self._key, self._pack)
        if notes is not None:
            notes.keep(block)
        return block.address

    def _pack(self, array: Array) -> Block:
        block = Block(self._size)
        with noted_by(None):
            self._write(array, block.address)
        return block

    def _write(self, array: Array, target: int) -> None:
        assert self._reorder is not None
        given = array if self._arrange is None else self._arrange(array)
        self._reorder.run(address(given), target)
