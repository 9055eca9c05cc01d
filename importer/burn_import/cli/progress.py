"""A line on the terminal that shows that a command is still at work."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from burn_import.cli.report import clean

#: Seconds before the line is shown, and between its updates.
DELAY, INTERVAL = 0.5, 0.5


@contextmanager
def progress(task: str) -> Iterator[None]:
    """Show ``task`` and the seconds it has taken, if it takes longer than half a one.

    The line is on stderr, if that is a terminal that can erase it, which happens at the
    end.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(clean(task), done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(task: str, done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(DELAY):
        return
    while True:
        seconds = time.monotonic() - start
        print(f"\r{task} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)
        if done.wait(INTERVAL):
            break
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
