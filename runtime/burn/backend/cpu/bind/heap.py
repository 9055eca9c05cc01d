"""Returning freed memory to the operating system."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def trim_heap() -> None:
    """Return freed memory to the system, where the C library can (glibc).

    Recording a plan frees about as much memory as the plan then allocates. glibc keeps
    small freed blocks, so that without trimming the process has both.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    trim: Callable[[int], int] | None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
