"""The MPI communicator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from burn.distributed.communicator import Array, Communicator, report_failure
from burn.distributed.launch import find_launch


class Mpi(Communicator):
    """All processes that ``mpiexec`` started, or this one alone without it.

    With several processes an uncaught error ends all of them: it is printed with the
    rank, and the job exits with 1. Otherwise the others would wait for this one for
    ever. A process that is killed ends the job too, which ``mpiexec`` reports.

    Raises:
        ImportError: mpi4py is not installed.
        RuntimeError: a launcher that MPI does not know has started several processes,
            each of which would train alone.
    """

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise ImportError(
                "Mpi needs mpi4py, which the extra installs: "
                "pip install 'burn-runtime[mpi]'"
            ) from error
        self._world: Any = MPI.COMM_WORLD
        self._in_place: Any = MPI.IN_PLACE
        #: Reductions that were started and have not been waited for.
        self._pending: list[Any] = []
        launch = find_launch()
        if self.size == 1 and launch.size > 1:
            raise RuntimeError(
                f"{launch.source} started {launch.size} processes, of which MPI sees "
                "one: start them with mpiexec of the MPI that mpi4py uses"
            )
        if self.size > 1:
            sys.excepthook = self._end_job

    @property
    def rank(self) -> int:
        return int(self._world.rank)

    @property
    def size(self) -> int:
        return int(self._world.size)

    def all_reduce(self, array: Array) -> Array:
        source = np.ascontiguousarray(array)
        total = np.empty_like(source)
        self._world.Allreduce(source, total)
        return total

    def start_all_reduce(self, array: Array) -> Callable[[], Array]:
        total = np.ascontiguousarray(array)
        # MPI makes progress on pending operations in each call.
        self._pending = [each for each in self._pending if not each.Test()]
        request = self._world.Iallreduce(self._in_place, total)
        self._pending.append(request)

        def end() -> Array:
            request.Wait()
            return total

        return end

    def all_gather(self, array: Array) -> Array:
        source = np.ascontiguousarray(array)
        gathered = np.empty((self.size, *source.shape), source.dtype)
        self._world.Allgather(source, gathered)
        return gathered

    def broadcast(self, array: Array, root: int = 0) -> Array:
        shared = np.array(array, order="C")
        self._world.Bcast(shared, root)
        return shared

    def barrier(self) -> None:
        self._world.Barrier()

    def _end_job(
        self,
        kind: type[BaseException],
        error: BaseException,
        stack: TracebackType | None,
    ) -> None:
        report_failure(self, kind, error, stack)
        time.sleep(0.5)  # until mpiexec, which drops later output, has read it
        self._world.Abort(1)
