"""Bytecode for the processes of a test run, where Python writes none by default."""

import os
import sys
from tempfile import TemporaryDirectory

import pytest


def share_bytecode(config: pytest.Config) -> None:
    """Cache bytecode in a temporary folder if ``PYTHONDONTWRITEBYTECODE`` is set.

    Otherwise every worker of pytest-xdist and each of a hundred child processes would
    compile more than a thousand modules again, a quarter of the time of a run.
    """
    if not sys.dont_write_bytecode:
        return
    folder = TemporaryDirectory(prefix="bytecode-")
    config.add_cleanup(folder.cleanup)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder.name
    sys.dont_write_bytecode = False
