"""Detection of side effects of code that must only compute."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Audit events that a computing module must not cause.
FORBIDDEN = frozenset(
    {"os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove"}
    | {"subprocess.Popen", "socket.connect", "shutil.rmtree", "ctypes.dlopen"}
    | {"os.mkdir", "os.rename", "os.putenv", "pty.spawn", "webbrowser.open"}
)
_events: list[str] = []
_watching = [False, False]  # whether it is active; an audit hook cannot be removed


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching[0]:
        return
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if event in FORBIDDEN or writes or event == "open" and "pwned" in str(args[0]):
        _events.append(f"{event} {args[:2]}")


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Check that no file is written, no process started and no ``pwned`` called.

    ``folder`` is the current directory, which must stay unchanged.
    """
    before = sorted(path.name for path in folder.iterdir())
    if not _watching[1]:
        sys.addaudithook(_hook)
    # A module that is imported for the first time would be written as bytecode.
    writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    _watching[:] = True, True
    _events.clear()
    try:
        yield
    finally:
        _watching[0] = False
        sys.dont_write_bytecode = writes_none
    assert not _events, _events
    assert sorted(path.name for path in folder.iterdir()) == before
    assert not list(folder.rglob("*pwned*"))
