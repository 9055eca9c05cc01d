"""Attention that onnxruntime has fused: its scope is in the name of its result."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import burn
from tests.importer.looped import compare, normal, onnxruntime_results
from tests.modules import Array, generate, import_file

WIDTH = 8


def layer(number: int, x: str, stored: dict[str, Array]) -> list[onnx.NodeProto]:
    """Return the nodes of one layer; adds its weights to ``stored``."""
    scope = f"/encoder/layer.{number}/attention"
    weights = [f"Attention_{number}_qkv_weight", f"Attention_{number}_qkv_bias"]
    stored[weights[0]] = normal(WIDTH, 3 * WIDTH, seed=number) / 4
    stored[weights[1]] = normal(3 * WIDTH, seed=number)
    dense = f"onnx::MatMul_{300 + number}"
    stored[dense] = normal(WIDTH, WIDTH, seed=number) / 4
    attended = f"{scope}/self/Reshape_3_output_0"
    product = f"{scope}/output/dense/MatMul"
    attention = helper.make_node(
        "Attention",
        [x, *weights, "lengths"],
        [attended],
        f"Attention_{number}",
        domain="com.microsoft",
        num_heads=2,
    )
    add, out = f"{scope}/output/Add", f"{product}_output_0"
    return [
        attention,
        helper.make_node("MatMul", [attended, dense], [out], product),
        helper.make_node("Add", [out, x], [f"{add}_output_0"], add),
    ]


def fused(layers: int) -> onnx.ModelProto:
    """Return layers of a fused attention, a linear layer and a residual sum."""
    nodes, x = [], "x"
    stored: dict[str, Array] = {"lengths": np.array([3, 2], np.int32)}
    for number in range(layers):
        nodes += layer(number, x, stored)
        x = nodes[-1].output[0]
    nodes.append(helper.make_node("Tanh", [x], ["y"], "/Tanh"))
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, "seq", WIDTH])
        for name in ("x", "y")
    ]
    arrays = [numpy_helper.from_array(a, name) for name, a in stored.items()]
    graph = helper.make_graph(nodes, "fused", values[:1], values[1:], arrays)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_fused_layers_are_a_loop(tmp_path: Path) -> None:
    proto = fused(layers=3)
    onnx.save(proto, tmp_path / "net.onnx")
    module, name = generate(tmp_path / "net.onnx", tmp_path)
    net = getattr(import_file(module), name).load()
    for extent in (3, 5):
        x = normal(2, extent, WIDTH)
        compare([net(burn.tensor(x)).numpy()], onnxruntime_results(proto, {"x": x}))
    source = module.read_text()
    assert "for layer in self.layer:" in source
    assert "query, key, value = ops.chunk(" in source
    assert "self.qkv_weight = nn.parameter" in source
    assert "Attention_0" not in source
