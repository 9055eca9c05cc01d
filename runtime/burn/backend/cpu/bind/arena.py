"""The arena of a plan: memory that values with disjoint lifetimes share."""

from bisect import bisect_right, insort

import numpy as np

from burn.ops.support import Array

_ALIGNMENT = 64
#: A chunk after the first one has at least the size of all together divided by this.
GROWTH = 8


class Buffer:
    """A memory range, and the number of values in it."""

    __slots__ = ("chunk", "end", "start", "users")

    def __init__(self, chunk: int, start: int, end: int) -> None:
        self.chunk, self.start, self.end = chunk, start, end
        self.users = 0


class Arena:
    """Memory chunks at fixed addresses, with a free list of each.

    The first chunk has ``size`` bytes, an estimate of the peak memory; others are added
    when no free range is large enough.
    """

    def __init__(self, size: int) -> None:
        self._next, self._total = max(size, 4096), 0
        self._chunks: list[Array] = []
        self._free: list[list[tuple[int, int]]] = []
        self._used: list[tuple[int, int, Buffer]] = []

    def branched(self) -> "Arena":
        """Return an arena with the same chunks and its own free lists, for a branch."""
        other = Arena(self._next)
        other._total = self._total
        other._chunks = list(self._chunks)
        other._free = [list(free) for free in self._free]
        copies = {id(b): _copy_buffer(b) for _, _, b in self._used}
        other._used = [(low, high, copies[id(b)]) for low, high, b in self._used]
        return other

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype, *, apart: bool = False
    ) -> tuple[Array, Buffer]:
        """Return row-major memory, and its buffer for :meth:`release`.

        With ``apart`` the memory is not shared with other branches.
        """
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        size = max(-(-size // _ALIGNMENT) * _ALIGNMENT, _ALIGNMENT)
        if apart:
            self._grow(size)
            self._total -= size  # chunks of one value tell nothing of the next ones
            self._free[-1] = []
        chunk, start = (len(self._chunks) - 1, 0) if apart else self._best_fit(size)
        memory, end = self._chunks[chunk], start + size
        array: Array = np.ndarray(shape, dtype, buffer=memory.data, offset=start)
        buffer = Buffer(chunk, start, end)
        low = memory.ctypes.data + start
        insort(self._used, (low, low + end - start, buffer), key=lambda used: used[0])
        return array, buffer

    def owner(self, array: Array) -> Buffer | None:
        """Return the buffer that contains ``array``, None if it is not in the arena."""
        low, _ = np.lib.array_utils.byte_bounds(array)
        position = bisect_right(self._used, low, key=lambda used: used[0]) - 1
        if position < 0 or low >= self._used[position][1]:
            return None
        return self._used[position][2]

    def span(self, buffer: Buffer) -> tuple[int, int]:
        """Return the first address of ``buffer`` and the one after its end."""
        start = self._chunks[buffer.chunk].ctypes.data
        return start + buffer.start, start + buffer.end

    def release(self, buffer: Buffer) -> None:
        """Return the memory of ``buffer`` to the free list."""
        free = self._free[buffer.chunk]
        position = bisect_right(free, (buffer.start, buffer.end))
        start, end = buffer.start, buffer.end
        if position < len(free) and free[position][0] == end:
            end = free.pop(position)[1]
        if position and free[position - 1][1] == start:
            start = free.pop(position - 1)[0]
            position -= 1
        free.insert(position, (start, end))
        self._used = [used for used in self._used if used[2] is not buffer]

    def _best_fit(self, size: int) -> tuple[int, int]:
        """Return the chunk and offset of the smallest free range that fits."""
        fits = [
            (end - start, chunk, position)
            for chunk, free in enumerate(self._free)
            for position, (start, end) in enumerate(free)
            if end - start >= size
        ]
        if not fits:
            self._grow(max(size, self._next))
            self._next = self._total // GROWTH
            return self._best_fit(size)
        _, chunk, position = min(fits)
        start, end = self._free[chunk][position]
        if end - start == size:
            self._free[chunk].pop(position)
        else:
            self._free[chunk][position] = (start + size, end)
        return chunk, start

    def _grow(self, size: int) -> None:
        raw: Array = np.empty(size + _ALIGNMENT, np.uint8)
        self._total += size
        first = -raw.ctypes.data % _ALIGNMENT
        self._chunks.append(raw[first : first + size])
        self._free.append([(0, size)])


class Releases:
    """Buffers to be returned to an arena, of which up to ``held`` bytes are held back.

    A fused kernel reads its operands until its last call.
    """

    def __init__(self, arena: Arena, *, held: int) -> None:
        self._arena, self._held = arena, held
        self._buffers: list[Buffer] = []

    def add(self, buffers: list[Buffer]) -> None:
        """Release the buffers, unless they are small enough in total."""
        self._buffers += buffers
        size = sum(buffer.end - buffer.start for buffer in self._buffers)
        if size > self._held:
            self.release()

    def release(self) -> None:
        """Release all held buffers."""
        for buffer in self._buffers:
            self._arena.release(buffer)
        self._buffers = []


def _copy_buffer(buffer: Buffer) -> Buffer:
    copy = Buffer(buffer.chunk, buffer.start, buffer.end)
    copy.users = buffer.users
    return copy
