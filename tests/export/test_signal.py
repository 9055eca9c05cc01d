"""Export of Fourier transforms along each axis."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Tensor, ops
from burn_import import export_onnx
from burn_import.export.errors import ExportError
from burn_import.verification.session import run_model


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("length", [None, 4, 7])
@pytest.mark.parametrize("axis", [1, -2])
def test_transforms_along_an_axis(
    axis: int, length: int | None, opset: int, tmp_path: Path
) -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = ops.dft(x, length, axis)
        return (
            y,
            ops.dft(y, length, axis, inverse=True),
            ops.dft(x, axis=1, onesided=True),
        )

    random = np.random.default_rng(2)
    example = random.normal(size=(2, 6, 5, 1)).astype(np.float32)
    path = tmp_path / "dft.onnx"
    export_onnx(model, (example,), path, dynamic={"x": {0: "batch"}}, opset=opset)
    larger = random.normal(size=(3, 6, 5, 1)).astype(np.float32)
    results, _ = run_model(str(path), {"x": larger})
    for result, expected in zip(results, model(burn.tensor(larger)), strict=True):
        np.testing.assert_allclose(result, expected.numpy(), atol=1e-4)


def test_a_real_signal_of_frequencies_is_refused(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return ops.dft(x, axis=1, inverse=True, onesided=True)

    example = np.ones((1, 5, 2), np.float32)
    with pytest.raises(ExportError, match="one-sided"):
        export_onnx(model, (example,), tmp_path / "dft.onnx")
