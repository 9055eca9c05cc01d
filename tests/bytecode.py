"""Bytecode for the processes of a test run, where Python writes none by default."""

import os
import sys
from tempfile import TemporaryDirectory

import pytest


def share_bytecode(config: pytest.Config) -> None:
    """Cache bytecode in a temporary folder if ``PYTHONDONTWRITEBYTECODE`` is set.

    This is for the workers of pytest-xdist and their child processes: each of a
    hundred would compile more than a thousand modules again. Without workers nothing
    is changed, since the folder would also hide the bytecode of installed packages.
    """
    if not sys.dont_write_bytecode or not config.getoption("numprocesses", None):
        return
    folder = TemporaryDirectory(prefix="bytecode-")
    config.add_cleanup(folder.cleanup)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder.name
