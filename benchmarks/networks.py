"""Well-known networks as ONNX files with random weights, written without a download.

Batch normalization is part of the convolutions, as exporters write it for inference.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.cases import Feeds
from benchmarks.importer.generation import HIDDEN, TorchScript

#: What a weight of a matrix of BERT is at most: it was not trained for more.
SCALE = 0.04


class Images:
    """A classifier of images that is written layer by layer."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.rng = np.random.default_rng(0)

    def add(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """The output of a new node."""
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attrs))
        return output

    def weight(self, *shape: int) -> str:
        """The name of a random weight whose products keep the size of activations."""
        name = f"weight_{len(self.stored)}"
        spread = (2 / prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.1
        value = (self.rng.standard_normal(shape) * spread).astype(np.float32)
        self.stored.append(numpy_helper.from_array(value, name))
        return name

    def conv(
        self,
        x: str,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
    ) -> str:
        """A convolution that keeps the extents, divided by the stride."""
        weights = self.weight(outputs, inputs // groups, kernel, kernel)
        return self.add(
            *("Conv", x, weights, self.weight(outputs)),
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            group=groups,
        )

    def relu6(self, x: str) -> str:
        """``x`` between 0 and 6."""
        for name, value in (("low", 0.0), ("high", 6.0)):
            if name not in [tensor.name for tensor in self.stored]:
                tensor = numpy_helper.from_array(np.array(value, np.float32), name)
                self.stored.append(tensor)
        return self.add("Clip", x, "low", "high")

    def head(self, x: str, features: int) -> None:
        """The mean over space, and a thousand classes."""
        x = self.add("Flatten", self.add("GlobalAveragePool", x))
        weights = (self.weight(1000, features), self.weight(1000))
        self.add("Gemm", x, *weights, transB=1)

    def save(self, path: Path, batch: int) -> Path:
        """Write the model for a batch; ``path``."""
        shape = [batch, 3, 224, 224]
        entry = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
        self.nodes[-1].output[0] = "scores"
        shape = [batch, 1000]
        result = helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "main", [entry], [result], self.stored)
        opsets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        return path


def resnet50(folder: Path, batch: int = 1) -> Path:
    """The file of ResNet-50 for images of 224 by 224."""
    net = Images()
    x = net.add("Relu", net.conv("image", 3, 64, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for blocks, width, first in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            y = net.add("Relu", net.conv(x, inputs, width, 1))
            y = net.add("Relu", net.conv(y, width, width, 3, stride))
            y = net.conv(y, width, 4 * width, 1)
            if block == 0:
                x = net.conv(x, inputs, 4 * width, 1, stride)
            x = net.add("Relu", net.add("Add", y, x))
            inputs = 4 * width
    net.head(x, inputs)
    return net.save(folder / f"resnet50_b{batch}.onnx", batch)


def mobilenet_v2(folder: Path, batch: int = 1) -> Path:
    """The file of MobileNetV2 for images of 224 by 224."""
    net = Images()
    x = net.relu6(net.conv("image", 3, 32, 3, 2))
    inputs = 32
    for grown, outputs, blocks, first in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for block in range(blocks):
            stride = first if block == 0 else 1
            width = grown * inputs
            y = x if grown == 1 else net.relu6(net.conv(x, inputs, width, 1))
            y = net.relu6(net.conv(y, width, width, 3, stride, width))
            y = net.conv(y, width, outputs, 1)
            x = net.add("Add", y, x) if block else y
            inputs = outputs
    net.head(net.relu6(net.conv(x, inputs, 1280, 1)), 1280)
    return net.save(folder / f"mobilenet_v2_b{batch}.onnx", batch)


def bert_base(folder: Path, batch: int = 1) -> Path:
    """The file of BERT-base, as PyTorch's older exporter writes it."""
    inside = folder / "bert"
    inside.mkdir()
    net = TorchScript()
    net.model(12)
    path = net.save(inside / "bert_base.onnx")
    rng = np.random.default_rng(0)
    with path.with_name("weights.bin").open("r+b") as file:
        for _ in range(0, net.size, 4 * HIDDEN):
            row = rng.standard_normal(HIDDEN, np.float32) * np.float32(SCALE)
            file.write(row.tobytes())
    return path


def images(batch: int) -> Feeds:
    """Random images."""
    rng = np.random.default_rng(1)
    return {"image": rng.standard_normal((batch, 3, 224, 224), np.float32)}


def words(batch: int) -> Feeds:
    """128 random words, the last ten of which are padding."""
    rng = np.random.default_rng(1)
    mask = np.ones((batch, 128), np.int64)
    mask[:, -10:] = 0
    return {"input_ids": rng.integers(0, 30000, (batch, 128)), "attention_mask": mask}


#: Name, what writes the file, its inputs, and the batch.
NETWORKS: tuple[
    tuple[str, Callable[[Path, int], Path], Callable[[int], Feeds], int], ...
] = (
    ("resnet50 b1", resnet50, images, 1),
    ("resnet50 b8", resnet50, images, 8),
    ("mobilenet_v2 b1", mobilenet_v2, images, 1),
    ("bert_base s128 b1", bert_base, words, 1),
)
