"""Export of normalizations with and without weights."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops
from burn_import import export_onnx
from burn_import.export.errors import ExportError
from burn_import.verification.session import run_model

CHANNELS = 4
NORMS: dict[str, Callable[..., Tensor]] = {
    "group": partial(ops.group_norm, groups=2),
    "instance": ops.instance_norm,
    "layer": partial(ops.layer_norm, axis=-1),
}
RANDOM = np.random.default_rng(5)
WEIGHT, BIAS = (RANDOM.random(CHANNELS).astype(np.float32) for _ in range(2))
AFFINE = {
    "no weights": (None, None),
    "weight": (WEIGHT, None),
    "bias": (None, BIAS),
    "both": (WEIGHT, BIAS),
}


@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("affine", sorted(AFFINE))
@pytest.mark.parametrize("name", sorted(NORMS))
def test_weights_are_optional(
    name: str, affine: str, opset: int, tmp_path: Path
) -> None:
    arrays = AFFINE[affine]
    weight, bias = (None if a is None else burn.tensor(a) for a in arrays)

    def model(x: Tensor) -> Tensor:
        return NORMS[name](x, weight, bias, epsilon=1e-3)

    example = RANDOM.random((2, CHANNELS, 3, CHANNELS)).astype(np.float32)
    path, dynamic = tmp_path / "norm.onnx", {"x": {0: "batch", 2: "height"}}
    export_onnx(model, (example,), path, dynamic=dynamic, opset=opset)
    larger = RANDOM.random((3, CHANNELS, 5, CHANNELS)).astype(np.float32)
    for x in (example, larger):
        results: Any
        results, _ = run_model(str(path), {"x": x})
        expected = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(results[0], expected, atol=1e-5)


def test_varying_channels_without_weights_are_refused(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return ops.instance_norm(x)

    example = np.ones((2, CHANNELS, 3), np.float32)
    with pytest.raises(ExportError, match="varying number of channels"):
        export_onnx(
            model, (example,), tmp_path / "n.onnx", dynamic={"x": {1: "channels"}}
        )


def test_weights_may_be_parameters(tmp_path: Path) -> None:
    """Norms that are recorded whole read their parameters, as single operations do."""
    norm = nn.InstanceNorm1d(CHANNELS, affine=True)
    norm.load_state_dict({"weight": WEIGHT, "bias": BIAS})

    def model(x: Tensor) -> Tensor:
        return ops.relu(norm(x))

    x = RANDOM.random((2, CHANNELS, 3)).astype(np.float32)
    export_onnx(model, (x,), tmp_path / "n.onnx", dynamic={"x": {0: "batch"}})
    results: Any
    results, _ = run_model(str(tmp_path / "n.onnx"), {"x": x})
    np.testing.assert_allclose(results[0], model(burn.tensor(x)).numpy(), atol=1e-5)
