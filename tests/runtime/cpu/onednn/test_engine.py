"""Which engine computes on the CPU, and what it keeps."""

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend import engine as engine_of
from burn.backend.cpu.onednn.binding import engine, library
from tests.runtime.onednn import assert_close, needs_onednn, normal

RUNTIME = Path(__file__).parents[4] / "runtime"
ASK = (
    "from burn.backend import engine; found = engine(); print(found.name, found.notes)"
)


def child(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A finished process that ran ``code`` with environment ``variables``."""
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME), **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_numpy_can_be_asked_for() -> None:
    actual = child(ASK, BURN_ENGINE="numpy")
    assert actual.stdout == "numpy ('BURN_ENGINE is numpy',)\n"


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    path = tmp_path / "libdnnl.so.3"
    path.write_text("no library")
    actual = child(ASK, BURN_ONEDNN=str(path))
    assert actual.stdout.startswith("numpy (")
    assert str(path) in actual.stdout
    failed = child(ASK, BURN_ONEDNN=str(path), BURN_ENGINE="onednn")
    assert "BURN_ENGINE is onednn, but there is no usable library" in failed.stderr
    assert str(path) in failed.stderr


def test_another_choice_is_an_error() -> None:
    failed = child(ASK, BURN_ENGINE="mkl")
    assert "expected BURN_ENGINE to be one of" in failed.stderr
    assert "'mkl'" in failed.stderr


def test_another_library_is_refused() -> None:
    actual = child(ASK, BURN_ONEDNN="libc.so.6")
    assert actual.stdout.startswith("numpy ('libc.so.6: ")


def test_import_loads_nothing() -> None:
    code = """
import sys, burn
from burn.backend.cpu.onednn.binding import engine
assert engine.STATE.answer is None
small = burn.tensor([[1.0, 2.0]])
small @ small.mT
assert engine.STATE.answer is None
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
assert "libdnnl" not in maps
"""
    assert child(code).stderr == ""


@pytest.mark.parametrize("version", [(2, 6, 3), (4, 0, 0)])
def test_other_versions_are_refused(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeLibrary(version, 2)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: fake)
    with pytest.raises(OSError, match="expected version 3 of oneDNN, got"):
        library.open_library("some.so")


def test_builds_for_sycl_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeLibrary((3, 13, 2), 512)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: fake)
    with pytest.raises(OSError, match="3.13.2 is built for SYCL"):
        library.open_library("some.so")


class FakeLibrary:
    """Says that it is a version of oneDNN, for some runtime."""

    def __init__(self, version: tuple[int, int, int], runtime: int) -> None:
        said = library.Version(*version, b"", runtime, 0)

        def dnnl_version() -> Any:
            return ctypes.pointer(said)

        self.dnnl_version = dnnl_version


@needs_onednn
def test_the_engine_is_told() -> None:
    actual = engine_of()
    assert actual.name == "onednn"
    assert actual.version.startswith("3.")
    assert Path(actual.path).exists()
    with engine.numpy_only():
        assert engine_of().name == "numpy"


#: What Python 3.12 says of a fork beside threads, which is what these tests are about.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@needs_onednn
@forks
def test_a_forked_process_uses_numpy() -> None:
    code = """
import os, burn
from burn import ops
from burn.backend import engine
x = burn.from_numpy(__import__("numpy").ones((64, 64, 8, 8), "float32"))
ops.conv(x, x)
assert engine().name == "onednn"
if os.fork() == 0:
    ops.conv(x, x)
    assert engine().name == "numpy"
    assert "forked" in engine().notes[0]
    os._exit(0)
assert os.wait()[1] == 0
"""
    warning, _ = child(code).stderr.splitlines()
    assert "'spawn' or 'forkserver'" in warning


@needs_onednn
def test_spinning_is_bounded_unless_the_user_says_otherwise() -> None:
    code = f"{ASK}; import os; print(os.environ['GOMP_SPINCOUNT'])"
    bare = {key: value for key, value in os.environ.items() if key != "GOMP_SPINCOUNT"}
    bare["PYTHONPATH"] = str(RUNTIME)
    command = [sys.executable, "-c", code]
    actual = subprocess.check_output(command, env=bare, text=True)
    assert actual.split()[-1] == library.SPIN[1]
    assert child(code, GOMP_SPINCOUNT="77").stdout.split()[-1] == "77"


FAULTS = """
import resource, numpy, burn
from burn import ops
x = burn.from_numpy(numpy.ones((8, 16, 128, 128), "float32"))
weight = burn.from_numpy(numpy.ones((16, 16, 1, 1), "float32"))
def step():
    return ops.relu(ops.conv(x, weight)) + x
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@needs_onednn
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"),
    reason="only glibc's malloc has such settings",
)
def test_memory_of_large_arrays_is_kept_unless_the_user_says_otherwise() -> None:
    assert int(child(FAULTS).stdout) < 100
    # Some thousands; where the system gives huge pages each counts for 512.
    assert int(child(FAULTS, MALLOC_TRIM_THRESHOLD_="0").stdout) > 120


