"""Networks of images as exporters write them that number all arrays and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tests.modules import Array


class NumberedNet:
    """Nodes and weights of a network whose input has three channels."""

    def __init__(self, seed: int = 0, norms: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.norms = norms
        self.nodes: list[NodeProto] = []
        self.stored: dict[str, Array] = {}
        self.channels = {"0": 3}

    def name(self) -> str:
        return str(len(self.nodes) + len(self.stored) + 1)

    def run(self, operator: str, *names: str, channels: int = 0, **options: Any) -> str:
        """Add a node; return its result, with the channels of its first operand."""
        result = self.name()
        node = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], node, **options))
        self.channels[result] = channels or self.channels[names[0]]
        return result

    def store(self, array: Array) -> str:
        name = self.name()
        self.stored[name] = array.astype(np.float32)
        return name

    def conv(
        self, x: str, channels: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> str:
        """Add a convolution and, if the network has norms, its batch norm."""
        inputs = self.channels[x]
        shape = (channels, inputs // groups, kernel, kernel)
        weight = self.store(self.rng.normal(size=shape) / inputs)
        bias = self.store(self.rng.normal(size=channels))
        options = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": groups}
        y = self.run("Conv", x, weight, bias, channels=channels, **options)
        if not self.norms:
            return y
        parts = [self.store(self.rng.uniform(0.5, 1.5, channels)) for _ in range(4)]
        return self.run("BatchNormalization", y, *parts)

    def relu(self, x: str) -> str:
        return self.run("Relu", x)

    def pool(self, x: str) -> str:
        """Add a pooling that halves the image."""
        return self.run("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])

    def rename(self, names: Mapping[str, str]) -> None:
        """Call stored arrays by an author's names."""
        for node in self.nodes:
            inputs = [names.get(name, name) for name in node.input]
            node.input[:] = inputs
        self.stored = {names.get(n, n): array for n, array in self.stored.items()}

    def write(self, path: Path, result: str, head: str = "") -> Path:
        """Write the network with a linear head on the mean of ``result``.

        ``head`` is the author's name of the head, in a file without PyTorch's keys.
        """
        pooled = self.run("Flatten", self.run("GlobalAveragePool", result))
        weight = self.store(self.rng.normal(size=(5, self.channels[result])))
        bias = self.store(self.rng.normal(size=5))
        last = self.run("Gemm", pooled, weight, bias, transB=1)
        if head:
            self.rename({weight: f"{head}_weight", bias: f"{head}_bias"})
        given = helper.make_tensor_value_info("0", TensorProto.FLOAT, ("n", 3, 16, 16))
        out = helper.make_tensor_value_info(last, TensorProto.FLOAT, ("n", 5))
        stored = [numpy_helper.from_array(a, n) for n, a in self.stored.items()]
        graph = helper.make_graph(self.nodes, "net", [given], [out], stored)
        opsets = [helper.make_opsetid("", 13)]
        producer = "tf2onnx" if head else "pytorch"
        model = helper.make_model(graph, producer_name=producer, opset_imports=opsets)
        path.write_bytes(model.SerializeToString())
        return path


def basic(net: NumberedNet, x: str, channels: int) -> str:
    """Add ResNet's block, with a shortcut where the number of channels changes."""
    stride = 1 if net.channels[x] == channels else 2
    y = net.conv(net.relu(net.conv(x, channels, 3, stride)), channels, 3)
    shortcut = x if stride == 1 else net.conv(x, channels, 1, stride)
    return net.relu(net.run("Add", y, shortcut))


def inverted(net: NumberedNet, x: str, channels: int) -> str:
    """Add MobileNetV2's block, a sum where the number of channels stays."""
    wide = 3 * net.channels[x]
    y = net.relu(net.conv(net.relu(net.conv(x, wide)), wide, 3, groups=wide))
    y = net.conv(y, channels)
    return net.run("Add", x, y) if net.channels[x] == channels else y


def separable(net: NumberedNet, x: str, channels: int) -> str:
    """Add MobileNetV1's block: a depthwise and a pointwise convolution."""
    inputs = net.channels[x]
    y = net.relu(net.conv(x, inputs, 3, groups=inputs))
    return net.relu(net.conv(y, channels))


def fire(net: NumberedNet, x: str, channels: int) -> str:
    """Add SqueezeNet's module: a squeezing convolution and two expanding ones."""
    squeezed = net.relu(net.conv(x, channels // 2))
    parts = [net.relu(net.conv(squeezed, channels // 2, kernel)) for kernel in (1, 3)]
    return net.run("Concat", *parts, channels=channels, axis=1)


def dense(net: NumberedNet, x: str, channels: int) -> str:
    """Add DenseNet's layer, which appends ``channels`` channels."""
    y = net.conv(net.relu(net.conv(net.relu(x), 8)), channels, 3)
    total = net.channels[x] + channels
    return net.run("Concat", x, y, channels=total, axis=1)


def double(net: NumberedNet, x: str, channels: int) -> str:
    """Add VGG's stage: two convolutions and a pooling."""
    y = net.relu(net.conv(net.relu(net.conv(x, channels, 3)), channels, 3))
    return net.pool(y)


BLOCKS: dict[str, Callable[[NumberedNet, str, int], str]] = {
    "basic": basic,
    "inverted": inverted,
    "separable": separable,
    "fire": fire,
    "dense": dense,
    "double": double,
}
