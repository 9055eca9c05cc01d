"""Files without scopes: blocks are found by the names of weights and by what reads."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.structure.scoped_net import ScopedNet, check_import
from tests.importer.structure.unscoped_net import (
    UnscopedNet,
    counted_block,
    dense_block,
    inception_block,
    residual_block,
)
from tests.modules import Array, call, onnxruntime_outputs

BLOCKS = (residual_block, inception_block, dense_block, counted_block)


def image(channels: int) -> Array:
    return np.random.default_rng(1).normal(size=(1, channels, 4, 4)).astype(np.float32)


def check(path: Path, channels: int) -> None:
    """Compare the module of a model with onnxruntime."""
    actual = call(load(path), [image(channels)])
    expected = onnxruntime_outputs(path, {"x": image(channels)})
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def residual_stages(*counts: int) -> UnscopedNet:
    """Return stages of residual blocks, the first of each with other channels."""
    net, at = UnscopedNet(3), "x"
    for stage, count in enumerate(counts, 1):
        for number in range(count):
            at = residual_block(net, f"stage{stage}_{number}", at, 4 * stage)
    return net


def test_stages_of_residual_blocks_are_chains(tmp_path: Path) -> None:
    net = residual_stages(3, 4)
    path = net.write(tmp_path / "net.onnx", net.nodes[-1].output[0])
    result = import_model(path)
    assert '"stage1": "stage1_{0}"' in result.text
    assert "self.stage2(self.stage1(x))" in result.text
    assert len(re.findall(r"^class ", result.text, re.MULTILINE)) == 2
    keys = {key for key, _ in result.weights}
    assert {"stage1_0.skip.weight", "stage2_3.a_bn.weight"} <= keys
    check(path, 3)


def test_two_blocks_are_no_list(tmp_path: Path) -> None:
    net = residual_stages(2, 2)
    text = import_model(net.write(tmp_path / "net.onnx", net.nodes[-1].output[0])).text
    assert "record_names" not in text and "self.stage1_0 = " in text


def test_a_pooled_branch_is_in_the_block_that_reads_it(tmp_path: Path) -> None:
    """What reads the input of a block and pools it has no weights of its own."""
    net, at = UnscopedNet(3), "x"
    for name in ("inception_3a", "inception_3b"):
        at = inception_block(net, name, at, 4)
    path = net.write(tmp_path / "net.onnx", net.pool(at))
    text = import_model(path).text
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2
    assert "self.pool_proj(ops.max_pool(x, " in text
    assert "x = self.inception_3b(self.inception_3a(x))" in text
    assert "return ops.max_pool(x, kernel_size=3, padding=1)" in text
    check(path, 3)


def test_layers_of_a_dense_block_are_one_chain(tmp_path: Path) -> None:
    net, at = UnscopedNet(4), "x"
    for number in range(1, 6):
        at = dense_block(net, f"conv2_{number}", at, 2)
    path = net.write(tmp_path / "net.onnx", at)
    text = import_model(path).text
    assert "nn.Sequential(*(Conv(4 + 2 * i) for i in range(5)))" in text
    check(path, 4)


def test_layers_numbered_through_the_network_are_blocks(tmp_path: Path) -> None:
    net, at = UnscopedNet(4), "x"
    for _ in range(5):
        at = counted_block(net, "", at, 4)
    path = net.write(tmp_path / "net.onnx", at)
    result = import_model(path)
    assert len(re.findall(r"^class ", result.text, re.MULTILINE)) == 2
    keys = {key for key, _ in result.weights}
    assert {"blocks.0.conv.weight", "blocks.4.conv_bn.weight"} <= keys
    check(path, 4)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_keep_their_values(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    net, results = UnscopedNet(3, seed), ["x"]
    for stage in range(rng.integers(1, 4)):
        block, channels = BLOCKS[rng.integers(len(BLOCKS))], int(rng.integers(2, 5))
        for number in range(rng.integers(1, 5)):
            name = f"stage{stage}{rng.choice(['_', '/unit'])}{number}"
            at = results[-1] if rng.random() < 0.8 else str(rng.choice(results))
            results.append(block(net, name, at, channels))
            if rng.random() < 0.2:
                results.append(net.pool(results[-1]))
    outputs = {results[-1], *rng.choice(results[1:], rng.integers(0, 3))}
    path = net.write(tmp_path / "net.onnx", *sorted(map(str, outputs)))
    check(path, 3)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_mean_over_an_image_is_behind_the_last_block(
    keepdims: int, tmp_path: Path
) -> None:
    """It is what PyTorch exports of ``x.mean((2, 3))`` and of an adaptive pooling."""
    net = residual_stages(3, 4)
    blocks = net.write(tmp_path / "blocks.onnx", net.nodes[-1].output[0])
    last = net.nodes[-1].output[0]
    net.run("ReduceMean", last, axes=[2, 3], keepdims=keepdims)
    path = net.write(tmp_path / "net.onnx", net.nodes[-1].output[0])
    text = import_model(path).text
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2
    (before,), (mean,) = (call(load(file), [image(3)]) for file in (blocks, path))
    expected = before.mean((2, 3), keepdims=bool(keepdims))
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-4)


def test_residual_sums_of_keys_without_scopes(tmp_path: Path) -> None:
    """Products have no keys, as in files of dynamo after a quantizer's optimization."""
    net = ScopedNet()
    x = net.run("Exp", "", net.input("x", "batch", 3, 6))
    for number in range(3):
        for part in ("attn", "mlp"):
            at = f"layers.{number}"
            keys = [f"{at}.{part}_norm.{name}" for name in ("weight", "bias")]
            scales = [net.weight(key, 6) for key in keys]
            y = net.run("LayerNormalization", "", x, *scales)
            y = net.run("MatMul", "", y, net.weight(f"val_{net.count}", 6, 6))
            y = net.run("Add", "", y, net.weight(f"{at}.{part}.fc.bias", 6))
            x = net.run("Add", "", x, net.run("Tanh", "", y))
    for node in net.nodes:
        node.name = node.name.strip("/")
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "for layer in self.layers:" in imported.source
    assert "self.layers[" not in imported.source


def split_in_block(is_gated: bool) -> ScopedNet:
    """Return a block that splits the result of a module by a node without scope.

    Dynamo writes such nodes. A gated module multiplies the halves, otherwise the block
    reads them.
    """
    net = ScopedNet()
    x = net.conv("block.cv1.conv", net.input("x", "batch", 3, 4, 4), 3, 4)
    x, halves = net.run("Tanh", "block.cv1.act", x), ["left", "right"]
    options: dict[str, Any] = {"name": "node_Split_1", "axis": 1, "num_outputs": 2}
    net.nodes.append(onnx.helper.make_node("Split", [x], halves, **options))
    if is_gated:
        left = net.run("Mul", "block.cv1", *halves)
        y = net.conv("block.m.conv", left, 2, 2)
    else:
        left, y = halves[0], net.conv("block.m.conv", halves[1], 2, 2)
    y = net.run("Concat", "block", left, y, axis=1)
    net.conv("block.cv2.conv", y, 4, 3)
    return net


@pytest.mark.parametrize("is_gated", [False, True])
def test_a_split_is_outside_if_only_other_modules_read_it(
    is_gated: bool, tmp_path: Path
) -> None:
    net = split_in_block(is_gated)
    imported = check_import(tmp_path, net.model(net.nodes[-1].output[0]), net.feeds())
    assert ("ops.chunk(self.cv1(x)," in imported.source) is not is_gated
    assert "tuple[" not in imported.source
