"""The archive of cases is made by one process, and the others wait for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance import archive


def test_it_is_made_once_and_locked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = []

    def write(path: Path) -> None:
        writes.append(path)
        if sys.platform != "win32":
            import fcntl

            (lock,) = tmp_path.glob("*.lock")
            with lock.open("w") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.write_bytes(b"cases")

    monkeypatch.setattr(archive, "CACHE", tmp_path)
    monkeypatch.setattr(archive, "_write", write)
    assert archive.archive().read_bytes() == b"cases"
    assert archive.archive().read_bytes() == b"cases"
    assert len(writes) == 1


def test_the_archive_of_another_process_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def finished_by_another(path: Path) -> Iterator[None]:
        path.with_suffix(".zip").write_bytes(b"theirs")
        yield

    monkeypatch.setattr(archive, "CACHE", tmp_path)
    monkeypatch.setattr(archive, "locked", finished_by_another)
    assert archive.archive().read_bytes() == b"theirs"
