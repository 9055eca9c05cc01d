"""Rank and size of this process, from the environment variables of launchers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The default port of rank 0.
PORT = 29501
#: Names of rank, size, rank on the host and processes on the host, by launcher. In
#: batch scripts Slurm sets the first two but not the size of a step.
_LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""),
    "mpiexec": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
}


@dataclass(frozen=True)
class Launch:
    """A process of a job: ``rank`` of ``size``, and ``local_rank`` on its host.

    ``address`` and ``port`` are those of rank 0, None if no variable defines them.
    ``source`` is the launcher, empty for a single process.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    address: str | None = "127.0.0.1"
    port: int = PORT
    source: str = ""


def find_launch(environ: Mapping[str, str] | None = None) -> Launch:
    """Return the rank and size of this process.

    The variables of torchrun, Open MPI, Slurm (``srun``) and PMI (``mpiexec`` of MPICH
    and others) are read; the first launcher that sets both rank and size is used.

    Raises:
        ValueError: a variable is not a number, or the rank is not below the size.
    """
    environ = os.environ if environ is None else environ
    for source, (rank, size, local_rank, local_size) in _LAUNCHERS.items():
        if rank not in environ or size not in environ:
            continue
        launch = Launch(
            _number(environ, rank),
            _number(environ, size),
            _number(environ, local_rank if local_rank in environ else rank),
            source=source,
        )
        if not 0 <= launch.rank < launch.size:
            got = f"{launch.rank} of {launch.size}"
            raise ValueError(f"expected {rank} < {size}, got {got}")
        on_host = _number(environ, local_size) if local_size in environ else None
        return _with_address(launch, environ, on_host)
    return Launch()


def _with_address(
    launch: Launch, environ: Mapping[str, str], local_size: int | None
) -> Launch:
    """Return ``launch`` with the address of rank 0."""
    address, port = environ.get("MASTER_ADDR"), PORT
    if "MASTER_PORT" in environ:
        # torchrun's own store listens on the port itself.
        port = _number(environ, "MASTER_PORT") + (launch.source == "torchrun")
    if launch.source == "Slurm":
        hosts = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST", "")
        address = address or first_host(hosts) or None
        if "MASTER_PORT" not in environ and "SLURM_JOB_ID" in environ:
            port = 15000 + _number(environ, "SLURM_JOB_ID") % 10000
    elif address is None and local_size in (None, launch.size):
        address = "127.0.0.1"
    return Launch(
        *(launch.rank, launch.size, launch.local_rank, address, port, launch.source)
    )


def first_host(hosts: str) -> str:
    """Return the first host of a list of Slurm: ``a[07-09,12],b`` gives ``a07``."""
    head = re.match(r"[^,\[]*", hosts)
    assert head is not None
    rest = hosts[head.end() :]
    if not rest.startswith("["):
        return head[0]
    number = re.match(r"\[(\d+)[^\]]*\]([^,\[]*)", rest)
    if number is None:
        raise ValueError(f"expected a list of hosts as a[07-09],b, got {hosts!r}")
    return head[0] + number[1] + number[2]


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise ValueError(
            f"expected a number in {name}, got {environ[name]!r}"
        ) from None
