"""Runs what must do nothing but compute, and says what else it did."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What a module that computes has no business with.
FORBIDDEN = frozenset(
    {"os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove"}
    | {"subprocess.Popen", "socket.connect", "shutil.rmtree", "ctypes.dlopen"}
    | {"os.mkdir", "os.rename", "os.putenv", "pty.spawn", "webbrowser.open"}
)
_events: list[str] = []
_watching = [False, False]  # whether, and whether a hook is there: it stays for good


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching[0]:
        return
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if event in FORBIDDEN or writes or event == "open" and "pwned" in str(args[0]):
        _events.append(f"{event} {args[:2]}")


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Within, no file is written, no program started and nothing called ``pwned``.

    ``folder`` is the current directory, which stays as it is.
    """
    before = sorted(path.name for path in folder.iterdir())
    if not _watching[1]:
        sys.addaudithook(_hook)
    _watching[:] = True, True
    _events.clear()
    try:
        yield
    finally:
        _watching[0] = False
    assert not _events, _events
    assert sorted(path.name for path in folder.iterdir()) == before
    assert not list(folder.rglob("*pwned*"))
