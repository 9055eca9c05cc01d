"""Faults of the calls that write files: the n-th call of a function fails or kills."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: The functions of ``os`` that may fail while a file is written.
CALLS = ("open", "fdopen", "fsync", "replace")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR)
Fault = Callable[[], None]


class HalfWrite:
    """A file of which one write stores half of the bytes before the fault."""

    def __init__(self, file: Any, call: Callable[[], bool], fault: Fault) -> None:
        self.file, self.call, self.fault = file, call, fault

    def write(self, data: Any) -> int:
        if self.call():
            self.file.write(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            self.file.flush()
            self.fault()
        return int(self.file.write(data))

    def __enter__(self) -> "HalfWrite":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def is_written(path: Any, flags: int, *_: object) -> bool:
    """Return whether a file is opened to be written, or a folder to be synced."""
    return bool(flags & os.O_WRONLY) or os.path.isdir(path)


@contextmanager
def faulty_disk(number: int, fault: Fault) -> Iterator[list[str]]:
    """Yield the names of the calls that write, the ``number``-th of which is faulty."""
    calls: list[str] = []

    def is_faulty(name: str) -> bool:
        calls.append(name)
        return len(calls) - 1 == number

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if (name != "open" or is_written(*args)) and is_faulty(name):
                fault()
            value = real(*args, **options)
            if name != "fdopen":
                return value
            return HalfWrite(value, lambda: is_faulty("write"), fault)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(name, getattr(os, name)))
        yield calls


def kill() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def failing(number: int) -> Fault:
    """Return a fault that raises the error of the system with this number."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail
