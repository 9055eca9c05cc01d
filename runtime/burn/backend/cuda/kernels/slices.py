"""Slice updates at positions in tensors, several in one kernel."""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.ops.caches import update_slice as update_slice_op
from burn.ops.support import Array

_THREADS = 128
_WRITE = r"""
extern "C" __global__ void write_slices(const long long* table) {
    const long long* row = table + blockIdx.x * 8LL;
    char* target = (char*)row[0];
    const char* source = (const char*)row[1];
    const long long outer = row[3], bytes = row[4], target_step = row[5];
    long long start = *(const long long*)row[2] * row[6];
    const long long most = target_step - bytes;
    start = start < 0 ? 0 : start > most ? most : start;
    const bool is_wide = ((row[0] | row[1] | bytes | target_step | start) & 15) == 0;
    const int size = is_wide ? 16 : 1;
    const long long each = bytes / size;
    for (long long i = threadIdx.x; i < outer * each; i += blockDim.x) {
        char* to = target + i / each * target_step + start + i % each * size;
        const char* from = source + i * size;
        if (is_wide) *(uint4*)to = *(const uint4*)from;
        else *to = *from;
    }
}
"""


@update_slice_op.on(Cuda)
def update_slice(x: Array, update: Array, start: Array, *, axis: int = -2) -> Array:
    """Compute :func:`burn.ops.caches.update_slice`, with ``start`` on the device."""
    import cupy

    out = cupy.array(x, order="C")
    start = cupy.asarray(start, np.int64)
    write_slices(slices_table([(out, update, start, axis)]))
    return out


def slices_table(slices: list[tuple[Array, Array, Array, int]]) -> tuple[Any, Any]:
    """Return the table of updates of ``x`` by ``update`` from ``start`` along ``axis``.

    It is on the device; the second result are arrays that must live as long. Each ``x``
    is row-major; updates that are not are copied.
    """
    import cupy

    rows, arrays = [], []
    for x, update, start, axis in slices:
        axis %= x.ndim
        if not axis:
            x, update, axis = x[None], update[None], 1
        if not all(part.flags.c_contiguous for part in update):
            update = cupy.ascontiguousarray(update)
        if start.dtype != np.int64:
            start = start.astype(np.int64)
        inner = prod(x.shape[axis + 1 :]) * x.itemsize
        outer = prod(x.shape[1:axis])
        sizes = (outer, update.shape[axis] * inner, x.shape[axis] * inner, inner, 0)
        for target, source in zip(x, update, strict=True):
            rows.append((target.data.ptr, source.data.ptr, start.data.ptr, *sizes))
        arrays += [x, update, start]
    return cupy.asarray(np.array(rows, np.int64).reshape(-1, 8)), arrays


def write_slices(table: tuple[Any, Any]) -> None:
    """Execute the updates of a table on CuPy's current stream."""
    rows, _ = table
    if len(rows):
        _write_kernel()((len(rows),), (_THREADS,), (rows,))


@cache
def _write_kernel() -> Any:
    import cupy

    return cupy.RawKernel(_WRITE, "write_slices")
