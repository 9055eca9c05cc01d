"""Auto-tuning: the fastest of several algorithms, measured on the device."""

from collections.abc import Callable, Sequence
from functools import cache
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")

#: How often each algorithm is measured.
_REPEATS = 5
#: Bytes that are written before each measurement, and how often. Operands come from
#: memory then, as they do in a plan, and the device is busy while a slow host puts the
#: algorithm on the stream, so that the time of the host is not measured.
_BYTES, _WRITES = 64 << 20, 4
#: An algorithm has to be quicker than the first by this factor to be taken.
_GAIN = 0.97


@cache
def _ballast(device: int) -> Any:
    import cupy

    return cupy.empty(_BYTES, "uint8")


def quickest(choices: Sequence[T], run: Callable[[T], None], device: int) -> T:
    """Return the one of ``choices`` for which ``run`` is fastest.

    Choices that raise a RuntimeError are skipped, except the first one. ``run``
    launches kernels on CuPy's current stream.
    """
    times = [_time(choice, run, device) for choice in choices]
    best = min(range(len(times)), key=times.__getitem__)
    return choices[best if times[best] < times[0] * _GAIN else 0]


def _time(choice: T, run: Callable[[T], None], device: int) -> float:
    """Return the median time in milliseconds, infinity if it fails."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    pairs = []
    try:
        run(choice)
        for _ in range(_REPEATS):
            for _ in range(_WRITES):
                _ballast(device).fill(0)
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            run(choice)
            end.record(stream)
            pairs.append((start, end))
        stream.synchronize()
    except RuntimeError:
        return float("inf")
    times = [cupy.cuda.get_elapsed_time(start, end) for start, end in pairs]
    return float(median(times))
