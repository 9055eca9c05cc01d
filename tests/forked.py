"""Functions in processes of their own, forked from one with their imports."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_CONTEXT = multiprocessing.get_context("forkserver")


class Ended(NamedTuple):
    """The exit code of a process, and what it printed."""

    code: int | None
    output: str


def run_forked(
    function: Callable[..., Any], *arguments: Any, folder: Path, timeout: float
) -> Ended:
    """Return how a process ends that calls ``function`` in the working folder.

    Its module is imported once, by the process that is forked. The exit code is None
    if the time is up.
    """
    printed = folder.with_name(f"{folder.name}.txt")
    _CONTEXT.set_forkserver_preload([function.__module__])
    process = _CONTEXT.Process(
        target=_call, args=(function, arguments, folder, printed), daemon=False
    )
    process.start()
    process.join(timeout)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    return Ended(code, printed.read_text("utf-8"))


def _call(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    folder: Path,
    printed: Path,
) -> None:
    """Call ``function`` with what it prints in a file."""
    with printed.open("wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(folder)
    # Processes that it starts begin in this folder with this module, not in pytest's.
    vars(multiprocessing.process)["ORIGINAL_DIR"] = str(folder)
    sys.modules["__main__"] = sys.modules[function.__module__]
    function(*arguments)
    for output in (sys.stdout, sys.stderr):
        output.flush()
    os._exit(0)  # multiprocessing would wait for workers that are still idle
