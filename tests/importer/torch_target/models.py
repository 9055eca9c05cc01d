"""Small models for the PyTorch target."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from burn_import.options import Options
from burn_import.pipeline import Compiled, import_model

FLOAT = onnx.TensorProto.FLOAT
INT64 = onnx.TensorProto.INT64
UINT16 = onnx.TensorProto.UINT16
STRING = onnx.TensorProto.STRING


def value(name: str, shape: list[Any] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    """Return the declaration of an input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def saved(
    folder: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
) -> Path:
    """Return the path of a model with these weights, by name."""
    tensors = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in (weights or {}).items()
    ]
    graph = helper.make_graph(nodes, "net", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version, model.producer_name = 9, "pytorch"
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def one_node(folder: Path, op: str, *shapes: list[Any], **attributes: Any) -> Path:
    """Return a model of one node with a float input of each shape."""
    names = [f"in{number}" for number in range(len(shapes))]
    node = helper.make_node(op, names, ["out"], name="the_node", **attributes)
    inputs = [value(n, shape) for n, shape in zip(names, shapes, strict=True)]
    return saved(folder, [node], inputs, [value("out", [None] * len(shapes[0]))])


def compiled(path: Path, **options: Any) -> Compiled:
    """Return the PyTorch module of a model."""
    return import_model(path, Options(class_name="Net", target="torch", **options))


def body(path: Path) -> str:
    """Return the lines of the only ``forward`` of a model, without indentation."""
    text = compiled(path).text
    start = text.index("def forward(")
    lines = text[start:].split("\n\n")[0].splitlines()[1:]
    return "\n".join(line.strip() for line in lines)
