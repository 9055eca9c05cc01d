"""Object code of kernels on disk: found again, bounded, and nobody else's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend import disk_cache, kernel_cache, set_kernel_cache
from burn.backend.cpu.jit import machine as machines
from burn.backend.disk_cache import DiskCache, default_folder

pytestmark = pytest.mark.skipif(
    not disk_cache._IS_SUPPORTED, reason="owners of files cannot be checked here"
)
KEY, CONTENT = "a" * 64, b"object code" * 100


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = disk_cache._current
    yield tmp_path / "cache"
    disk_cache._current = before


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are compiled by machines without code in memory."""
    sources: list[str] = []
    compile_source = machines.Machine._compile

    def counted(self: Any, text: str, key: str) -> bytes:
        sources.append(text)
        return compile_source(self, text, key)

    monkeypatch.setattr(machines.Machine, "_compile", counted)
    return sources


def compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare a kernel with NumPy, compiled or read as in a new process."""
    machine = machines.Machine()
    monkeypatch.setattr(
        "burn.backend.cpu.jit.kernel_replacement.machine", lambda: machine
    )
    compiled = burn.compile(
        lambda x: ops.exp(x) * 2 - ops.minimum(x, 9.0), generated=True
    )
    for values in ([-1.0, 0.0, 3.0, 20.0], [2.0, -80.0, 1.0, -0.5]):
        x = np.array(values, np.float32)
        actual = compiled(burn.from_numpy(x)).numpy()
        np.testing.assert_allclose(actual, np.exp(x) * 2 - x.clip(max=9), rtol=1e-6)
    assert not compiled.notes


def test_later_processes_read_what_the_first_compiled(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_kernel_cache(folder)
    for _ in range(3):
        compute(monkeypatch)
    assert len(compilations) == 1
    (file,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert kernel_cache().size() == file.stat().st_size > 0


def test_other_processors_have_other_code(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_kernel_cache(folder)
    compute(monkeypatch)
    llvm = pytest.importorskip("llvmlite.binding")
    features = llvm.get_host_cpu_features()
    features["avx512f"] = False
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "x86-64-v2")
    if machines.machine()._target.triple.startswith("x86_64"):
        compute(monkeypatch)
        assert len(compilations) == len(list(folder.iterdir())) == 2


def test_damaged_files_are_written_again(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_kernel_cache(folder)
    compute(monkeypatch)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for count, damaged in enumerate(
        (b"", whole[:-1], bytes(changed), whole + b"\0"), 2
    ):
        file.write_bytes(damaged)
        compute(monkeypatch)
        assert len(compilations) == count
        assert file.read_bytes() == whole


def test_a_file_under_another_name_is_damaged(folder: Path) -> None:
    cache = DiskCache(folder)
    cache.write(KEY, CONTENT)
    (folder / f"{KEY}.bin").rename(folder / f"{'b' * 64}.bin")
    assert cache.read("b" * 64) is None
    assert cache.read(KEY) is None


def test_a_cache_that_is_switched_off_writes_nothing(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    set_kernel_cache(None)
    compute(monkeypatch)
    compute(monkeypatch)
    assert len(compilations) == 2
    assert not folder.exists()
    assert kernel_cache().refusal == "switched off"


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_folders_that_others_may_write_to_are_refused(folder: Path, mode: int) -> None:
    DiskCache(folder).write(KEY, CONTENT)
    folder.chmod(mode)
    cache = DiskCache(folder)
    assert cache.read(KEY) is None
    assert cache.refusal is not None and f"mode {mode:04o}" in cache.refusal
    cache.write("b" * 64, CONTENT)
    assert len(list(folder.iterdir())) == 1


def test_folders_and_files_of_others_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DiskCache(folder).write(KEY, CONTENT)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    cache = DiskCache(folder)
    assert cache.read(KEY) is None
    assert cache.refusal is not None
    assert f"owned by user {user}, expected {user + 1}" in cache.refusal


def test_links_and_writable_files_are_not_read(folder: Path, tmp_path: Path) -> None:
    cache = DiskCache(folder)
    cache.write(KEY, CONTENT)
    file = folder / f"{KEY}.bin"
    file.chmod(0o620)
    assert cache.read(KEY) is None
    file.chmod(0o600)
    assert cache.read(KEY) == CONTENT
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.read(KEY) is None
    cache.write(KEY, CONTENT)  # replaces the link, not its target
    assert not file.is_symlink()
    file.unlink()
    os.mkfifo(file)
    assert cache.read(KEY) is None

    link = tmp_path / "link"
    link.symlink_to(folder)
    assert DiskCache(link).read(KEY) is None


def test_kernels_compute_without_a_writable_folder(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = disk_cache._current
    (tmp_path / "file").touch()
    set_kernel_cache(tmp_path / "file" / "cache")
    try:
        compute(monkeypatch)
        assert compilations
        assert str(tmp_path / "file" / "cache") in str(kernel_cache().refusal)
    finally:
        disk_cache._current = before


def test_the_files_used_longest_ago_are_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_CHECK_EVERY", 1)
    cache = DiskCache(folder, limit=5 * (len(CONTENT) + 100))
    keys = [f"{n:064}" for n in range(5)]
    for age, key in enumerate(reversed(keys)):
        cache.write(key, CONTENT)
        used = (folder / f"{key}.bin").stat().st_mtime - 10_000 * (5 - age)
        os.utime(folder / f"{key}.bin", (used, used))
    stale = folder / f"old{disk_cache._TEMPORARY}"
    stale.touch()
    os.utime(stale, (0, 0))
    unknown = folder / "notes.txt"
    unknown.write_text("not of the cache")
    assert cache.read(keys[4]) == CONTENT  # which is the oldest
    cache.write(KEY, CONTENT)
    left = [key for key in keys if cache.read(key) is not None]
    assert left == [keys[0], keys[4]] or left == [keys[0], keys[1], keys[4]]
    assert cache.read(KEY) == CONTENT
    assert cache.size() <= cache.limit
    assert not stale.exists() and unknown.exists()


def test_several_writers_and_readers(folder: Path) -> None:
    contents = [bytes([n]) * 50_000 for n in range(8)]
    DiskCache(folder).write(KEY, contents[0])

    def write(content: bytes) -> None:
        for _ in range(20):
            DiskCache(folder).write(KEY, content)

    def read(_: int) -> list[bytes | None]:
        return [DiskCache(folder).read(KEY) for _ in range(40)]

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, content) for content in contents]
        found = [data for each in pool.map(read, range(4)) for data in each]
        for writer in writers:
            writer.result()
    assert all(data in contents for data in found)
    assert [file.name for file in folder.iterdir()] == [f"{KEY}.bin"]


PROGRAM = """
import burn
from burn import ops
from burn.backend.cpu.jit.machine import Machine
compilations = []
compiled = Machine._compile
Machine._compile = lambda *given: compilations.append(1) or compiled(*given)
function = burn.compile(lambda x: ops.exp(x) * x + 1, generated=True)
print([function(burn.tensor([1.0, 2.0])).shape for _ in range(2)], len(compilations))
"""


def test_processes_share_the_default_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    ]
    assert outputs == ["[(2,), (2,)] 1\n", "[(2,), (2,)] 0\n"]
    assert len(list((tmp_path / "burn").iterdir())) == 1


def test_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.sep + "chosen")
    assert default_folder() == Path(os.sep, "chosen", "burn")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", os.sep + "someone")
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == Path(os.sep, "someone", ".cache", "burn")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_folder() == Path(os.sep, "someone", "Library", "Caches", "burn")
