"""Kernel launches with programmatic dependent launch (compute capability 9).

The kernels read only constants before ``griddepcontrol.wait``, so they load weights
while the previous kernel ends. A kernel starts when all blocks of the one before have
reached ``START_NEXT``; if that comes before their wait, several kernels before it may
be unfinished.

``cached_attention`` reaches it after the wait. What it has read is complete for every
later kernel, so it is marked by :func:`burn.backend.cuda.libraries.settle`, and later
kernels may read it before they wait, as they may read inputs of the graph.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.libraries import is_recorded

#: CUDA C of the instructions, for the head of a kernel's source.
INSTRUCTIONS = """
#if __CUDA_ARCH__ >= 900
#define START_NEXT asm volatile("griddepcontrol.launch_dependents;");
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory");
#else
#define START_NEXT
#define WAIT
#endif
"""


class _Local(threading.local):
    """Whether kernels of a thread are launched early outside of captures too."""

    is_early = False


_LOCAL = _Local()
#: Handles of the functions that were launched so.
EARLY: set[int] = set()
_CAPABILITY = 90


def launch(
    kernel: Any, grid: tuple[int, ...], threads: int, args: Any, shared: int = 0
) -> None:
    """Launch ``kernel`` on CuPy's current stream, early if it is captured.

    ``args`` are CuPy arrays, addresses as ``np.uint64`` and NumPy scalars.
    """
    if (is_recorded() or _LOCAL.is_early) and _driver() is not None:
        _launch_early(kernel, grid, threads, args, shared)
    else:
        kernel(grid, (threads,), args, shared_mem=shared)


@contextmanager
def launching_early() -> Iterator[None]:
    """Launch early in this context, as in a captured graph, to measure kernels."""
    before, _LOCAL.is_early = _LOCAL.is_early, True
    try:
        yield
    finally:
        _LOCAL.is_early = before


@cache
def _driver() -> Any:
    """Return the driver bindings, None if kernels cannot start early."""
    import cupy

    if int(cupy.cuda.Device().compute_capability) < _CAPABILITY:
        return None
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    return driver


def _launch_early(
    kernel: Any, grid: tuple[int, ...], threads: int, args: Any, shared: int
) -> None:
    import cupy

    driver = _driver()
    function = int(kernel.kernel.ptr)
    EARLY.add(function)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = (*grid, 1, 1)[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(cupy.cuda.get_current_stream().ptr)
    attribute = driver.CUlaunchAttribute()
    names = driver.CUlaunchAttributeID
    attribute.id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    value = driver.CUlaunchAttributeValue()
    value.programmaticStreamSerializationAllowed = 1
    attribute.value = value
    config.attrs, config.numAttrs = [attribute], 1
    values = [_value(arg) for arg in args]
    pointers = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
    answer = driver.cuLaunchKernelEx(
        config, driver.CUfunction(function), ctypes.addressof(pointers), 0
    )
    if int(answer[0]):
        raise RuntimeError(f"a kernel cannot be launched: {answer[0]}")


def _value(arg: Any) -> Any:
    """Return an argument in host memory."""
    if isinstance(arg, np.generic):
        return np.asarray(arg)
    return np.asarray(np.uint64(arg.data.ptr))
