"""Models of one node: ours and ONNX's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from burn import Tensor, dtypes
from burn.backend.cpu import Cpu
from burn_ir import Graph, RawGraph, RawModel, RawNode, Type, build
from burn_ir.dim import Dim, symbol
from tests.strategies.registry import Array, Example, Key

#: The opset of ONNX's operators in the bodies of those of other domains.
BODIES = 21


def input_names(example: Example) -> list[str | None]:
    """What each operand of the node is called."""
    return [
        None if x is None else f"x{i}"
        for i, x in enumerate(example.inputs)
        if i not in example.captured
    ]


def output_names(example: Example) -> list[str]:
    """What each result is called."""
    return [f"y{i}" for i in range(example.outputs)]


def run_time(example: Example, stored: bool) -> list[int]:
    """The positions of the operands that are inputs of the graph."""
    constants = example.constants(stored)
    return [
        i for i, x in enumerate(example.inputs) if x is not None and i not in constants
    ]


def raw_model(
    key: Key, version: int, example: Example, stored: bool, symbolic: bool = False
) -> RawModel:
    """The example as a model of one node."""
    domain, name = key
    names = input_names(example)
    outputs = output_names(example)
    node = RawNode(name, domain, example.attrs, tuple(names), tuple(outputs), "node")
    inputs = {
        f"x{i}": input_type(example, i, symbolic) for i in run_time(example, stored)
    }
    constants = {
        f"x{i}": x
        for i in example.constants(stored)
        if (x := example.inputs[i]) is not None
    }
    graph = RawGraph("main", inputs, tuple(outputs), (node,), constants)
    return RawModel(graph, {"": BODIES, domain: version})


def built(
    key: Key, version: int, example: Example, stored: bool, symbolic: bool = False
) -> Graph:
    """The typed graph of the example."""
    return build(raw_model(key, version, example, stored, symbolic))


def operands(example: Example, stored: bool) -> list[Tensor]:
    """The tensors to evaluate the graph of the example on."""
    home = Cpu()
    arrays = [example.inputs[i] for i in run_time(example, stored)]
    return [Tensor(x, home) for x in arrays if x is not None]


def input_type(example: Example, position: int, symbolic: bool) -> Type:
    """The type of an operand; ``symbolic`` names its extents."""
    array = example.inputs[position]
    assert array is not None
    if not symbolic:
        return Type(array.dtype, array.shape)
    names = axis_names(example, position)
    shape: list[Dim] = [symbol(n) if isinstance(n, str) else n for n in names]
    return Type(array.dtype, tuple(shape))


def axis_names(example: Example, position: int) -> tuple[str | int, ...]:
    """The name of each axis: equal extents share one, 1 and index vectors none."""
    array = example.inputs[position]
    assert array is not None
    if position in example.symbols:
        return example.symbols[position]
    if position in example.discrete:
        return tuple(array.shape)
    if array.ndim == 1 and dtypes.is_integer(array.dtype):
        return tuple(array.shape)
    return tuple(f"n{extent}" if extent > 1 else extent for extent in array.shape)


def onnx_model(
    key: Key, version: int, example: Example, stored: bool
) -> onnx.ModelProto:
    """The example as an ONNX file would have it."""
    domain, name = key
    names = [n or "" for n in input_names(example)]
    attrs = {k: onnx_attribute(v) for k, v in example.attrs.items()}
    outputs = output_names(example)
    node = helper.make_node(name, names, outputs, "node", domain=domain, **attrs)
    constants = example.constants(stored)
    inputs = [
        value_info(f"x{i}", Type(x.dtype, x.shape))
        for i in run_time(example, stored)
        if (x := example.inputs[i]) is not None
    ]
    initializers = [
        numpy_helper.from_array(x, f"x{i}")
        for i in sorted(constants)
        if (x := example.inputs[i]) is not None
    ]
    types = built(key, version, example, stored).types
    results = [value_info(n, Type(types[n].dtype, None)) for n in outputs]
    graph = helper.make_graph([node], "main", inputs, results, initializers)
    return with_opset(graph, domain, version)


def with_opset(graph: onnx.GraphProto, domain: str, version: int) -> onnx.ModelProto:
    """A model of ``graph`` at an opset."""
    opsets = [helper.make_opsetid(domain, version)]
    if domain:
        opsets.append(helper.make_opsetid("", BODIES))
    ir_version = 10 if version < 22 else 11
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def value_info(name: str, declared: Type) -> onnx.ValueInfoProto:
    """The declaration of a value."""
    element = helper.np_dtype_to_tensor_dtype(declared.dtype)
    shape = None if declared.shape is None else [_extent(d) for d in declared.shape]
    return helper.make_tensor_value_info(name, element, shape)


def _extent(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def onnx_attribute(value: Any) -> Any:
    """An attribute's value as ``onnx.helper`` wants it."""
    if isinstance(value, RawGraph):
        return onnx_body(value)
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    return list(value) if isinstance(value, tuple) else value


def onnx_body(graph: RawGraph) -> onnx.GraphProto:
    """A body in ONNX's terms; the results' types are left to be inferred."""
    nodes = [
        helper.make_node(
            n.op_type,
            [x or "" for x in n.inputs],
            [y or "" for y in n.outputs],
            n.name,
            domain=n.domain,
            **{k: onnx_attribute(v) for k, v in n.attrs.items()},
        )
        for n in graph.nodes
    ]
    return helper.make_graph(
        nodes,
        graph.name,
        [value_info(name, declared) for name, declared in graph.inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in graph.outputs],
        [numpy_helper.from_array(x, name) for name, x in graph.constants.items()],
    )


def by_name(example: Example, stored: bool) -> Mapping[str, Array]:
    """The run-time operands by the names of the graph's inputs."""
    return {
        f"x{i}": x
        for i in run_time(example, stored)
        if (x := example.inputs[i]) is not None
    }
