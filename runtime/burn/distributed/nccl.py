"""The NCCL communicator for GPUs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from burn.backend.base import Backend
from burn.backend.cuda.device import Cuda
from burn.distributed.communicator import Array, Bucket, Communicator, report_failure
from burn.distributed.launch import Launch, find_launch
from burn.tensor import Tensor, from_numpy

_MISSING = (
    "Nccl needs nccl4py, which the extra installs: "
    "pip install 'burn-runtime[nccl12]' (or nccl13 for CUDA 13)"
)
#: NCCL's variable for the address of rank 0, ``host:port``.
_ADDRESS = "NCCL_COMM_ID"


class Nccl(Communicator):
    """One process for each GPU, started by torchrun, Slurm or an MPI.

    The place of the process comes from the variables of the launcher
    (:func:`~burn.distributed.find_launch`), its GPU is that of its rank on the host.
    NCCL itself connects the processes, at the address of rank 0 that the launcher
    gives; with ``through``, another communicator, that one tells them where. Arrays
    are CuPy's or NumPy's, results are of the same kind. Operations on CuPy arrays are
    put on CuPy's current stream.

    An uncaught error is printed with the rank and ends the process at once; launchers
    then end the others, as they do when a process is killed.

    Args:
        device: the GPU; that of the local rank by default.
        through: exchanges NCCL's identifier instead of the launcher's address, for
            processes of several hosts without one: ``Nccl(through=Mpi())``.

    Raises:
        ImportError: nccl4py or CuPy is not installed.
        RuntimeError: there is no such GPU, or NCCL cannot connect the processes.
        ValueError: the launcher does not say where rank 0 is.
    """

    def __init__(
        self, device: int | None = None, *, through: Communicator | None = None
    ) -> None:
        try:
            import nccl.core as nccl
        except ImportError as error:
            raise ImportError(f"{_MISSING}: {error}") from error
        launch = find_launch()
        if through is not None:
            self._rank, self._size = through.rank, through.size
        else:
            self._rank, self._size = launch.rank, launch.size
        self._device = Cuda(_gpu(launch) if device is None else device)
        self._cupy, self._sum = self._device.cupy, nccl.SUM
        with self._device.current():
            key = _identifier(nccl, launch, through)
            self._nccl: Any = nccl.Communicator.init(self._size, self._rank, key)
            self.stream: Any = self._cupy.cuda.Stream(non_blocking=True)
        if self.size > 1:
            sys.excepthook = self._end_process

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    @property
    def device(self) -> Cuda:
        """The GPU of this process, on which its model must be."""
        return self._device

    def all_reduce(self, array: Array) -> Array:
        return self._result(array, self._summed)

    def broadcast(self, array: Array, root: int = 0) -> Array:
        def run(source: Any) -> Any:
            copy = source.copy()
            if copy.size:
                self._nccl.broadcast(copy, copy, root, stream=self._current())
            return copy

        return self._result(array, run)

    def all_gather(self, array: Array) -> Array:
        def run(source: Any) -> Any:
            shape = (self.size, *source.shape)
            gathered = self._cupy.empty(shape, source.dtype)
            if source.size:
                self._nccl.allgather(source, gathered, stream=self._current())
            return gathered

        return self._result(array, run)

    def barrier(self) -> None:
        self.all_reduce(np.zeros(1, np.float32))

    def sum_in_place(self, array: Any) -> None:
        """Sum a CuPy array over all processes in place, on the NCCL stream."""
        self._nccl.allreduce(array, array, self._sum, stream=self.stream.ptr)

    def bucket(self) -> Bucket:
        return GpuBucket(self)

    def overlaps_on(self, device: Backend) -> bool:
        return device is self._device

    def to_array(self, tensor: Tensor) -> Array:
        array: Array = tensor.data if tensor.backend is self._device else tensor.numpy()
        return array

    def to_tensor(self, array: Array, device: Backend) -> Tensor:
        if isinstance(array, np.ndarray):
            return from_numpy(array, device)
        return Tensor(array, self._device).to(device)

    def _summed(self, source: Any) -> Any:
        total = self._cupy.empty_like(source)
        if source.size:
            self._nccl.allreduce(source, total, self._sum, stream=self._current())
        return total

    def _current(self) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    def _result(self, array: Array, run: Callable[[Any], Any]) -> Array:
        """Return the result of ``run`` on the GPU, to which ``array`` is copied."""
        with self._device.current():
            result: Array = run(self._cupy.ascontiguousarray(self._cupy.asarray(array)))
            if isinstance(array, np.ndarray):
                return np.asarray(self._cupy.asnumpy(result))
            return result

    def _end_process(
        self,
        kind: type[BaseException],
        error: BaseException,
        stack: TracebackType | None,
    ) -> None:
        report_failure(self, kind, error, stack)
        os._exit(1)  # destructors would wait for kernels that wait for other processes


class GpuBucket(Bucket):
    """A bucket in GPU memory, whose reduction starts while the plan is running.

    The plan, which may be a CUDA graph, copies the vector here and then raises a
    counter in GPU memory. The communicator's stream waits for that counter, not for the
    end of the graph. If Python ran the call, as in a recording, it waits for the whole
    stream.
    """

    def __init__(self, communicator: Nccl) -> None:
        self._communicator = communicator
        self._cupy: Any = communicator.device.cupy
        #: The vector, and later its sum. Its address is fixed: graphs write to it.
        self._vector: Any = None
        with self._communicator.device.current():
            self._count = self._cupy.zeros(1, np.uint32)
        self._is_replayed = True

    def begin(self) -> None:
        with self._communicator.device.current():
            stream = self._cupy.cuda.get_current_stream()
            stream.wait_event(self._communicator.stream.record())  # the sum was read
            self._count.fill(0)
            self._communicator.stream.wait_event(stream.record())
        self._is_replayed = True

    def put(self, vector: Array, *, is_final: bool) -> Any:
        with self._communicator.device.current():
            if self._vector is None:
                self._vector = self._cupy.empty_like(vector)
            self._vector[...] = vector
            self._count += 1
            self._is_replayed = False
            return self._cupy.zeros(1, np.float32)

    def start(self) -> None:
        with self._communicator.device.current():
            ours = self._communicator.stream
            if self._is_replayed:
                _wait_for_value(ours.ptr, self._count.data.ptr)
            else:
                ours.wait_event(self._cupy.cuda.get_current_stream().record())
            self._communicator.sum_in_place(self._vector)

    def sum(self) -> Array:
        with self._communicator.device.current():
            stream = self._cupy.cuda.get_current_stream()
            stream.wait_event(self._communicator.stream.record())
        vector: Array = self._vector
        return vector


def _wait_for_value(stream: int, address: int) -> None:
    """Make a stream wait until the value at ``address`` is at least 1.

    Raises:
        RuntimeError: the driver returned an error.
    """
    from cuda.bindings import driver

    (status,) = driver.cuStreamWaitValue32(
        driver.CUstream(stream),
        driver.CUdeviceptr(address),
        1,
        int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ),
    )
    if int(status) != 0:
        raise RuntimeError(f"cuStreamWaitValue32: {status!r}")


def _gpu(launch: Launch) -> int:
    """Return the GPU of a process: the only visible one, or that of its local rank."""
    count = Cuda(0).cupy.cuda.runtime.getDeviceCount()
    return 0 if count == 1 else launch.local_rank


def _identifier(nccl: Any, launch: Launch, through: Communicator | None) -> Any:
    """Return NCCL's unique id of the job, the same in all processes."""
    if through is not None:
        key = np.frombuffer(bytes(nccl.get_unique_id()), np.uint8)
        return nccl.UniqueId.from_bytes(through.broadcast(key).tobytes())
    if launch.size > 1 and _ADDRESS not in os.environ:
        if launch.address is None:
            raise ValueError(
                f"{launch.source} does not say where rank 0 is: set MASTER_ADDR and "
                "MASTER_PORT, or pass through=Mpi()"
            )
        os.environ[_ADDRESS] = f"{launch.address}:{launch.port}"
    return nccl.get_unique_id()
