"""Communication by MPI."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

import numpy as np

from burn.distributed.communicator import Array, Communicator


class Mpi(Communicator):
    """All processes that ``mpiexec`` started, or this one alone without it.

    With several processes an uncaught error ends all of them: it is printed with the
    rank, and the job exits with 1. Otherwise the others would wait for this one for
    ever. A process that is killed ends the job too, which ``mpiexec`` reports.

    Raises:
        ImportError: mpi4py is not installed.
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
        text = "".join(traceback.format_exception(kind, error, stack))
        print(f"rank {self.rank} of {self.size} failed:\n{text}", file=sys.stderr)
        sys.stderr.flush()
        self._world.Abort(1)
