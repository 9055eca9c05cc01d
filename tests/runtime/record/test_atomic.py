"""Failing and killed writers: the old file or the new one, and nothing beside."""

import errno
import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import atomic_write, open_record, write_record
from burn.record.atomic import atomic_file

OLD = np.arange(24, dtype="f4").reshape(2, 3, 4)


class Failing:
    """A source that gives half of its bytes and then fails."""

    dtype: np.dtype[Any] = np.dtype(np.uint8)
    shape = (1000,)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def chunks(self) -> Iterator[bytes]:
        yield bytes(500)
        raise self.error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_record(tmp_path / "r.safetensors", [("x", OLD)])
    return tmp_path / "r.safetensors"


def assert_old_and_alone(path: Path) -> None:
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert np.array_equal(open_record(path)["x"], OLD)


@pytest.mark.parametrize("error", [OSError("gone"), KeyboardInterrupt(), SystemExit()])
def test_a_source_that_fails_midway(path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        write_record(path, [("x", OLD + 1), ("y", Failing(error))])
    assert_old_and_alone(path)


@pytest.mark.parametrize("call", ["fsync", "replace", "open", "fdopen"])
def test_every_call_may_fail(
    call: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            write_record(path, [("x", OLD + 1)])
    assert_old_and_alone(path)
    write_record(path, [("x", OLD + 1)])
    assert np.array_equal(open_record(path)["x"], OLD + 1)


def test_a_write_that_the_system_cuts_short(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_record(path, [("x", np.arange(10**6).reshape(10, 10, -1))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_old_and_alone(path)


def test_file_and_directory_are_synced_around_the_rename(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noted(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            kind = ""
            if name == "fsync":
                is_directory = stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
                kind = " directory" if is_directory else " file"
            calls.append(name + kind)
            real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(os, "replace", noted("replace", os.replace))
    write_record(path, [("x", OLD)])
    assert calls == ["fsync file", "replace", "fsync directory"]


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_mode_follows_the_umask(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        digest = atomic_write(tmp_path / "model.py", b"x = 1\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.py").stat().st_mode) == mode
    assert (tmp_path / "model.py").read_bytes() == b"x = 1\n"
    assert digest == hashlib.sha256(b"x = 1\n").hexdigest()


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_temporary_files_of_dead_writers_are_removed(path: Path) -> None:
    names = {
        "dead": f".{path.name}.{dead_pid()}.tmp",
        "our pid again": f".{path.name}.{os.getpid()}.tmp",
        "beyond any pid": f".{path.name}.{10**19}.tmp",
        "alive": f".{path.name}.{os.getppid()}.tmp",
        "other target": f".other.{dead_pid()}.tmp",
        "other pattern": f".{path.name}.abc.tmp",
    }
    for name in names.values():
        path.with_name(name).write_bytes(b"left over")
    atomic_write(path, b"new")
    kept = {key for key, name in names.items() if path.with_name(name).exists()}
    assert kept == {"alive", "other target", "other pattern"}
    assert path.read_bytes() == b"new"


KILLED = """
import sys, time
import numpy as np
from burn.record import write_record

class Slow:
    dtype, shape = np.dtype("u1"), (1000,)
    def chunks(self):
        yield bytes(500)
        print("half", flush=True)
        time.sleep(60)

write_record(sys.argv[1], [("x", Slow())])
"""


def test_a_killed_writer_leaves_the_old_file(path: Path) -> None:
    search = os.pathsep.join(entry for entry in sys.path if entry)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": search},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"half\n"
        temporary = path.with_name(f".{path.name}.{child.pid}.tmp")
        assert temporary.exists()
        child.send_signal(signal.SIGKILL)
    assert np.array_equal(open_record(path)["x"], OLD)
    assert temporary.exists()
    write_record(path, [("x", OLD)])
    assert_old_and_alone(path)


def test_a_second_thread_on_the_same_file_is_refused(path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with atomic_file(path) as file:
            file.write(b"first")
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    with pytest.raises(FileExistsError, match="another thread is writing"):
        atomic_write(path, b"second")
    atomic_write(path.with_name("neighbor"), b"fine")
    leave.set()
    thread.join()
    assert path.read_bytes() == b"first"
    atomic_write(path, b"third")
    assert path.read_bytes() == b"third"


def test_a_symbolic_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"shared")
    (tmp_path / "link").symlink_to("blob")
    atomic_write(tmp_path / "link", b"own")
    assert (tmp_path / "blob").read_bytes() == b"shared"
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"own"


def test_a_directory_cannot_be_the_target(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError):
        atomic_write(tmp_path / "d", b"")
    with pytest.raises(FileNotFoundError):
        atomic_write(tmp_path / "missing" / "file", b"")
    assert [entry.name for entry in tmp_path.iterdir()] == ["d"]


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    atomic_write("here", b"1")
    assert (tmp_path / "here").read_bytes() == b"1"


def test_readers_never_see_a_torn_file(path: Path) -> None:
    stop = time.monotonic() + 0.3
    failures: list[str] = []

    def read() -> None:
        while time.monotonic() < stop:
            x = open_record(path)["x"]
            if not (x == x.flat[0] + OLD).all():
                failures.append(repr(x))

    thread = threading.Thread(target=read)
    thread.start()
    step = 0
    while time.monotonic() < stop:
        step += 1
        write_record(path, [("x", OLD + step)])
    thread.join()
    assert step > 1 and failures == []
