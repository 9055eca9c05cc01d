"""Blocks of Keras's functional models, and loops that TensorFlow writes for layers."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burn_import.provenance.exporter_names import is_computed_by_paddle
from burn_import.provenance.keras_blocks import block_scopes
from burn_import.provenance.weight_owners import is_dotted
from tests.importer.structure.scoped_net import ScopedNet, check_import
from tests.importer.structure.test_operator_scopes import KerasNet


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["conv2_block1_1_conv", "conv2_block1_1_bn"],
            ["conv2_block1.conv_1", "conv2_block1.bn_1"],
        ),
        (
            ["block_3_expand", "block_3_expand_BN", "block_3_project"],
            ["block_3.expand", "block_3.expand_BN", "block_3.project"],
        ),
        (
            ["block2a_se_reduce", "block2a_se_expand"],
            ["block2a.se_reduce", "block2a.se_expand"],
        ),
        (
            ["conv_stage0_block0_branch2a", "bn_stage0_block0_branch2b"],
            ["stage0_block0.branch2a", "stage0_block0.branch2b"],
        ),
        (
            ["expanded_conv_project", "expanded_conv_1_expand", "expanded_conv_1_se"],
            ["expanded_conv_project", "expanded_conv_1.expand", "expanded_conv_1.se"],
        ),
        (["block1_conv", "block2_conv"], ["block1_conv", "block2_conv"]),
        (["block1", "block1_a", "block1_b"], ["block1", "block1_a", "block1_b"]),
        (["conv2d_1", "blocks_a", "block_a"], ["conv2d_1", "blocks_a", "block_a"]),
    ],
)
def test_names_of_layers_in_blocks(names: list[str], expected: list[str]) -> None:
    split = block_scopes([("resnet", name) for name in names])
    paths = [split(("resnet", name)) for name in names]
    assert [".".join(path) for path in paths] == [f"resnet.{n}" for n in expected]


def test_a_functional_model_has_blocks(tmp_path: Path) -> None:
    net = KerasNet()

    def conv(scope: str, x: str, given: int, channels: int) -> str:
        weight = net.weight(f"{scope}/kernel", channels, given, 1, 1)
        return net.run("Conv", scope, x, weight)

    x = conv("conv1_conv", net.input("x", "unk__1", 3, 5, 6), 3, 8)
    for number in range(1, 5):
        block = f"conv2_block{number}"
        y = net.run("Relu", f"{block}_1_relu", conv(f"{block}_1_conv", x, 8, 4))
        y = conv(f"{block}_2_conv", y, 4, 8)
        x = net.run("Relu", f"{block}_out", net.run("Add", f"{block}_add", y, x))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.source.count("(nn.Module)") == 2  # the model and its block
    assert "self.conv_1 = nn.Conv2d(8, 4, kernel_size=1" in imported.source
    assert "for _ in range(4)" in imported.source


@pytest.mark.parametrize(
    ("name", "dotted"),
    [
        ("encoder.0", True),
        ("Transpose.3", False),
        ("Concat.36", False),
        ("Encoder.3", True),
        ("set_value_0.tmp_0.1", False),
        ("undefined_var_0.1", False),
    ],
)
def test_numbered_values_of_paddle(name: str, dotted: bool) -> None:
    assert is_dotted(name) is dotted
    assert is_computed_by_paddle("Transpose.3")


def test_a_list_with_one_module_and_an_array_is_the_model(tmp_path: Path) -> None:
    """The array's own module, ``1``, has no layer; its keys begin with a number."""
    net = ScopedNet()
    x = net.input("x", "batch", 1, 40)
    real, imag = (
        net.run("Conv", "", x, net.weight(f"0.stft.conv_{part}.weight", 5, 1, 8))
        for part in ("real", "imag")
    )
    power = net.run("Add", "", net.run("Mul", "", real, real), imag)
    power = net.run("Transpose", "", power, perm=[0, 2, 1])
    x = net.run("MatMul", "", power, net.weight("1.mel", 5, 3))
    imported = check_import(tmp_path, net.model(net.run("Exp", "", x)), net.feeds())
    assert "0.stft.conv_real.weight" in imported.keys


