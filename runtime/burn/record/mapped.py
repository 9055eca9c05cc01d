"""Mapped files that are read once, from one end to the other."""

import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.lib.array_utils import byte_bounds

from burn.record.dtypes import Array

#: What is smaller is not worth a call of the system.
_LEAST = 2**16
#: Linux maps a part of a file at once since 5.14; Python has no name for it yet.
_POPULATE_READ = 22 if sys.platform == "linux" else None


def read_ahead(array: Array) -> None:
    """Have the part of a mapped file that ``array`` is at once, not page by page."""
    if _POPULATE_READ is not None:
        with suppress(OSError):  # an older kernel, or a file cut short: reading tells
            _advise(array, _POPULATE_READ)


def forget(array: Array) -> None:
    """Give back the memory of the part of a read-only mapped file that ``array`` is.

    A program that goes through a file larger than its memory would else hold all of it
    until the system takes it back. What is read again comes from the file again. Other
    arrays are left alone, above all those whose changes are in memory only.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        _advise(array, mmap.MADV_DONTNEED)


def _advise(array: Array, advice: int) -> None:
    """Tell the system something about the whole pages of an unbroken part of a file."""
    if array.nbytes < _LEAST or not array.flags.c_contiguous:
        return
    file = _map_below(array)
    if file is None or not memoryview(file).readonly:
        return
    origin = np.frombuffer(file, np.uint8).ctypes.data
    low, high = (bound - origin for bound in byte_bounds(array))
    low += -low % mmap.PAGESIZE
    high -= high % mmap.PAGESIZE
    if low < high:
        file.madvise(advice, low, high - low)


def _map_below(array: Array) -> mmap.mmap | None:
    """The map that an array is a view of, through other arrays and views."""
    owner: object = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, mmap.mmap) else None
