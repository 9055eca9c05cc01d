"""Threads of generated kernels, where there is no OpenMP of oneDNN to share."""

import os
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_size_t, c_void_p
from functools import cache, partial
from typing import Any

from burn.backend.cpu.onednn.binding.engine import loaded
from burn.backend.cpu.onednn.binding.thread_limit import limit_in_force

#: A kernel of less work (in additions) is done by one thread: another one needs some
#: hundredths of a millisecond to wake up.
POOLED = 3_200_000


def thread_count() -> int:
    """Return how many threads may compute a kernel for the calling thread.

    They are one for each processor of this process, and no more than
    ``OMP_NUM_THREADS`` and the limits in force.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if given.isdecimal() and int(given):
        count = min(count, int(given))
    return min(count, limit_in_force() or count)


def parallel_parts(most: int) -> int:
    """Return into how many parts the work of a kernel is cut, one for each thread."""
    session = loaded()
    threads = session.api.threads if session is not None else thread_count()
    return max(min(threads, most), 1)


def shared_call(
    function: int, data: int, parts: int, threads: int
) -> Callable[[], None]:
    """Return the call of a function of data and a range of ``parts`` by ``threads``."""
    bounds = [parts * number // threads for number in range(threads + 1)]
    run = CFUNCTYPE(None, c_void_p, c_size_t, c_size_t)(function)
    calls = [
        partial(run, data, low, high)
        for low, high in zip(bounds, bounds[1:], strict=False)
    ]
    return partial(_run, calls)


def _run(calls: Sequence[Callable[[], None]]) -> None:
    first, *others = calls
    pool = _pool()
    waiting = [pool.submit(call) for call in others]
    first()
    for result in waiting:
        result.result()


@cache
def _pool() -> Any:
    from concurrent.futures import ThreadPoolExecutor  # not where there is OpenMP

    return ThreadPoolExecutor(os.cpu_count(), "burn-kernels")


if hasattr(os, "register_at_fork"):
    # The threads of a pool are not in a child.
    os.register_at_fork(after_in_child=_pool.cache_clear)
