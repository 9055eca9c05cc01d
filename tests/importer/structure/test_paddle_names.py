"""Names of PaddlePaddle's exporter: dots in them separate no modules."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.importer.looped import arrays, compare, judged, normal, tensors
from tests.modules import Array, generate, import_file

CHANNELS = (3, 8, 8, 12, 12, 16, 16, 20, 20)


class PaddleNet:
    """A network of images as paddle2onnx names its weights and values."""

    def __init__(self, suffix: str) -> None:
        self.suffix, self.nodes = suffix, list[Any]()
        self.stored: dict[str, Array] = {}

    def weight(self, name: str, array: Array) -> str:
        if self.suffix:
            name = f"{name}_{self.suffix}_{len(self.stored)}"
        self.stored[name] = array.astype(np.float32)
        return name

    def run(self, operator: str, result: str, *names: str, **options: Any) -> str:
        name = f"{operator}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], name, **options))
        return result

    def block(self, x: str, number: int, inputs: int, outputs: int) -> str:
        """Add a convolution, its norm and a HardSwish."""
        kernel = self.weight(f"conv2d_{number}.w_0", normal(outputs, inputs, 3, 3))
        x = self.run("Conv", f"p2o.conv2d.{number}.0", x, kernel, pads=[1, 1, 1, 1])
        parts = [
            self.weight(f"batch_norm2d_{number}.{part}", normal(outputs) ** 2 + 1)
            for part in ("w_0", "b_0", "w_1", "w_2")
        ]
        norm = f"p2o.batch_norm_.{number}.0"
        x = self.run("BatchNormalization", norm, x, *parts)
        return self.run("HardSwish", f"p2o.hardswish.{number}.0", x)

    def model(self, *outputs: str) -> onnx.ModelProto:
        extents = [f"DynamicDimension.{number}" for number in range(3)]
        shape: list[str | int | None] = [extents[0], 3, *extents[1:]]
        graph = helper.make_graph(
            self.nodes,
            "PaddlePaddle Graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(a, name) for name, a in self.stored.items()],
        )
        for value in graph.output:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        opsets = [helper.make_opsetid("", 15)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def imported(net: PaddleNet, folder: Path, output: str) -> str:
    """Return the source of a network, whose results are onnxruntime's at two sizes."""
    model = net.model(output)
    onnx.save(model, folder / "net.onnx")
    module, name = generate(folder / "net.onnx", folder)
    loaded = getattr(import_file(module), name).load()
    for shape in ((1, 3, 6, 5), (2, 3, 4, 8)):
        x = normal(*shape)
        compare([arrays(loaded(tensors(x)))], judged(model, {"x": x}))
    return module.read_text()


@pytest.mark.parametrize("suffix", ("", "deepcopy"))
def test_layers_are_no_modules(suffix: str, tmp_path: Path) -> None:
    net, x = PaddleNet(suffix), "x"
    for number, channels in enumerate(zip(CHANNELS, CHANNELS[1:], strict=False)):
        x = net.block(x, number, *channels)
    x = net.run("GlobalAveragePool", "p2o.pool2d.0.0", x)
    x = net.run("Flatten", "p2o.flatten.0.0", x)
    head = net.weight("linear_0.w_0", normal(20, 4)), net.weight("b_0", normal(4))
    x = net.run("MatMul", "p2o.linear.0.0", x, head[0])
    source = imported(net, tmp_path, net.run("Add", "fetch_name_0", x, head[1]))
    assert source.count("\nclass ") == 2
    assert "class ConvNorm(nn.Module):" in source
    assert "self.conv_norm_0 = ConvNorm(3, 8)" in source
    assert "p2o" not in source
    assert 'x="float32[batch, 3, height, width]"' in source


def test_computed_arrays_are_no_modules(tmp_path: Path) -> None:
    net, x = PaddleNet(""), "x"
    for number in range(3):
        kernel = net.weight(f"conv2d_{number}.w_0", normal(3, 3, 1, 1, seed=number))
        bias = net.weight(f"p2o.pd_op.reshape.{number}.0", normal(1, 3, 1, 1))
        x = net.run("Conv", f"p2o.pd_op.conv2d.{number}.0", x, kernel)
        x = net.run("Add", f"p2o.pd_op.add.{number}.0", x, bias)
        x = net.run("Relu", f"p2o.pd_op.relu.{number}.0", x)
    source = imported(net, tmp_path, net.run("Tanh", "fetch_name_0", x))
    assert source.count("\nclass ") == 1
    assert "p2o" not in source and "pd_op" not in source
