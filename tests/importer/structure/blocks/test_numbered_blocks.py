"""Blocks of files whose arrays and nodes have no names, only numbers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import.loading import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.structure.blocks.numbered_net import BLOCKS, NumberedNet
from tests.modules import call, onnxruntime_outputs

#: The channels of five blocks: they stay, grow and shrink.
CHANNELS = (8, 8, 16, 16, 12)


def stacked(name: str, norms: bool, tmp_path: Path) -> Path:
    net = NumberedNet(norms=norms)
    at = net.conv("0", 8, 3)
    for channels in CHANNELS[: 3 if name == "double" else None]:
        at = BLOCKS[name](net, at, channels)
    return net.write(tmp_path / "net.onnx", at)


def check(path: Path) -> None:
    """Compare the module with onnxruntime: eager, compiled, and with other batches."""
    module: Any = load(path)
    compiled: Any = burn.compile(module)
    for batch in (1, 2, 2):
        x = np.random.default_rng(batch).normal(size=(batch, 3, 16, 16))
        x = x.astype(np.float32)
        (expected,) = onnxruntime_outputs(path, {"0": x})
        for model in (module, compiled):
            (result,) = call(model, [x])
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norms", [True, False])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_different_sizes_are_one_list(
    name: str, norms: bool, tmp_path: Path
) -> None:
    path = stacked(name, norms, tmp_path)
    result = import_model(path)
    assert len(re.findall(r"^class ", result.text, re.MULTILINE)) == 2
    keys = {key.split(".")[1] for key, _ in result.weights if key[:6] == "blocks"}
    assert keys == set(map(str, range(3 if name == "double" else 5)))
    check(path)


@pytest.mark.parametrize("norms", [True, False])
def test_numbered_arrays_are_trained(norms: bool, tmp_path: Path) -> None:
    """A number tells nothing, also one of a single digit."""
    net = NumberedNet(norms=norms)
    path = net.write(tmp_path / "net.onnx", net.relu(net.conv("0", 8, 3)))
    text = import_model(path).text
    assert "nn.buffer" not in text and "note" not in text
    assert "nn.Conv2d" in text and "nn.Linear" in text


@pytest.mark.parametrize("seed", range(30))
def test_random_networks_keep_their_values(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    net = NumberedNet(seed, norms=bool(seed % 2))
    results = [net.relu(net.conv("0", 8, 3)) if seed % 3 else "0"]
    for _ in range(rng.integers(2, 9)):
        block = list(BLOCKS.values())[rng.integers(len(BLOCKS) - 1)]
        at = results[-1] if rng.random() < 0.8 else str(rng.choice(results))
        results.append(block(net, at, int(rng.integers(2, 4)) * 4))
    path = net.write(tmp_path / "net.onnx", results[-1])
    check(path)
    flat = import_model(path, Options(flat=True))
    assert len(import_model(path).weights) == len(flat.weights)


def test_a_list_is_not_called_as_a_layer(tmp_path: Path) -> None:
    """The head has the name ``blocks``, which the list of blocks would have."""
    net = NumberedNet(norms=False)
    at = net.conv("0", 8, 3)
    for channels in CHANNELS:
        at = BLOCKS["basic"](net, at, channels)
    numbers = [name for name in net.stored if net.stored[name].ndim == 4]
    layers = {name: f"gconv{index}_weight" for index, name in enumerate(numbers)}
    net.rename(layers)
    path = net.write(tmp_path / "net.onnx", at, head="blocks")
    keys = {key.split(".")[0] for key, _ in import_model(path).weights}
    assert {"blocks", "blocks_2"} <= keys
    check(path)


@pytest.mark.parametrize("head", ["fc", "conv_norm", "conv_norm_3"])
def test_a_normalized_convolution_is_not_called_as_a_layer(
    head: str, tmp_path: Path
) -> None:
    net, at = NumberedNet(), "0"
    for number, channels in enumerate((4, 8, 5, 9, 7, 6, 10, 11, 3, 12)):
        at = net.relu(net.conv(at, channels, 1 + 2 * (number % 2)))
        at = net.run("Neg", at) if number % 3 == 1 else at
    path = net.write(tmp_path / "net.onnx", at, head)
    keys = {key.split(".")[0] for key, _ in import_model(path).weights}
    assert head in keys and "conv_norm_2" in keys and len(keys) == 11
    check(path)
