"""Readers of untrusted files, fuzzed with damaged files.

``--fuzz-seconds 60`` gives each of them a minute. Only errors of burn-import may be
raised, and no file may take more than ``limits.MOST_SECONDS`` and
``limits.MOST_BYTES``. Hypothesis generates the files in rounds with different seeds; a
failure shrinks, is printed as the bytes of a file, and is repeated by the next run.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, seed, settings, strategies as st

from burn.record import RecordError, read_record
from burn_import import load
from burn_import.frontends.torch_export import read as read_exported
from burn_import.frontends.torchscript import read as read_script
from burn_import.options import Options
from burn_import.pytorch import read
from burn_ir import ModelError, build
from tests.importer.exported_files import archive
from tests.importer.hostile.damaged_files import (
    RECORDS,
    RICH,
    ROOT,
    WEIGHTS,
    archives,
    headers,
    pickles,
    programs,
    records,
    scripts,
)
from tests.importer.limits import MOST_BYTES, MOST_SECONDS
from tests.importer.pytorch_files import zip_file
from tests.importer.script_files import CHANGING, example, net
from tests.pace import slowness

ROUND = 50
TRACED = [example("Float", 2, 3)]
QUIET = settings(
    max_examples=ROUND,
    derandomize=False,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def read_checkpoint(path: Path) -> None:
    """Read all tensors of a checkpoint."""
    for result in read(path).values():
        np.asarray(result.array()).tobytes()


def read_any_record(path: Path) -> None:
    """Read all tensors of a record."""
    for array in read_record(path, mmap=False).values():
        array.tobytes()


def read_program(path: Path) -> None:
    """Read an exported program and infer its types."""
    build(read_exported(path))


def read_trace(path: Path) -> None:
    """Interpret the code of a trace and infer its types."""
    build(read_script(path))


def read_code(path: Path) -> None:
    """Interpret the code of a script and infer its types."""
    build(read_script(path, {"x": (2, 3)}))


def load_program(path: Path) -> None:
    """Generate the module of an exported program."""
    load(path, Options())


class Target(NamedTuple):
    """A strategy of damaged files, a valid file, and the reader of both."""

    damaged: st.SearchStrategy[bytes]
    whole: bytes
    open_file: Callable[[Path], None]
    suffix: str


TARGETS: dict[str, Target] = {
    "pickles": Target(pickles(), zip_file(ROOT), read_checkpoint, ".pt"),
    "archives": Target(archives(), zip_file(ROOT), read_checkpoint, ".pt"),
    "headers": Target(
        headers(), RECORDS["safetensors"], read_checkpoint, ".safetensors"
    ),
    "records": Target(records(), RECORDS["mpk"], read_any_record, ".mpk"),
    "programs": Target(programs(), archive(RICH, WEIGHTS), read_program, ".pt2"),
    "modules": Target(programs(), archive(RICH, WEIGHTS), load_program, ".pt2"),
    "traces": Target(
        scripts(TRACED), net(CHANGING, *TRACED).bytes(), read_trace, ".pt"
    ),
    "scripts": Target(scripts(), net(CHANGING).bytes(), read_code, ".pt"),
}


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Refuse allocations beyond the limit of a file, in addition to current use."""
    status = Path("/proc/self/status").read_text().splitlines()
    used = next(line.split()[1] for line in status if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(used) * 1024 + MOST_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class Files:
    """Statistics of the opened files: their number, and the longest time."""

    def __init__(self, path: Path, open_file: Callable[[Path], None]) -> None:
        self.path = path
        self.open_file = open_file
        self.count, self.whole, self.longest = 0, 0, 0.0

    def open(self, data: bytes) -> None:
        """Open a file of these bytes; errors other than ours are raised."""
        self.path.write_bytes(data)
        start = time.process_time()
        self.count += 1
        try:
            self.open_file(self.path)
            self.whole += 1
        except (ModelError, RecordError) as error:
            names = (self.path.name, str(self.path), "node ")
            assert str(error).startswith(names), error
        seconds = time.process_time() - start
        self.longest = max(self.longest, seconds)
        if seconds >= MOST_SECONDS:
            assert seconds < MOST_SECONDS * slowness()


@pytest.mark.parametrize("name", TARGETS)
def test_only_our_errors_come_out(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = TARGETS[name]
    files = Files(tmp_path / f"fuzzed{target.suffix}", target.open_file)
    files.path.write_bytes(target.whole)
    target.open_file(files.path)  # for its imports
    end = time.monotonic() + request.config.getoption("--fuzz-seconds")
    number = 0
    with bounded_memory():
        while number == 0 or time.monotonic() < end:
            fuzz(files, target.damaged, number)
            number += 1
    print(
        f"{name}: {files.count} files, {files.whole} read, "
        f"the longest {files.longest:.2f} s"
    )
    assert files.whole < files.count


def fuzz(files: Files, damaged: st.SearchStrategy[bytes], number: int) -> None:
    """Open the files of one round."""

    @seed(number)
    @QUIET
    @given(data=damaged)
    def opened(data: bytes) -> None:
        note(f"in round {number}")
        files.open(data)

    call: Any = opened  # which takes no argument any more
    call()
