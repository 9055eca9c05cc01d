"""``burn.compile(threads=...)``: oneDNN, generated kernels and BLAS obey the limit."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine, thread_limit
from burn.backend.cpu.onednn.binding.thread_limit import BlasLimits, blas_limits
from tests.runtime.onednn import assert_close, needs_onednn, normal


class Library:
    """What stands for BLAS, with the numbers of threads that were set."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get_num_threads(self) -> int:
        return self.count

    def set_num_threads(self, count: int) -> None:
        self.count = count


def test_the_lowest_limit_in_force_is_that_of_blas() -> None:
    library = Library(8)
    limits = BlasLimits([library])
    outer, inner = limits.limited(4), limits.limited(2)
    outer.__enter__()
    assert library.count == 4
    inner.__enter__()
    assert library.count == 2
    outer.__exit__(None, None, None)  # in another thread they end in any order
    assert library.count == 2
    inner.__exit__(None, None, None)
    assert library.count == 8
    with limits.limited(16):
        assert library.count == 8


def test_blas_is_limited_during_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    library, seen = Library(8), []
    monkeypatch.setattr(thread_limit, "blas_limits", lambda: BlasLimits([library]))

    def function(x: burn.Tensor) -> burn.Tensor:
        seen.append(library.count)
        return ops.matmul(x, x) + 1

    compiled = burn.compile(function, threads=3)
    x = burn.tensor(normal(3, 5, 5))
    with engine.numpy_only():
        for _ in range(3):
            assert_close(compiled(x).numpy(), function(x).numpy())
    assert 3 in seen and library.count == 8


def test_the_blas_of_numpy_is_found() -> None:
    blas = blas_limits()
    if not blas._libraries:
        pytest.skip("the BLAS of this NumPy has no limit: another processor")
    before = [each.get_num_threads() for each in blas._libraries]
    with blas.limited(1):
        assert {each.get_num_threads() for each in blas._libraries} == {1}
    assert [each.get_num_threads() for each in blas._libraries] == before


@needs_onednn
def test_limits_of_callers_do_not_meet() -> None:
    session = engine.loaded()
    assert session is not None
    api = session.api
    barrier = Barrier(2)

    def count(limit: int) -> tuple[int, int]:
        with api.limited_threads(limit):
            barrier.wait()
            inside = api.threads
            barrier.wait()
        return inside, api.threads

    most = api.most_threads
    api.most_threads = 8
    try:
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(count, (2, 16))) == [(2, 8), (8, 8)]
    finally:
        api.most_threads = most


@pytest.mark.parametrize("count", [0, -1])
def test_no_threads_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"at least one of threads: {count}"):
        burn.compile(ops.relu, threads=count)


def test_without_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    blas_limits.cache_clear()
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(ImportError, match=r"pip install 'burn-runtime\[threads\]'"):
        burn.compile(ops.relu, threads=1)


def test_copies_keep_the_limit() -> None:
    compiled: Any = burn.compile(ops.relu, threads=1)
    assert pickle.loads(pickle.dumps(compiled))._threads == 1


def test_gradients_and_values_are_those_without_a_limit() -> None:
    weight = burn.Parameter(burn.tensor(normal(8, 6, 3, 3)))

    def slope(x: burn.Tensor) -> Any:
        with_gradient = x.to(burn.Autodiff(burn.Cpu())).require_grad()
        loss = ops.sum(ops.relu(ops.conv(with_gradient, weight.value)) ** 2)
        return loss.backward()[with_gradient]

    for batch in (1, 6):
        x = burn.tensor(normal(batch, 6, 6, 6, seed=1))
        limited, expected = burn.compile(slope, threads=1), slope(x).numpy()
        for _ in range(3):
            assert_close(limited(x).numpy(), expected)


PROGRAM = """
import os, sys
import numpy as np
import burn
from burn import nn, ops

weight = burn.Parameter(burn.from_numpy(np.full((64, 64, 3, 3), 0.01, np.float32)))
x = burn.from_numpy(np.ones((1, 64, 56, 56), np.float32))

def network(x):
    y = ops.conv(x, weight.value, padding=1)
    return ops.exp(-y) * y + y * y

def count():
    return len(os.listdir("/proc/self/task"))

before = count()
counts, results = [], []
for threads in (1, 2, 1, 3, None):
    compiled = burn.compile(network, generated=True, threads=threads)
    results += [compiled(x).numpy() for _ in range(3)]
    counts.append(count() - before)
assert all(np.allclose(result, results[0], 1e-4) for result in results)
print(counts)
"""


@needs_onednn
def test_threads_that_start() -> None:
    """The threads of OpenMP stay, so that each number is the most so far."""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("no /proc: threads are not listed on this platform")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    assert output == "[0, 1, 1, 2, 3]\n"


def test_results_of_numpy() -> None:
    compiled = burn.compile(lambda x: ops.matmul(x, x) + 1, threads=2)
    x = burn.tensor(normal(2, 3, 7, 7))
    with engine.numpy_only():
        for _ in range(3):
            expected = np.matmul(x.numpy(), x.numpy()) + 1
            np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5)
