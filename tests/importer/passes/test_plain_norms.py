"""Norms whose weights of ones and zeros PyTorch's exporter wrote as nodes."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from burn_import.frontends.onnx import read
from burn_import.passes.norms.plain_norms import plain_norms
from burn_ir import build
from tests.importer.onnx_files import saved

ONES, ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)


def operators(folder: Path, weights: str, producer: str = "pytorch") -> list[str]:
    """Return the operators of a layer norm whose arrays are ``weights``.

    Those called ``Constant`` are nodes, others are stored arrays.
    """
    arrays = {f"{weights}_1": ONES, f"{weights}_2": ZEROS}
    tensors = [numpy_helper.from_array(a, name) for name, a in arrays.items()]
    are_nodes = weights == "Constant"
    nodes = [
        helper.make_node("Constant", [], [t.name], value=t) for t in tensors * are_nodes
    ]
    nodes.append(helper.make_node("LayerNormalization", ["x", *arrays], ["y"]))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4])
        for name in "xy"
    )
    graph = helper.make_graph(nodes, "g", [x], [y], tensors * (not are_nodes))
    model = helper.make_model(graph, producer_name=producer)
    result = plain_norms(build(read(saved(folder / "model.onnx", model))))
    return [node.op.onnx for node in result.nodes]


def test_numbers_in_nodes_of_pytorch_are_no_parameters(tmp_path: Path) -> None:
    assert operators(tmp_path, "Constant") == ["LayerNorm"]


@pytest.mark.parametrize(
    ("weights", "producer"), [("norm.weight", "pytorch"), ("Constant", "keras")]
)
def test_numbers_that_may_be_parameters_stay(
    weights: str, producer: str, tmp_path: Path
) -> None:
    assert operators(tmp_path, weights, producer) == ["LayerNormalization"]
