"""Workers of a test run share bytecode, in a folder that is removed at the end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.bytecode import share_bytecode


class Config:
    """The parts of pytest's configuration that are used."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.cleanups: list[Callable[[], None]] = []

    def getoption(self, name: str, default: Any) -> Any:
        """Return the number of workers."""
        return self.processes if name == "numprocesses" else default

    def add_cleanup(self, function: Callable[[], None]) -> None:
        """Keep a function for the end of the run."""
        self.cleanups.append(function)


@pytest.mark.parametrize(
    ("processes", "is_written_anyway"), [(2, False), (0, False), (2, True)]
)
def test_children_write_bytecode_into_one_folder(
    monkeypatch: pytest.MonkeyPatch, processes: int, is_written_anyway: bool
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not is_written_anyway)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    config = Config(processes)
    share_bytecode(cast(pytest.Config, config))
    if not processes or is_written_anyway:
        assert not config.cleanups
        assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
        return
    code = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    command = [sys.executable, "-c", code]
    is_off, folder = subprocess.check_output(command, text=True).split()
    assert is_off == "False"
    assert Path(folder).is_dir()
    for cleanup in config.cleanups:
        cleanup()
    assert not Path(folder).exists()
