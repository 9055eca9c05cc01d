"""Batch normalization in another precision is a layer with running statistics."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.options import Options
from tests.importer.onnx_files import saved
from tests.importer.torch_files import drawn, exported, node

VECTORS = "bn.weight bn.bias bn.running_mean bn.running_var"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_statistics_move_in_training(dtype: str, tmp_path: Path) -> None:
    nodes = [node("BatchNormalization", f"x {VECTORS}", "y", "bn")]
    weights = {name: np.abs(drawn(3, seed=n)) for n, name in enumerate(VECTORS.split())}
    file = saved(tmp_path / "net.onnx", exported(nodes, weights, [4, 3, 5, 5]))
    model = load(file, Options(dtype=dtype))
    state = model.state_dict()
    assert set(state) == set(weights)
    assert {str(tensor.dtype) for tensor in state.values()} == {dtype}

    x = drawn(4, 3, 5, 5, seed=7)
    given = burn.tensor(x).cast(getattr(burn, dtype))
    scale, bias, mean, var = (
        w.reshape(3, 1, 1).astype(np.float64) for w in weights.values()
    )
    expected = (x - mean) / np.sqrt(var + 1e-5) * scale + bias
    actual = model(given).numpy().astype(np.float64)  # type: ignore[operator]
    np.testing.assert_allclose(actual, expected, rtol=3e-2, atol=3e-2)

    model.to(burn.Autodiff(burn.Cpu()))
    model(given)  # type: ignore[operator]
    after = model.state_dict()["bn.running_mean"].numpy().astype(np.float64)
    moved = 0.9 * weights["bn.running_mean"] + 0.1 * x.mean((0, 2, 3))
    np.testing.assert_allclose(after, moved, rtol=2e-2, atol=2e-2)
