"""Export of modules with data-dependent dimensions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops
from burn_import import export_onnx
from burn_import.export.errors import ExportError
from burn_import.verification.session import run_model

EXAMPLE = np.array([[1, 0, 2], [3, 0, 0]], np.float32)
OTHER = np.array([[0, 0, 0], [0, 5, 0]], np.float32)
DYNAMIC = (None, {"x": {0: "rows"}})


def indices(x: Tensor) -> Tensor:
    """Return the indices of nonzero elements, whose number depends on the data."""
    return ops.nonzero(x)


def flat_indices(x: Tensor) -> Tensor:
    """Return the same flattened; Python computes the dimension."""
    y = ops.nonzero(x)
    return y.reshape(y.shape[0] * y.shape[1])


def summed(x: Tensor) -> Tensor:
    """Return a sum in a Python loop over a data-dependent count."""
    y = ops.nonzero(x)
    total = ops.zeros(())
    for i in range(y.shape[1]):
        total = total + y[0, i].cast(burn.float32)
    return total


@pytest.mark.parametrize("dynamic", DYNAMIC)
def test_an_extent_that_only_a_result_has(dynamic: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    export_onnx(indices, EXAMPLE, path, dynamic=dynamic)
    (actual,), _ = run_model(str(path), {"x": OTHER})
    np.testing.assert_array_equal(actual, indices(burn.tensor(OTHER)).numpy())


@pytest.mark.parametrize("dynamic", DYNAMIC)
@pytest.mark.parametrize("function", [flat_indices, summed])
def test_an_extent_that_python_computes_with_is_refused(
    function: Callable[[Tensor], Tensor], dynamic: Any, tmp_path: Path
) -> None:
    path = tmp_path / "out.onnx"
    with pytest.raises(ExportError, match=r"test_data_extents.py:\d+: .*(data|rows=4)"):
        export_onnx(function, EXAMPLE, path, dynamic=dynamic)
    assert not path.exists()


def test_specialize_keeps_the_extent_of_the_example(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    export_onnx(flat_indices, EXAMPLE, path, specialize=True)
    (actual,), _ = run_model(str(path), {"x": EXAMPLE})
    np.testing.assert_array_equal(actual, [0, 0, 1, 0, 2, 0])


class Padded(nn.Module):
    """Pads a signal to at least eight samples."""

    def __call__(self, x: Tensor) -> Tensor:
        samples = x.shape[1]
        return ops.concat([x, ops.full((1, max(8 - samples, 0)), 0.0)], axis=1)


class Blocks(nn.Module):
    """Reads blocks of 8, at least one."""

    def __call__(self, x: Tensor) -> Tensor:
        samples = x.shape[1]
        return ops.pad(x, (0, 0, 0, 8))[:, : max(samples // 8, 1)]


def test_a_maximum_of_an_extent(tmp_path: Path) -> None:
    """Sizes of the runs are below and above the number in ``max``."""
    model, path = Padded(), tmp_path / "padded.onnx"
    export_onnx(model, ops.full((1, 3), 1.0), path, dynamic={"x": {1: "samples"}})
    for samples in (1, 7, 8, 9, 40):
        x = np.arange(samples, dtype=np.float32)[None] + 1
        expected = model(burn.tensor(x)).numpy()
        (actual,), _ = run_model(str(path), {"x": x})
        np.testing.assert_array_equal(actual, expected)


def test_an_extent_without_a_formula_is_refused(tmp_path: Path) -> None:
    """In runs with less than 16 samples it is always 1."""
    path = tmp_path / "blocks.onnx"
    with pytest.raises(ExportError):
        export_onnx(
            Blocks(), ops.full((1, 3), 1.0), path, dynamic={"x": {1: "samples"}}
        )
    assert not path.exists()