class KerasNumbers(KerasNet):
    """A writer that also stores integers."""

    def number(self, value: int | list[int], kind: str = "") -> str:
        name = f"number_{value}_{kind}"
        dtype = np.int32 if kind else np.int64
        return self.stored(name, np.array(value, dtype))


def floats(*names: str) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]


def cell(x: str) -> onnx.GraphProto:
    """Return an iteration of a while loop of TensorFlow, which carries all it reads."""
    return helper.make_graph(
        [
            helper.make_node("Add", ["k", "one"], ["k2"], name="while/add"),
            helper.make_node("Gather", [x, "k"], ["row"], name="while/get"),
            helper.make_node("MatMul", ["row", "w"], ["p"], name="while/MatMul"),
            helper.make_node("MatMul", ["h", "v"], ["q"], name="while/MatMul_1"),
            helper.make_node("Add", ["p", "q"], ["s"], name="while/add_1"),
            helper.make_node("Tanh", ["s"], ["h2"], name="while/Tanh"),
            helper.make_node("Identity", ["h2"], ["out"], name="while/out"),
            helper.make_node("Cast", ["k2"], ["kf"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["n"], ["nf"], to=TensorProto.FLOAT),
            helper.make_node("Less", ["kf", "nf"], ["more"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("k", TensorProto.INT32, []),
            *floats("h"),
            helper.make_tensor_value_info("n", TensorProto.INT32, []),
            *floats("w", "v"),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, None),
            helper.make_tensor_value_info("k2", TensorProto.INT32, None),
            *floats("h2"),
            helper.make_tensor_value_info("n", TensorProto.INT32, None),
            *floats("w", "v", "out"),
        ],
        [numpy_helper.from_array(np.array(1, np.int32), "one")],
    )


def run_cells(net: KerasNumbers, x: str, scope: str) -> str:
    """Run a recurrent cell over the rows of ``x``; return its outputs."""
    number = net.count
    cond, size = f"cond_{number}", f"size_{number}"
    first = net.run("Gather", scope, net.run("Shape", scope, x), net.number(0))
    net.nodes.append(helper.make_node("Cast", [first], [size], to=TensorProto.INT32))
    net.nodes.append(helper.make_node("Less", [net.number(0, "i"), size], [cond]))
    weights = [net.weight(f"{scope}/{one}/kernel", 3, 3) for one in ("x", "h")]
    results = [f"r{at}_{number}" for at in range(6)]
    operands = ["", cond, net.number(0, "i"), net.weight(f"{scope}/h0", 1, 3), size]
    loop = helper.make_node(
        "Loop", [*operands, *weights], results, name=f"{scope}/while_loop", body=cell(x)
    )
    net.nodes.append(loop)
    net.count += 1
    return net.run("Squeeze", scope, results[5], net.number([1]))


def test_a_while_loop_of_tensorflow_is_a_for_loop(tmp_path: Path) -> None:
    net = KerasNumbers()
    x = net.input("x", "unk__1", 3)
    x = run_cells(net, x, "rnn_a/PartitionedCall")
    x = run_cells(net, x, "rnn_b/PartitionedCall")
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "        while " not in imported.source
    assert "for i in range(" in imported.source
    assert imported.source.count("(nn.Module)") == 2, imported.source
    assert any(key.startswith("rnn_a.") for key in imported.keys)


def test_a_scalar_that_is_expanded_is_a_fill_value(tmp_path: Path) -> None:
    net = KerasNumbers()
    x = net.input("x", "n", 4)
    half = net.stored("half", np.array(0.5, np.float32))
    filled = net.run("Expand", "", half, net.run("Shape", "", x))
    result = net.run("Add", "", net.run("Exp", "", x), net.run("Mul", "", filled, x))
    imported = check_import(tmp_path, net.model(result), net.feeds())
    assert not imported.keys
