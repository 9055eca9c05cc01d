"""Memory hints for mapped files that are read sequentially."""

import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.lib.array_utils import byte_bounds

from burn.record.dtypes import Array

#: The minimum size for which a system call pays off.
_LEAST = 2**16
#: Linux maps a part of a file at once since 5.14; Python has no name for it yet.
_POPULATE_READ = 22 if sys.platform == "linux" else None


def read_ahead(array: Array) -> None:
    """Prefetch the part of a mapped file that ``array`` views, not page by page."""
    if _POPULATE_READ is not None:
        with suppress(OSError):  # an older kernel, or a file cut short: reading tells
            _advise(array, _POPULATE_READ)


def forget(array: Array) -> None:
    """Release the memory of the part of a read-only mapped file that ``array`` views.

    Otherwise a program that reads a file larger than its memory keeps it until the
    system reclaims it. Later reads load the file again. Other arrays are unaffected, in
    particular writable private maps.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        _advise(array, mmap.MADV_DONTNEED)


def _advise(array: Array, advice: int) -> None:
    """Pass advice to the system for the whole pages of a contiguous part of a file."""
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
    """Return the map that an array is a view of, through other arrays and views."""
    owner: object = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, mmap.mmap) else None
