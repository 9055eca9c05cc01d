"""Export of modules with data-dependent dimensions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, ops
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
