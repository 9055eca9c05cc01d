"""Networks of torchvision from their weights alone, against onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.record import write_record
from burn_import import load
from tests.importer.recipes.onnx_net import OnnxNet
from tests.importer.recipes.vision_references import REFERENCES, write_configuration
from tests.modules import Array


def saved(folder: Path, state: dict[str, Array], name: str) -> Path:
    """Return the file of a state dict, with its configuration if it needs one."""
    path = folder / "net.safetensors"
    write_configuration(folder, name)
    write_record(path, list(state.items()))
    return path


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.sampled(3)
def test_outputs_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    reference, sizes = REFERENCES[name]
    model: Any = None
    for size in sizes:
        x = np.random.default_rng(3).normal(size=(2, 3, *size)).astype(np.float32)
        net = OnnxNet(x.shape)
        expected = net.run(reference(net, "x"), x)
        if model is None:
            model = load(saved(tmp_path, net.state, name))
            check_keys(model, net.state)
        actual = model(burn.tensor(x)).numpy()
        assert np.abs(expected[0] - expected[1]).max() > 0.005
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.sampled(3)
def test_wider_weights_keep_their_keys(name: str, tmp_path: Path) -> None:
    """Layers hold float32: weights of other dtypes are plain arrays."""
    reference, sizes = REFERENCES[name]
    x = np.random.default_rng(3).normal(size=(2, 3, *sizes[0])).astype(np.float32)
    net = OnnxNet(x.shape)
    expected = net.run(reference(net, "x"), x)
    state = {
        key: array.astype(np.float64) if array.dtype == np.float32 else array
        for key, array in net.state.items()
    }
    model: Any = load(saved(tmp_path, state, name))
    check_keys(model, state)
    actual = model(burn.tensor(x.astype(np.float64))).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def check_keys(model: Any, state: dict[str, Array]) -> None:
    """Return if the model holds every weight under its key."""
    kept = {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}
    actual = model.state_dict()
    assert set(actual) == set(kept)
    for key, value in kept.items():
        np.testing.assert_array_equal(actual[key].numpy(), value)
