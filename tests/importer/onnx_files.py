"""Small ONNX files for the tests of the reader."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def graph(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
    initializers: tuple[onnx.TensorProto, ...] = (),
) -> onnx.GraphProto:
    """A graph of float inputs with the given shapes."""
    return helper.make_graph(
        nodes,
        "net",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in ({"x": [2, 3]} if inputs is None else inputs).items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        list(initializers),
    )


def model(proto: onnx.GraphProto, opset: int = 17, **fields: Any) -> onnx.ModelProto:
    """A model of one opset."""
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=8, **fields)


def stored(name: str, array: Any) -> onnx.TensorProto:
    """An initializer with raw data."""
    return numpy_helper.from_array(np.asarray(array), name)


def saved(path: Path, proto: onnx.ModelProto) -> Path:
    """``path``, where the model now is."""
    path.write_bytes(proto.SerializeToString())
    return path


def constant_model(tensor: onnx.TensorProto) -> onnx.ModelProto:
    """A model that adds nothing to a stored tensor."""
    node = helper.make_node("Identity", [tensor.name], ["y"])
    return model(graph([node], {}, ("y",), (tensor,)))
