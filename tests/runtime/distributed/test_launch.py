"""Ranks from the variables of launchers."""

import sys

import pytest

from burn.distributed import Launch, Nccl, find_launch
from burn.distributed.launch import first_host

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29400",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_JOB_ID": "120042",
}
PMI = {"PMI_RANK": "1", "PMI_SIZE": "2"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (TORCHRUN, Launch(5, 8, 1, "node0", 29401, "torchrun")),
        (OPEN_MPI, Launch(1, 2, 1, "127.0.0.1", 29501, "Open MPI")),
        (SLURM, Launch(3, 4, 1, "gpu07", 15042, "Slurm")),
        (PMI, Launch(1, 2, 1, "127.0.0.1", 29501, "mpiexec")),
        ({**SLURM, **TORCHRUN}, Launch(5, 8, 1, "node0", 29401, "torchrun")),
        ({**PMI, "MPI_LOCALNRANKS": "1"}, Launch(1, 2, 1, None, 29501, "mpiexec")),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, Launch()),
        ({}, Launch()),
    ],
)
def test_launchers_are_found(environ: dict[str, str], expected: Launch) -> None:
    assert find_launch(environ) == expected


@pytest.mark.parametrize(
    ("hosts", "first"),
    [("a", "a"), ("a,b", "a"), ("n[001-004,9],x", "n001"), ("r1n[2,3]-ib", "r1n2-ib")],
)
def test_first_host_of_a_list(hosts: str, first: str) -> None:
    assert first_host(hosts) == first


def test_wrong_variables_are_named() -> None:
    with pytest.raises(ValueError, match="number in WORLD_SIZE, got 'two'"):
        find_launch({"RANK": "0", "WORLD_SIZE": "two"})
    with pytest.raises(ValueError, match="RANK < WORLD_SIZE, got 2 of 2"):
        find_launch({"RANK": "2", "WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match="a list of hosts"):
        first_host("a[x]")


def test_nccl_needs_nccl4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nccl.core", None)
    with pytest.raises(ImportError, match=r"burn-runtime\[nccl12\]"):
        Nccl()


def test_mpi_refuses_processes_that_it_does_not_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("mpi4py")
    from burn.distributed import Mpi

    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError, match="torchrun started 8 processes"):
        Mpi()
