"""Names of PaddlePaddle's exporter: dots in them separate no modules."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.importer.looped import arrays, compare, normal, onnxruntime_results, tensors
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
        compare([arrays(loaded(tensors(x)))], onnxruntime_results(model, {"x": x}))
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


class ScaledNet(PaddleNet):
    """Convolutions between pairs of trained numbers, stored as ``Constant`` nodes."""

    def number(self, name: str, value: float) -> str:
        array = numpy_helper.from_array(np.array([value], np.float32), name)
        self.nodes.append(helper.make_node("Constant", [], [name], value=array))
        return name

    def affine(self, x: str, layer: str, scale: float, bias: float) -> str:
        factor = self.number(f"{layer}.w_0", scale)
        x = self.run("Mul", f"p2o.Mul.{len(self.nodes)}", factor, x)
        offset = self.number(f"{layer}.w_1", bias)
        return self.run("Add", f"p2o.Add.{len(self.nodes)}", x, offset)


def test_trained_numbers_are_parameters(tmp_path: Path) -> None:
    net, x = ScaledNet(""), "x"
    for number in range(3):
        kernel = net.weight(f"conv2d_{number}.w_0", normal(3, 3, 1, 1, seed=number))
        x = net.run("Conv", f"p2o.Conv.{number}", x, kernel)
        x = net.affine(x, f"lab_{number}", 0.61328125 + number, 0.21731)
        x = net.run("Mul", f"p2o.half.{number}", x, net.number(f"p2o.c.{number}", 0.5))
    source = imported(net, tmp_path, net.run("Tanh", "fetch_name_0", x))
    assert "0.21731" not in source and "61328125" not in source
    assert source.count("nn.parameter(1)") == 2  # one class
    assert "return self.scale * x + self.bias" in source
    assert "0.5 * " in source or "* 0.5" in source
    net_module = import_file(tmp_path / "net.py")
    state = net_module.Net.load().state_dict()
    biases = [float(v.numpy()[0]) for key, v in state.items() if key.endswith(".bias")]
    np.testing.assert_allclose(biases, [0.21731] * 3, rtol=1e-6)
    assert sum(key.endswith(".scale") for key in state) == 3


def test_blocks_are_equal_but_for_their_numbers(tmp_path: Path) -> None:
    net, x = ScaledNet(""), "x"
    for number in range(4):
        kernel = net.weight(f"conv2d_{number}.w_0", normal(3, 3, 3, 3, seed=number))
        x = net.run("Conv", f"p2o.Conv.{number}", x, kernel, pads=[1, 1, 1, 1])
        x = net.affine(x, f"block_{2 * number}", 0.5 + number, 0.217)
        x = net.run("HardSwish", f"p2o.HardSwish.{number}", x)
        x = net.affine(x, f"block_{2 * number + 1}", 1.5, 0.1 * number)
        bias = net.weight(f"conv2d_{number}.b_0", normal(3, 3, 1, 1, seed=number))
        x = net.run("Conv", f"p2o.Conv.{number}.1", x, bias)
    source = imported(net, tmp_path, net.run("Tanh", "fetch_name_0", x))
    assert "for block in self.blocks:" in source
    assert source.count("\nclass ") == 3


class AttendingNet(PaddleNet):
    """Blocks that read the length of their input from a value of their own."""

    def attend(self, x: str, number: int) -> str:
        matrix = self.weight(f"linear_{2 * number}.w_0", normal(4, 4, seed=number))
        bias = self.weight(f"linear_{2 * number}.b_0", normal(4, seed=number))
        y = self.run("MatMul", f"p2o.MatMul.{number}", x, matrix)
        y = self.run("Add", f"p2o.Add.{number}", y, bias)
        shape = self.run("Shape", f"p2o.Shape.{number}", y)
        length = self.run("Gather", f"p2o.Gather.{number}", shape, "one")
        heads = self.run("Concat", f"p2o.c.{number}", "zero", length, "two_two", axis=0)
        whole = self.run("Concat", f"p2o.d.{number}", "zero", length, "four", axis=0)
        y = self.run("Reshape", f"p2o.Reshape.{number}", y, heads)
        y = self.run("Softmax", f"p2o.Softmax.{number}", y, axis=2)
        y = self.run("Reshape", f"p2o.Reshape.{number}.1", y, whole)
        last = self.weight(f"linear_{2 * number + 1}.w_0", normal(4, 4, seed=9))
        end = self.weight(f"linear_{2 * number + 1}.b_0", normal(4, seed=number))
        y = self.run("MatMul", f"p2o.MatMul.{number}.1", y, last)
        y = self.run("Add", f"p2o.Add.{number}.1", y, end)
        return self.run("Add", f"p2o.Add.{number}.2", x, y)


@pytest.mark.parametrize("count", (2, 3))
def test_blocks_that_share_a_shape_are_a_loop(count: int, tmp_path: Path) -> None:
    """Elimination of common subexpressions leaves the shape in the first block."""
    net = AttendingNet("")
    for name, numbers in (("zero", [0]), ("one", [1]), ("two_two", [2, 2])):
        net.stored[name] = np.array(numbers)
    net.stored["four"], net.stored["flat"] = np.array([4]), np.array([0, -1, 4])
    kernel = net.weight("conv2d_0.w_0", normal(4, 3, 1, 1))
    x = net.run("Conv", "p2o.Conv.0", "x", kernel)
    x = net.run("Transpose", "p2o.Transpose.0", x, perm=[0, 2, 3, 1])
    x = net.run("Reshape", "p2o.Reshape.flat", x, "flat")
    for number in range(count):
        x = net.attend(x, number)
    source = imported(net, tmp_path, net.run("Tanh", "fetch_name_0", x))
    assert "for block in self.blocks:" in source
    assert source.count("\nclass ") == 2
    flat = import_model(tmp_path / "net.onnx", Options(class_name="Net", flat=True))
    module = write_model(flat, tmp_path / "flat.py").module
    pairs = zip(gradients(tmp_path / "net.py"), gradients(module), strict=True)
    assert all(np.array_equal(*pair) for pair in pairs)


def gradients(module: Path) -> list[Array]:
    """Return the gradients of the parameters of a network, in the order of numbers."""
    net = import_file(module).Net.load(backend=Autodiff(Cpu()))
    x = burn.tensor(normal(2, 3, 4, 5), backend=Autodiff(Cpu()))
    found = net(x).sum().backward().by_name(net).values()
    return sorted((one.numpy() for one in found), key=lambda g: (g.shape, g.tobytes()))
