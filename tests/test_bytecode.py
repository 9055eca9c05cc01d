"""Workers of a test run share bytecode, in a folder that is removed at the end.

It also has links to the bytecode of installed packages.
"""

import os
import py_compile
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import cache_from_source
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


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the bytecode of an installed module, and of one that is for tests."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    files = []
    for name in ("package", "package/tests"):
        file = tmp_path / "platlib" / name / "module.py"
        file.parent.mkdir(parents=True)
        file.write_text("VALUE = 1\n", "ascii")
        py_compile.compile(str(file))
        files.append(Path(cache_from_source(str(file))))
    monkeypatch.setattr(sysconfig, "get_path", lambda kind: str(tmp_path / kind))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "platlib"))
    return files


@pytest.mark.parametrize(
    ("processes", "is_written_anyway"), [(2, False), (0, False), (2, True)]
)
def test_children_write_bytecode_into_one_folder(
    monkeypatch: pytest.MonkeyPatch,
    installed: list[Path],
    processes: int,
    is_written_anyway: bool,
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
    code = (
        "import package.module, package.tests.module, sys\n"
        "print(sys.dont_write_bytecode, sys.pycache_prefix)\n"
        "print(package.module.__cached__, package.tests.module.__cached__)"
    )
    command = [sys.executable, "-c", code]
    is_off, folder, *files = subprocess.check_output(command, text=True).split()
    assert is_off == "False"
    assert Path(folder).is_dir()
    # A link to bytecode in use is left; new bytecode is a file.
    linked, compiled = map(Path, files)
    assert linked.is_symlink() and linked.samefile(installed[0])
    assert compiled.is_file() and not compiled.is_symlink()
    for cleanup in config.cleanups:
        cleanup()
    assert not Path(folder).exists()
    assert all(file.exists() for file in installed)
