"""``ops.fake_quantize`` is exported as QuantizeLinear and DequantizeLinear."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn import Autodiff, Buffer, Cpu, Tensor, nn, ops, optim, train
from burn_import import export_onnx, load

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
#: Bounds, scale, zero point, opset, and the counts of nodes.
PAIR = {"QuantizeLinear": 1, "DequantizeLinear": 1}
CLIPPED = {"QuantizeLinear": 1, "Clip": 1, "DequantizeLinear": 1}
COMPUTED = {"Div": 1, "Round": 1, "Add": 1, "Clip": 1, "Sub": 1, "Mul": 1}
CHANNELS = np.array([0.01, 0.02, 0.03, 0.04], np.float32)[:, None]
EACH = np.arange(1, 21, dtype=np.float32).reshape(4, 5) / 100
CASES: dict[str, tuple[int, int, Any, Any, int, dict[str, int]]] = {
    "uint8": (0, 255, 0.02, np.uint8(120), 17, PAIR),
    "int8": (-128, 127, 0.02, np.int32(-3), 20, PAIR),
    "vector of one": (-128, 127, np.ones((1, 1), np.float32), np.int8(0), 20, PAIR),
    "channels": (-128, 127, CHANNELS, np.int8(0), 20, PAIR),
    "zero of channels": (0, 255, 0.02, np.arange(4)[:, None], 20, PAIR),
    "last axis": (-128, 127, EACH[0], np.zeros(5), 20, PAIR),
    "narrow": (-127, 127, 0.02, np.int8(0), 20, CLIPPED),
    "two bits": (-1, 1, CHANNELS, np.int8(0), 20, CLIPPED),
    "four bits": (-8, 7, 0.2, np.int8(1), 21, PAIR),
    "four bits of opset 20": (-8, 7, 0.2, np.int8(1), 20, CLIPPED),
    "16 bits": (-32768, 32767, 0.001, np.int16(5), 21, PAIR),
    "16 bits of opset 20": (-32768, 32767, 0.001, np.int16(5), 20, COMPUTED),
    "two axes": (-128, 127, EACH, np.int8(0), 20, COMPUTED),
    "half a zero": (0, 255, 0.02, 2.5, 20, COMPUTED),
    "zero out of bounds": (0, 255, 0.02, -3.0, 20, COMPUTED),
}


class Quantizer(nn.Module):
    """Arrays of float32[n, 4, 5], with a scale and zero point that are stored."""

    def __init__(self, low: int, high: int, scale: Any, zero: Any) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.scale = Buffer(burn.tensor(np.asarray(scale, np.float32)))
        self.zero = Buffer(burn.tensor(np.asarray(zero)))

    def __call__(self, x: Tensor) -> Tensor:
        bounds = {"low": self.low, "high": self.high}
        return ops.fake_quantize(x, self.scale.value, self.zero.value, **bounds)


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(str(path)).graph.node)


@pytest.mark.parametrize("name", CASES)
def test_nodes_are_those_of_the_range(name: str, tmp_path: Path) -> None:
    low, high, scale, zero, opset, nodes = CASES[name]
    model = Quantizer(low, high, scale, zero)
    dynamic = {"x": {0: "batch"}}
    written = export_onnx(model, X, tmp_path / "q.onnx", opset=opset, dynamic=dynamic)
    assert operators(written.path) == nodes
    assert written.difference is not None and written.difference < 1e-6
    expected = model(burn.tensor(X[:2])).numpy()
    again: Any = load(written.path)
    np.testing.assert_allclose(again(burn.tensor(X[:2])).numpy(), expected, atol=1e-6)


class Layer(nn.Module):
    """A linear layer with weights and operands of eight bits, in training."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 6)

    def __call__(self, x: Tensor) -> Tensor:
        scale = ops.abs(self.inner.weight).max(1, keepdims=True).detach() / 127.0
        weight = ops.fake_quantize(self.inner.weight, scale, 0, low=-128, high=127)
        x = ops.fake_quantize(x, 0.05, 128, low=0, high=255)
        return ops.linear(x, weight, self.inner.bias)


def test_a_trained_network_has_scales_of_its_weights(tmp_path: Path) -> None:
    model = Layer().to(Autodiff(Cpu()))

    @train.step(model, optim.Adam(model, lr=0.05))
    def step(x: Tensor) -> Tensor:
        return ((model(x) - 1.0) ** 2.0).mean()

    losses = [float(step(burn.tensor(X))) for _ in range(10)]
    assert losses[-1] < 0.5 * losses[0]
    written = export_onnx(model, X, tmp_path / "q.onnx")
    counts = operators(written.path)
    assert counts["QuantizeLinear"] == counts["DequantizeLinear"] == 2
    assert not counts["Round"]
    assert "inner.weight" in {t.name for t in onnx.load(written.path).graph.initializer}
    again: Any = load(written.path)
    expected = model.valid()(burn.tensor(X)).numpy()
    np.testing.assert_allclose(again(burn.tensor(X)).numpy(), expected, atol=1e-4)


class Convolution(nn.Conv2d):
    """A convolution whose weights and results are quantized."""

    def __call__(self, x: Tensor) -> Tensor:
        scale = ops.abs(self.weight).max((1, 2, 3), keepdims=True).detach() / 127.0
        weight = ops.fake_quantize(self.weight, scale, 0, low=-128, high=127)
        y = ops.relu(ops.conv(x, weight, self.bias, padding=self.padding))
        return ops.fake_quantize(y, 1 / 32, 0, low=0, high=255)


class Stack(nn.Module):
    """Images of float32[n, 3, 16, 16] through several such convolutions."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [3, 16, 16, 16, 16]
        self.layers = nn.ModuleList(
            Convolution(*pair, kernel_size=3, padding=1)
            for pair in zip(sizes[:-1], sizes[1:], strict=True)
        )

    def __call__(self, x: Tensor) -> Tensor:
        x = ops.fake_quantize(x, 1 / 32, 128, low=0, high=255)
        for layer in self.layers:
            x = layer(x)
        return x


def test_onnxruntime_computes_the_layers_in_integers(tmp_path: Path) -> None:
    nn.init.seed(0)
    images = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)
    written = export_onnx(Stack(), images, tmp_path / "q.onnx")
    assert written.difference is not None and written.difference <= 1 / 16
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(str(written.path), options)
    counts = operators(tmp_path / "optimized.onnx")
    assert counts["QLinearConv"] == 4 and not counts["Conv"]
