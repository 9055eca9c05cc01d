"""Bytecode for the processes of a test run, where Python writes none by default."""

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

#: Folders below an installation with modules that no test of ours imports.
NOT_IMPORTED = {"site-packages", "test", "tests"}


def share_bytecode(config: pytest.Config) -> None:
    """Cache bytecode in a temporary folder if ``PYTHONDONTWRITEBYTECODE`` is set.

    This is for the workers of pytest-xdist and their child processes: each of a
    hundred would compile more than a thousand modules again. Without workers nothing
    is changed.

    The folder replaces the ``__pycache__`` of every package. It gets links to the
    bytecode of installed packages, which would be compiled again otherwise.
    """
    if not sys.dont_write_bytecode or not config.getoption("numprocesses", None):
        return
    folder = TemporaryDirectory(prefix="bytecode-")
    config.add_cleanup(folder.cleanup)
    for kind in ("stdlib", "platlib"):
        link_bytecode(sysconfig.get_path(kind), Path(folder.name))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder.name


def link_bytecode(root: str, prefix: Path) -> None:
    """Link the bytecode of the modules below ``root`` where ``prefix`` has it.

    If a module is newer than its bytecode, Python replaces the link.
    """
    suffix = f".{sys.implementation.cache_tag}.pyc"
    for path, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_IMPORTED]
        modules, name = os.path.split(path)
        if name == "__pycache__":
            target = prefix.joinpath(*Path(modules).parts[1:])
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                if name.endswith(suffix):
                    os.symlink(os.path.join(path, name), target / name)
