"""NVIDIA's libraries: their Python packages, handles and workspaces.

A handle belongs to one thread and one device. Workspaces belong to a stream as well,
because kernels of different streams run at the same time.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from burn.ops.support import uploading

#: Bytes of scratch memory that cuBLASLt may use in one call.
WORKSPACE = 32 << 20
#: Consecutive calls use different scratch memory: kernels of cuDNN and cuBLASLt are
#: launched with programmatic dependent launch, so the prologue of one, which clears its
#: workspace, runs while the kernels before it still read theirs.
_WORKSPACES = 4


class Workspaces:
    """Scratch memory for the calls on one stream, used in rotation."""

    def __init__(self) -> None:
        self._blocks: list[Any] = [None] * _WORKSPACES
        self._turn = 0
        self._mark: Any = None
        #: Blocks that were too small for a later call; captured kernels still use them.
        self._outgrown: list[Any] = []

    def take(self, size: int) -> int:
        """Return the address of ``size`` bytes that the previous calls do not use."""
        import cupy

        self._turn = (self._turn + 1) % _WORKSPACES
        block = self._blocks[self._turn]
        if block is None or block.nbytes < size:
            self._outgrown.append(block)
            block = self._blocks[self._turn] = cupy.empty(max(size, 1), np.uint8)
        return int(block.data.ptr)

    def separate(self, stream: int) -> None:
        """Prevent the next kernel on ``stream`` from starting before earlier ones end.

        Library kernels use programmatic launches: they may start before earlier kernels
        have ended, and read unfinished results. After a fill they start like any
        kernel.
        """
        import cupy

        if self._mark is None:
            self._mark = cupy.zeros(1, np.int32)
        cupy.cuda.runtime.memsetAsync(self._mark.data.ptr, 0, 4, stream)


class _Local(threading.local):
    """The handles and workspaces of a thread."""

    def __init__(self) -> None:
        self.handles: dict[tuple[str, int], Any] = {}
        self.workspaces: dict[tuple[int, int], Workspaces] = {}
        self.capture: CaptureMemory | None = None


_LOCAL = _Local()


@cache
def cudnn() -> Any:
    """Return the package ``cudnn`` (nvidia-cudnn-frontend), else warn, return None."""
    return _package("cudnn", "nvidia-cudnn-frontend", "Convolutions")


@cache
def cublas_lt() -> Any:
    """Return the bindings of cuBLASLt (nvmath-python), else warn and return None."""
    return _package("nvmath.bindings.cublasLt", "nvmath-python", "Matrix products")


def _package(module: str, wheel: str, users: str) -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError, RuntimeError) as error:
        warnings.warn(
            f"{users} on CUDA devices run on CuPy alone, which is slower: {wheel} is "
            f"not usable ({error}); pip install 'burn-runtime[cuda]'",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def cudnn_handle(device: int, stream: int) -> Any:
    """Return the calling thread's cuDNN handle of ``device``, set to ``stream``."""
    handle = _LOCAL.handles.get(("cudnn", device))
    if handle is None:
        handle = _LOCAL.handles["cudnn", device] = cudnn().create_handle()
    cudnn().set_stream(handle=handle, stream=stream)
    return handle


def lt_handle(device: int) -> int:
    """Return the calling thread's cuBLASLt handle of ``device``."""
    handle = _LOCAL.handles.get(("lt", device))
    if handle is None:
        handle = _LOCAL.handles["lt", device] = cublas_lt().create()
    return int(handle)


