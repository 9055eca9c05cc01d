"""ONNX files as PyTorch's exporters write them: names of weights, scopes of nodes."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importer.onnx_files import graph, model, stored

Array = np.ndarray[Any, Any]


def node(op: str, inputs: str, output: str, scope: str, **attrs: Any) -> onnx.NodeProto:
    """A node in a module, as TorchScript calls it: ``/encoder/query/MatMul_1``."""
    name = f"/{scope}/{op}_{output}"
    return helper.make_node(op, inputs.split(), [output], name=name, **attrs)


def exported(
    nodes: list[onnx.NodeProto], weights: dict[str, Array], x: list[Any], **kinds: Any
) -> onnx.ModelProto:
    """A model of PyTorch's from ``x``, floats or integers (``kind``), to ``y``."""
    kind = kinds.get("kind", TensorProto.FLOAT)
    proto = graph(nodes, {}, ("y",), tuple(stored(n, a) for n, a in weights.items()))
    proto.input.append(helper.make_tensor_value_info("x", kind, x))
    return model(proto, producer_name="pytorch", producer_version="2.9.0")


def drawn(*shape: int, seed: int = 0) -> Array:
    """Random weights."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
