"""Atomic file writes.

The bytes are written to ``.<name>.<pid>.tmp`` beside the target, synced to disk, and
renamed to the target in one step. Processes that have the old file open or mapped keep
the old content. A killed process leaves its temporary file; the next writer of the same
target removes it.
"""

import errno
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from burn.digests import sha256

# Temporary files that threads of this process are writing now. One with our pid
# that is not among them was left by a dead process whose pid we were given.
ACTIVE: set[Path] = set()
LOCK = threading.Lock()


def atomic_write(path: str | os.PathLike[str], data: bytes) -> str:
    """Write ``data`` to ``path`` atomically, and return its SHA-256 (hex).

    The mode is 0666 without the umask's bits. On any failure the old file is unchanged
    and no temporary file remains. A symbolic link at ``path`` is replaced; its target
    is not modified.

    Raises ``OSError`` if the disk, the directory or another thread that writes the same
    file does not allow it.
    """
    with atomic_file(path) as file:
        file.write(data)
    return sha256(data).hexdigest()


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file for writing, which is renamed to ``path`` if the block succeeds."""
    target = Path(os.path.abspath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with _claimed(temporary, target):
        remove_stale(target)
        descriptor = _create(temporary, target)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            _sync_directory(target.parent)
        finally:  # after the replacement there is nothing left to remove
            temporary.unlink(missing_ok=True)


def _create(temporary: Path, target: Path) -> int:
    """Return the descriptor of a new file; errors name the target file."""
    try:
        return os.open(temporary, _FLAGS, 0o666)
    except OSError as error:
        error.filename = str(target)
        raise


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@contextmanager
def _claimed(temporary: Path, target: Path) -> Iterator[None]:
    with LOCK:
        if temporary in ACTIVE:
            reason = "another thread is writing this file"
            raise FileExistsError(errno.EEXIST, reason, str(target))
        ACTIVE.add(temporary)
    try:
        yield
    finally:
        ACTIVE.discard(temporary)


def remove_stale(target: Path) -> None:
    """Remove the temporary files of writers of ``target`` that were killed."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.([0-9]{{1,20}})\.tmp")
    with os.scandir(target.parent) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match is None or not entry.is_file(follow_symlinks=False):
                continue
            if int(match[1]) == os.getpid() or not _is_alive(int(match[1])):
                with suppress(FileNotFoundError, PermissionError):
                    os.unlink(entry.path)


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # signal 0 would end it; and open files cannot be removed
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