class CaptureMemory:
    """Memory that the kernels of a CUDA graph share and that the graph must own.

    ``pool``, a memory pool of CuPy, holds arrays that live as long as the graph. With
    ``separates`` fills enforce full dependencies.
    """

    def __init__(self, pool: Any, separates: bool = False) -> None:
        self._pool = pool
        self._constants: dict[int, Any] = {}
        self._packed: dict[tuple[int, Any], Any] = {}
        self._counters: dict[int, Any] = {}
        #: Arrays of the host on the device, by dtype, shape and content.
        self._uploads: dict[Any, Any] = {}
        #: Of the graph alone: graphs may run at the same time.
        self.workspaces = Workspaces()
        self.separates = separates
        #: Whether work on the stream is being captured.
        self.is_recorded = False
        #: The arrays, by address, that are complete before any later kernel starts.
        self._settled: dict[int, Any] = {}

    def add_constants(self, arrays: Iterable[Any]) -> None:
        """Add arrays that do not change while the graph is used."""
        self._constants |= {id(array): array for array in arrays}

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """Allocate memory in this context that lasts as long as the graph."""
        import cupy

        with cupy.cuda.using_allocator(self._pool.malloc):
            yield

    def uploaded(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy of ``array`` on the device, the same for equal arrays."""
        import cupy

        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._uploads:
            with self.lasting():
                self._uploads[key] = cupy.asarray(array)
        return self._uploads[key]

    def free_unused(self) -> None:
        """Release the free blocks of the pool. No kernel may be running."""
        self._pool.free_all_blocks()

    def close(self) -> None:
        """Release all memory without other references."""
        self._constants, self._packed, self._counters, self._settled = {}, {}, {}, {}
        self._uploads = {}
        self.workspaces = Workspaces()
        self.free_unused()

    @contextmanager
    def recorded(self, complete: Iterable[Any] = ()) -> Iterator[None]:
        """Mark the work on the stream in this context as captured.

        ``complete`` are arrays that are complete before the graph is launched. The work
        has scratch memory of its own, as large as the chosen algorithms need.
        """
        self.is_recorded, self.workspaces = True, Workspaces()
        self._settled = {}
        self.settle((*self._constants.values(), *complete))
        try:
            yield
        finally:
            self.is_recorded = False

    def settle(self, arrays: Iterable[Any]) -> None:
        """Mark arrays as complete before any later kernel of the graph starts."""
        for array in arrays:
            address = _address(array)
            if address is not None:  # kept: no other array gets its memory
                self._settled[address] = array

    def are_settled(self, arrays: Iterable[Any]) -> bool:
        """Return whether all arrays of CuPy among these were marked."""
        addresses = map(_address, arrays)
        return all(a is None or a in self._settled for a in addresses)

    def packed(self, array: Any, layout: Any, pack: Callable[[Any], Any]) -> Any:
        """Return ``pack(array)``, computed once if the array is a constant."""
        if id(array) not in self._constants:
            return pack(array)
        key = (id(array), layout)
        if key not in self._packed:
            with self.lasting():
                self._packed[key] = pack(array)
        return self._packed[key]

    def counters(self, count: int) -> Any:
        """Return ``count`` integers that are zero between kernels, which reset them."""
        import cupy

        if count not in self._counters:
            with self.lasting():
                self._counters[count] = cupy.zeros(count, np.uint32)
        return self._counters[count]


def _address(array: Any) -> int | None:
    """Return the address of an array of CuPy, None for anything else."""
    pointer = getattr(getattr(array, "data", None), "ptr", None)
    return None if pointer is None else int(pointer)


@contextmanager
def capturing(memory: CaptureMemory) -> Iterator[None]:
    """Make kernels allocate from ``memory`` in this context and thread."""
    before, _LOCAL.capture = _LOCAL.capture, memory
    try:
        with uploading(memory.uploaded):
            yield
    finally:
        _LOCAL.capture = before


def is_capturing() -> bool:
    """Return whether this thread prepares a CUDA graph, so that tuning pays off."""
    return _LOCAL.capture is not None


def is_recorded() -> bool:
    """Return whether launches of this thread are captured without fills between."""
    memory = _LOCAL.capture
    return memory is not None and memory.is_recorded and not memory.separates


def settle(arrays: Iterable[Any]) -> None:
    """Mark the operands of a kernel that later ones start after, in a capture.

    Those are complete for all later kernels.
    """
    if is_recorded():
        assert _LOCAL.capture is not None
        _LOCAL.capture.settle(arrays)


def are_settled(arrays: Iterable[Any]) -> bool:
    """Return whether arrays are complete before any later kernel starts.

    Outside of captures kernels do not start early.
    """
    if not is_recorded():
        return True
    assert _LOCAL.capture is not None
    return _LOCAL.capture.are_settled(arrays)


def counters(count: int) -> Any:
    """Return ``count`` integers on the device that are zero; kernels reset them."""
    import cupy

    memory = _LOCAL.capture
    return cupy.zeros(count, np.uint32) if memory is None else memory.counters(count)


def pack_once(array: Any, layout: Any, pack: Callable[[Any], Any]) -> Any:
    """Return ``pack(array)``; a CUDA graph computes it once for parameters."""
    capture = _LOCAL.capture
    return pack(array) if capture is None else capture.packed(array, layout, pack)


def workspace(device: int, stream: int, size: int) -> int:
    """Return the address of ``size`` bytes or more of scratch memory for ``stream``."""
    capture = _LOCAL.capture
    if capture is None:
        spaces = _LOCAL.workspaces.setdefault((device, stream), Workspaces())
    else:
        spaces = capture.workspaces
    # The dependencies of kernels in a graph are its edges.
    if capture is None or capture.separates or not capture.is_recorded:
        spaces.separate(stream)
    return spaces.take(size)
