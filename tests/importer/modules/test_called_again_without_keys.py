"""Second calls of modules whose weights an exporter computed, so that they have no key.

TorchScript's exporter folds a batch norm into a convolution, and numbers the scope of
the second call.
"""

from pathlib import Path

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import


def embed(net: ScopedNet, x: str, number: str, weight: str) -> str:
    """Run a convolution and a layer; ``number`` ends the scopes of a second call."""
    x = net.run("Conv", f"conv{number}", x, weight, net.weight("onnx::Conv_8", 4))
    x = net.run("Flatten", "", net.run("GlobalAveragePool", "", x))
    bias = net.weight("fc.bias", 2)
    return net.run("Gemm", f"fc{number}", x, net.weight("fc.weight", 4, 2), bias)


def test_two_calls_read_one_kernel(tmp_path: Path) -> None:
    net = ScopedNet()
    kernel = net.weight("onnx::Conv_7", 4, 3, 1, 1)
    inputs = [net.input(name, 2, 3, 4, 4) for name in ("first", "second")]
    results = [
        embed(net, x, number, kernel)
        for x, number in zip(inputs, ("", "_1"), strict=True)
    ]
    actual = check_import(tmp_path, net.model(*results), net.feeds())
    assert actual.source.count("self.conv(") == 2
    assert actual.keys == {"conv.weight", "conv.bias", "fc.weight", "fc.bias"}


def test_a_filled_kernel_tells_nothing(tmp_path: Path) -> None:
    """Exporters store equal arrays once, and new weights may be all ones."""
    net = ScopedNet()
    kernel = net.stored("onnx::Conv_7", np.ones((3, 3, 1, 1), np.float32))
    x = net.input("x", 2, 3, 4, 4)
    for scope in ("conv", "conv_1"):
        x = net.run("Relu", "", net.run("Conv", scope, x, kernel))
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert actual.source.count("nn.Conv2d(") == 2
