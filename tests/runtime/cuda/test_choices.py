"""Results of tuning: remembered, read by later processes, and optional."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.backend import disk_cache, set_kernel_cache
from burn.backend.cuda import choices
from burn.backend.cuda.choices import choice_of, read_choice, write_choice
from burn.backend.cuda.kernels.convolution import (
    cudnn_graphs,
    depthwise,
    fused_convolution,
)
from burn.backend.cuda.kernels.products import products, row_linear
from tests.runtime.cuda.test_fusions import SHAPES, TOLERANCE, Depthwise
from tests.runtime.onednn import normal
from tests.runtime.plan.device.test_fusions import Block, Encoder, filled

KEY = ("product", np.dtype(np.float16), (3, 4))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for the cache, in a process that has measured nothing."""
    before = disk_cache._current
    set_kernel_cache(tmp_path / "cache")
    forget(monkeypatch)
    yield tmp_path / "cache"
    disk_cache._current = before


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A device and its libraries, by one name that tests may change."""
    names = ["H100"]
    monkeypatch.setattr(choices, "_environment", lambda device: tuple(names))
    return names


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all results of tuning from memory."""
    monkeypatch.setattr(choices, "_CHOSEN", {})
    monkeypatch.setattr(cudnn_graphs.GRAPHS, "_built", {})
    monkeypatch.setattr(products._PRODUCTS, "prepared", {})


def number(answer: int, count: int = 4) -> tuple[int, bool]:
    """Return the number of an algorithm, and whether it was measured."""
    measured: list[int] = []

    def choose() -> int:
        measured.append(answer)
        return answer

    return choice_of(0, KEY, count, choose), bool(measured)


@pytest.mark.usefixtures("folder")
def test_later_processes_read_the_number(
    environment: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert number(2) == (2, True)
    assert number(3) == (2, False)
    forget(monkeypatch)
    assert number(3) == (2, False)
    assert number(3, count=5) == (3, True)
    forget(monkeypatch)
    environment[0] = "H200"
    assert number(-1) == (-1, True)
    forget(monkeypatch)
    assert number(1) == (-1, False)


@pytest.mark.usefixtures("folder", "environment")
@pytest.mark.parametrize("content", (b"", b"4", b"-2", b"two", b"\xff"))
def test_other_contents_are_measured_again(content: bytes) -> None:
    write_choice(0, (KEY, 4), content)
    assert number(1) == (1, True)
    assert read_choice(0, (KEY, 4)) == b"1"


@pytest.mark.cuda
@pytest.mark.parametrize("kind", (Block, Depthwise, Encoder))
@pytest.mark.parametrize("precision", ("float16", "tf32"))
def test_restored_plans(
    kind: Any, precision: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later process measures nothing, and computes the same bits."""
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    monkeypatch.setattr(device, "tf32", precision == "tf32", raising=False)
    dtype = "float16" if precision == "float16" else "float32"
    module, x = filled(kind(), dtype, device), normal(2, *SHAPES[kind]).astype(dtype)

    def results() -> list[Any]:
        plan = burn.compile(module)
        outs = [plan(burn.from_numpy(x, device)).numpy() for _ in range(3)]
        assert plan.notes == []
        return outs

    expected = results()
    assert list(folder.iterdir())
    forget(monkeypatch)
    refuse_measuring(monkeypatch)
    np.testing.assert_array_equal(results()[1:], expected[1:])


def refuse_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    def quickest(*args: Any, **options: Any) -> Any:
        raise AssertionError("algorithms are measured")

    for each in (cudnn_graphs, depthwise, fused_convolution, row_linear, products):
        monkeypatch.setattr(each, "quickest", quickest)


@pytest.mark.cuda
@pytest.mark.parametrize("kind", (Block, Depthwise, Encoder))
def test_plans_without_tuning(
    kind: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    monkeypatch.setattr(device, "tuning", False, raising=False)
    refuse_measuring(monkeypatch)
    module, x = filled(kind(), "float16", device), normal(2, *SHAPES[kind])
    host = filled(kind(), "float32", burn.Cpu())
    plan = burn.compile(module)
    expected = host(burn.from_numpy(x)).numpy()
    for _ in range(3):
        actual = plan(burn.from_numpy(x.astype("float16"), device)).numpy()
        atol = TOLERANCE["float16"] * np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, atol=atol, rtol=0)
    assert plan.notes == [] and not folder.exists()