@needs_onednn
def test_threads_share_a_model() -> None:
    x = burn.from_numpy(normal(4, 16, 12, 12))
    weights = [burn.from_numpy(normal(16, 16, 3, 3, seed=i) / 12) for i in range(4)]

    def model(x: Any) -> Any:
        for weight in weights:
            x = ops.relu(ops.conv(x, weight, padding=1))
        return x.numpy()

    inputs = [x * float(i + 1) for i in range(8)]
    with engine.numpy_only():
        expected = [model(x) for x in inputs]
    wrong: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for _ in range(20):
                assert_close(model(inputs[i]), expected[i], 1e-4)
        except AssertionError as error:
            wrong.append(error)

    with engine.whatever_size():
        threads = [Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[0]


@needs_onednn
def test_set_parameters_are_packed_anew() -> None:
    x = burn.from_numpy(normal(2, 8, 9, 9))
    parameter = burn.Parameter(burn.from_numpy(normal(8, 8, 3, 3)))
    with engine.whatever_size():
        for step in range(5):
            for _ in range(2):
                actual = ops.conv(x, parameter)
                with engine.numpy_only():
                    expected = ops.conv(x, parameter)
                assert_close(actual.numpy(), expected.numpy())
            parameter.set(parameter.value - normal(8, 8, 3, 3, seed=step) * 0.1)


@needs_onednn
def test_packed_weights_go_with_their_array() -> None:
    session = engine.current()
    assert session is not None
    gc.collect()
    before = len(session.packed), session.packed.size()
    x, weight = burn.from_numpy(normal(2, 8, 9, 9)), normal(8, 8, 3, 3)
    with engine.whatever_size():
        ops.conv(x, burn.from_numpy(weight))
    assert session.packed.size() > before[1]
    del weight
    gc.collect()
    assert (len(session.packed), session.packed.size()) == before


def resident() -> int:
    """The bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@needs_onednn
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_primitives_leave_no_memory() -> None:
    x, weight = burn.from_numpy(normal(1, 8, 8, 8)), burn.from_numpy(normal(8, 8, 3, 3))
    session = engine.current()
    assert session is not None

    def create(count: int) -> None:
        for _ in range(count):
            session.primitives.clear()
            ops.conv(x, weight, padding=1)

    with engine.whatever_size():
        create(300)
        gc.collect()
        before = resident()
        create(2_000)
        gc.collect()
    assert resident() - before < 800 << 10  # 400 bytes each


@needs_onednn
def test_the_oldest_primitives_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from burn.backend.cpu.onednn.binding import cache

    monkeypatch.setattr(cache, "LIMIT", 3)
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    weight = burn.from_numpy(normal(4, 4, 3, 3))
    with engine.whatever_size():
        for extent in (5, 6, 7, 8, 9, 5):
            ops.conv(burn.from_numpy(normal(1, 4, extent, extent)), weight)
    assert len(session.primitives) == 3


def test_results_do_not_depend_on_the_engine() -> None:
    x, weight = burn.from_numpy(normal(1, 64, 20, 20)), normal(64, 64, 3, 3)
    actual = ops.conv(x, burn.from_numpy(weight)).numpy()
    with engine.numpy_only():
        expected = ops.conv(x, burn.from_numpy(weight)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)


@needs_onednn
@forks
@pytest.mark.parametrize("generated", [False, True])
def test_a_forked_process_makes_its_plans_anew(generated: bool) -> None:
    """Threads of OpenMP would be waited for that are not there."""
    code = f"""
import os, signal, numpy, burn
from burn import ops
x = burn.from_numpy(numpy.linspace(-1, 1, 2**18, dtype="float32").reshape(512, 512))
weight = burn.Parameter(x)
run = burn.compile(
    lambda x: ops.exp(ops.relu(x @ weight) * -0.5) * 2 - x, generated={generated}
)
expected = [run(x) for _ in range(3)][-1].numpy()
if os.fork() == 0:
    signal.alarm(30)
    numpy.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    numpy.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    os._exit(0)
assert os.wait()[1] == 0
"""
    warning, _ = child(code).stderr.splitlines()
    assert "'spawn' or 'forkserver'" in warning
