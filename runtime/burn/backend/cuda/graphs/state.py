"""State of CUDA graphs: boxes whose values are in memory of the graph.

The graph writes new values to separate memory. Another kernel copies them over the old
values after the graph, so that a graph can be launched for verification. If a new value
differs in a slice only, the graph computes just the slice. Boxes refer to memory of the
graph, and get a copy when other code reads them. The graphs of one plan share the
memory of a box.
"""

import threading
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend.cuda.graphs.program import Program
from burn.backend.cuda.kernels.slices import slices_table, write_slices
from burn.box import Box
from burn.tensor import Tensor, innermost

if TYPE_CHECKING:
    from burn.backend.cuda.device import Cuda

#: Bytes that a block of threads copies, and its threads.
_CHUNK, _THREADS = 1 << 16, 256
_SOURCE = """
struct Part { char* target; const char* source; long long bytes; };
extern "C" __global__ void copy_parts(const Part* parts) {
    const Part part = parts[blockIdx.x];
    const unsigned long long ends = (unsigned long long)part.target
        | (unsigned long long)part.source | (unsigned long long)part.bytes;
    if (ends % 16 == 0) {
        for (long long i = threadIdx.x; i < part.bytes / 16; i += blockDim.x)
            ((uint4*)part.target)[i] = ((const uint4*)part.source)[i];
        return;
    }
    for (long long i = threadIdx.x; i < part.bytes; i += blockDim.x)
        part.target[i] = part.source[i];
}
"""


class BoxMemory:
    """Memory with the value that a box had in a version."""

    def __init__(self, array: Any, version: int) -> None:
        self.array, self.version = array, version


class SharedState:
    """The memory of boxes that the graphs of a plan share."""

    def __init__(self) -> None:
        self.held: dict[Box, BoxMemory] = {}
        #: Held while the memory is written, and while it is copied for others.
        self.lock = threading.Lock()
        self._done: Any = None

    def done(self, device: "Cuda") -> Any:
        """Return the event after the last graph."""
        if self._done is None:
            self._done = device.cupy.cuda.Event(disable_timing=True)
        return self._done


class State:
    """The values of the boxes that ``program`` sets, in the order of its writes."""

    def __init__(
        self, program: Program, device: "Cuda", shared: SharedState | None = None
    ) -> None:
        self._device, self._program = device, program
        shared = shared or SharedState()
        self.lock, self.done = shared.lock, shared.done(device)
        self._parts: Any = None
        self._slices: Any = None
        self._held: dict[Box, BoxMemory] = {}
        #: Boxes whose memory other graphs use, so that its layout stays.
        self._kept = {box for box in program.reads if box in shared.held}
        for box, read in program.reads.items():
            if box not in self._kept:
                version = box.version  # first: it is set, and then counted
                array = innermost(read.held()).data.copy(order="K")
                shared.held[box] = BoxMemory(array, version)
            self._held[box] = shared.held[box]

    def __bool__(self) -> bool:
        return bool(self._program.writes)

    def values(self) -> dict[int, Any]:
        """Return the read values by place."""
        reads = self._program.reads.items()
        return {read.place: self._held[box].array for box, read in reads}

    def lay_out(self, written: list[Any]) -> None:
        """Store values in the memory order of the ``written`` new values."""
        cupy = self._device.cupy
        for box, value in zip(self._program.writes, written, strict=True):
            held = self._held.get(box)
            if held is None:  # set, but never read
                held = self._held[box] = BoxMemory(None, -1)
            if box in self._program.slices:
                if not held.array.flags.c_contiguous:
                    array = cupy.ascontiguousarray(held.array)
                    self._held[box] = BoxMemory(array, held.version)
                continue
            if box in self._kept:
                continue
            target = cupy.empty_like(value.data, order="K")
            if held.array is not None:
                target[...] = held.array
            held.array = target

    def separate_values(self, written: list[Any]) -> list[Any]:
        """Return the new values in the layout of the old ones, in separate memory."""
        addresses = {held.array.data.mem.ptr for held in self._held.values()}
        arrays = []
        for box, value in zip(self._program.writes, written, strict=True):
            if box in self._program.slices:
                arrays.append(tuple(part.data for part in value))
                continue
            target, array = self._held[box].array, value.data
            if array.strides != target.strides or array.data.mem.ptr in addresses:
                array = self._device.cupy.empty_like(target, order="K")
                array[...] = value.data
            arrays.append(array)
        return arrays

    def set_outputs(self, arrays: list[Any]) -> None:
        """Set the arrays that :meth:`commit` copies, which a graph writes."""
        table, slices = [], []
        for box, array in zip(self._program.writes, arrays, strict=True):
            if box in self._program.slices:
                target = self._held[box].array
                slices.append((target, *array, self._program.slices[box]))
                continue
            target, size = self._held[box].array.data.ptr, array.nbytes
            for at in range(0, size, _CHUNK):
                row = (target + at, array.data.ptr + at, min(_CHUNK, size - at))
                table.append(row)
        self._parts = self._device.cupy.asarray(np.array(table, np.int64))
        self._slices = slices_table(slices) if slices else None

    def refresh(self) -> None:
        """Copy the values of boxes that other code has set.

        Raises:
            UnforeseenError: a box moved to another backend.
        """
        for box, read in self._program.reads.items():
            held, version = self._held[box], box.version  # before the value is read
            if version != held.version:
                held.array[...] = innermost(read.held()).data
                held.version = version

    def commit(self, stream: Any) -> None:
        """Set boxes to the values that the graph computed earlier on ``stream``."""
        if self._slices is not None:  # first: where they start may be another box
            write_slices(self._slices)
        if len(self._parts):
            _kernel()((len(self._parts),), (_THREADS,), (self._parts,))
        self.done.record(stream)
        for box in self._program.writes:
            held = self._held[box]
            held.version = box.lend(partial(self._copy_tensor, held.array))

    def _copy_tensor(self, target: Any) -> Tensor:
        with self.lock, self._device.current():
            stream = self._device.cupy.cuda.get_current_stream()
            stream.wait_event(self.done)
            copy = target.copy(order="K")
            stream.synchronize()
        return Tensor(copy, self._device)


@cache
def _kernel() -> Any:
    import cupy

    return cupy.RawKernel(_SOURCE, "copy_parts")
