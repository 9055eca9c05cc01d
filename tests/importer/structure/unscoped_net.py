"""Networks of named weights without scopes of nodes, as Caffe2's and MXNet's files."""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tests.modules import Array


class UnscopedNet:
    """Nodes and weights of a network of images with ``channels`` channels."""

    def __init__(self, channels: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.stored: dict[str, Array] = {}
        self.channels = {"x": channels}

    def run(self, operator: str, *names: str, channels: int = 0, **options: Any) -> str:
        """Add a node; return its result, with the channels of its first operand."""
        result = f"r{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], **options))
        self.channels[result] = channels or self.channels[names[0]]
        return result

    def conv(self, name: str, x: str, channels: int) -> str:
        """Add a convolution of one pixel, with weights called ``name``."""
        shape = (channels, self.channels[x], 1, 1)
        weight = self.rng.normal(size=shape).astype(np.float32)
        self.stored[f"{name}_w_0"] = weight / self.channels[x]
        self.stored[f"{name}_b_0"] = self.rng.normal(size=channels).astype(np.float32)
        names = (x, f"{name}_w_0", f"{name}_b_0")
        return self.run("Conv", *names, channels=channels)

    def norm(self, name: str, x: str) -> str:
        """Add a batch norm, with its weight and bias as a layer of its own."""
        count = self.channels[x]
        numbers = self.rng.uniform(0.5, 1.5, (4, count)).astype(np.float32)
        arrays = (np.ones(count, np.float32), np.zeros(count, np.float32), *numbers[:2])
        parts = [f"{name}_{part}_0" for part in ("scale", "bias", "mean", "var")]
        self.stored |= dict(zip(parts, arrays, strict=True))
        normalized = self.run("BatchNormalization", x, *parts)
        for part, operator, own in zip("wb", ("Mul", "Add"), numbers[2:], strict=True):
            self.stored[f"{name}_{part}_0"] = own.reshape(-1, 1, 1)
            normalized = self.run(operator, normalized, f"{name}_{part}_0")
        return normalized

    def pool(self, x: str) -> str:
        """Add a pooling that keeps the size."""
        return self.run("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def write(self, path: Path, *results: str) -> Path:
        """Write the model to ``path``."""
        given, *out = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, count, 4, 4))
            for name, count in ((n, self.channels[n]) for n in ("x", *results))
        )
        stored = [numpy_helper.from_array(a, name) for name, a in self.stored.items()]
        graph = helper.make_graph(self.nodes, "net", [given], out, stored)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, producer_name="caffe2", opset_imports=opsets)
        path.write_bytes(model.SerializeToString())
        return path


def residual_block(net: UnscopedNet, name: str, x: str, channels: int) -> str:
    """Add two convolutions and a sum; return its result."""
    y = net.run("Relu", net.norm(f"{name}_a_bn", net.conv(f"{name}_a", x, channels)))
    y = net.conv(f"{name}_b", y, channels)
    same = x if net.channels[x] == channels else net.conv(f"{name}_skip", x, channels)
    return net.run("Relu", net.run("Add", y, same))


def inception_block(net: UnscopedNet, name: str, x: str, channels: int) -> str:
    """Add branches, one of which pools; return their concatenation."""
    one = net.run("Relu", net.conv(f"{name}/1x1", x, channels))
    two = net.conv(f"{name}/3x3_reduce", x, channels)
    two = net.run("Relu", net.conv(f"{name}/3x3", net.run("Relu", two), channels))
    pooled = net.run("Relu", net.conv(f"{name}/pool_proj", net.pool(x), channels))
    every = (one, two, pooled)
    return net.run(
        "Concat", *every, axis=1, channels=sum(net.channels[n] for n in every)
    )


def dense_block(net: UnscopedNet, name: str, x: str, channels: int) -> str:
    """Add a layer of a dense block; return the features with its own."""
    y = net.run("Relu", net.norm(f"{name}/x1/bn", x))
    y = net.conv(f"{name}/x1", y, channels)
    return net.run("Concat", x, y, axis=1, channels=net.channels[x] + net.channels[y])


def counted_block(net: UnscopedNet, name: str, x: str, channels: int) -> str:
    """Add a residual block whose layers are numbered through the network."""
    number = len(net.nodes)
    y = net.run("Relu", net.conv(f"{name[:2]}conv_{number}", x, channels))
    y = net.norm(f"{name[:2]}conv_{number + 1}_bn", y)
    y = net.conv(f"{name[:2]}conv_{number + 1}", y, channels)
    return net.run("Relu", net.run("Add", y, x) if net.channels[x] == channels else y)
