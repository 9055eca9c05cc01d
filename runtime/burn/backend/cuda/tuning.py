"""Auto-tuning: the fastest of several algorithms, measured on the device."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from math import ceil
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from burn.backend.cuda.dependent_launch import INSTRUCTIONS, launching_early
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.libraries import is_capturing

T = TypeVar("T")

#: The number of kernels that are compiled concurrently.
_COMPILERS = 8
#: How often each algorithm is measured.
_REPEATS = 7
#: Bytes that are read before each measurement, and how often at least. Operands come
#: from memory then, as they do in a plan, and the device is busy while a slow host puts
#: the algorithm on the stream, so that the time of the host is not measured. Written
#: bytes would go to memory while the algorithm reads its operands.
_BYTES, _READS = 64 << 20, 4
#: An upper bound of the bytes that are read in a second, and how many times as long as
#: the host takes for an algorithm the device is kept busy.
_BANDWIDTH, _MARGIN = 5e12, 2.0
_THREADS = 256
#: Blocks of each multiprocessor of the kernel that reads. The last one before an
#: algorithm that starts early has fewer, to leave room for its first blocks.
_BLOCKS, _FEW_BLOCKS = 8, 2
_SOURCE = INSTRUCTIONS + """
extern "C" __global__ void read_all(const uint4* x, unsigned* out, long long count) {
    START_NEXT
    unsigned sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    #pragma unroll 8
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint4 v = x[i];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x9e3779b9u) out[0] = sum;  // or the reads are optimized away
}
"""
#: An algorithm has to be quicker than the first by this factor to be taken.
_GAIN = 0.97


@cache
def _reader() -> Any:
    import cupy

    return cupy.RawKernel(_SOURCE, "read_all")


def is_tuning(device: int) -> bool:
    """Return whether this thread prepares a CUDA graph with the fastest algorithms."""
    return is_capturing() and Cuda(device).tuning


def compile_all(kernels: Iterable[Any], device: int) -> None:
    """Compile kernels of CuPy at the same time, those that are not compiled yet."""
    import cupy

    def compiled(kernel: Any) -> None:
        with cupy.cuda.Device(device):
            kernel.compile()

    with ThreadPoolExecutor(_COMPILERS) as pool:
        list(pool.map(compiled, kernels))


def quickest(
    choices: Sequence[T],
    run: Callable[[T], None],
    device: int,
    overlaps: bool = False,
) -> T:
    """Return the one of ``choices`` for which ``run`` is fastest.

    Choices that raise a RuntimeError are skipped, except the first one. ``run``
    launches kernels on CuPy's current stream. With ``overlaps`` a choice is measured
    as the successor of a kernel that it can overlap with.
    """
    import cupy

    with cupy.cuda.Device(device) as current:
        ballast = cupy.zeros(_BYTES // 4, "uint32")
        processors = current.attributes["MultiProcessorCount"]
        timed = partial(_time, ballast=ballast, processors=processors)
        if not overlaps:
            times = [timed(partial(run, choice)) for choice in choices]
        else:
            with launching_early():
                alone = timed(lambda: None, overlaps=True)
                times = [
                    max(timed(partial(run, choice), overlaps=True) - alone, 0.0)
                    for choice in choices
                ]
    best = min(range(len(times)), key=times.__getitem__)
    return choices[best if times[best] < times[0] * _GAIN else 0]


def keeps_nan(run: Callable[[Any], None], operand: Any, out: Any) -> bool:
    """Return whether ``run`` of an operand of NaN writes NaN to all of ``out``.

    Some kernels compute a ReLU by an instruction that returns the other operand for
    NaN. ``run`` gets an array with the memory of ``operand`` and not its shape.
    """
    import cupy

    pairs = zip(operand.shape, operand.strides, strict=True)
    size = 1 + sum((n - 1) * step for n, step in pairs) // operand.itemsize
    try:
        run(cupy.full(size, cupy.nan, operand.dtype))
    except RuntimeError:
        return False
    return bool(cupy.isnan(out).all())


def _time(
    run: Callable[[], None], ballast: Any, processors: int, overlaps: bool = False
) -> float:
    """Return the median time in milliseconds, infinity if it fails.

    With ``overlaps`` it contains the time of the kernel before.
    """
    import cupy

    stream = cupy.cuda.get_current_stream()
    args = (ballast, ballast, np.int64(ballast.nbytes // 16))
    pairs = []
    try:
        run()  # not measured: it may compile
        begin = perf_counter()
        run()
        host = perf_counter() - begin
        reads = max(_READS, ceil(_MARGIN * host * _BANDWIDTH / ballast.nbytes))
        for _ in range(_REPEATS):
            for _ in range(reads):
                _reader()((_BLOCKS * processors,), (_THREADS,), args)
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            if overlaps:
                _reader()((_FEW_BLOCKS * processors,), (_THREADS,), args)
            run()
            end.record(stream)
            pairs.append((start, end))
        stream.synchronize()
    except RuntimeError:
        return float("inf")
    times = [cupy.cuda.get_elapsed_time(start, end) for start, end in pairs]
    return float(median(times))
