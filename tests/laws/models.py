"""Models of one node: ours and ONNX's."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burn import Tensor, dtypes
from burn.backend.cpu import Cpu
from burn_ir import Graph, RawGraph, RawModel, RawNode, Type, build, operators
from burn_ir.containers import OptionalType, SequenceType, optional_of, sequence_of
from burn_ir.dim import Dim, symbol
from tests.strategies import cases
from tests.strategies.registry import Array, Example, Key, Maybe, Operand

#: Bodies of operators of other domains are written at this version of ONNX's own.
OPSET = 21


#: Operators whose examples are no arrays, or no operands of one node.
OTHER_EXAMPLES = ("CastMap", "DictVectorizer", "ZipMap", "Gradient", "ReorderInput")


def keys_without(left_out: Collection[str]) -> list[Any]:
    """Return the operators that have examples, as parameters of a test."""
    return [
        pytest.param(key, id=f"{key[0]}:{key[1]}" if key[0] else key[1])
        for key in sorted(cases())
        if key in operators() and key[1] not in left_out
    ]


def input_names(example: Example) -> list[str | None]:
    """Return the name of each operand of the node."""
    return [
        None if x is None else f"x{i}"
        for i, x in enumerate(example.inputs)
        if i not in example.captured
    ]


def output_names(example: Example) -> list[str]:
    """Return the name of each result."""
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
        if isinstance(x := example.inputs[i], np.ndarray)
    }
    graph = RawGraph("main", inputs, tuple(outputs), (node,), constants)
    return RawModel(graph, {"": OPSET, domain: version})


def built(
    key: Key, version: int, example: Example, stored: bool, symbolic: bool = False
) -> Graph:
    """The typed graph of the example."""
    return build(raw_model(key, version, example, stored, symbolic))


def operands(example: Example, stored: bool) -> list[Any]:
    """The tensors to evaluate the graph of the example on."""
    home = Cpu()
    given = [plain(example.inputs[i]) for i in run_time(example, stored)]
    return [mapped(lambda x: Tensor(x, home), value) for value in given]


def plain(operand: Operand) -> Any:
    """The value of an operand: an array, a list of them, or None."""
    return operand.value if isinstance(operand, Maybe) else operand


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """``function`` of a value, or of each item of a list; None stays."""
    if isinstance(value, list):
        return [mapped(function, item) for item in value]
    return None if value is None else function(value)


def input_type(example: Example, position: int, symbolic: bool) -> Type:
    """The type of an operand; ``symbolic`` names its extents."""
    given = example.inputs[position]
    if isinstance(given, Maybe):
        return optional_of(plain_type(given.like, f"e{position}"))
    assert given is not None
    if not symbolic or isinstance(given, list):
        return plain_type(given, f"e{position}")
    names = axis_names(example, position)
    shape: list[Dim] = [symbol(n) if isinstance(n, str) else n for n in names]
    return Type(given.dtype, tuple(shape))


def plain_type(value: Array | list[Array], name: str) -> Type:
    """The type of an array or a list, whose items' extents may have a name."""
    if not isinstance(value, list):
        return Type(value.dtype, value.shape)
    shapes = zip(*(item.shape for item in value), strict=True)
    dims: list[Dim] = [
        sizes[0] if len(set(sizes)) == 1 else symbol(f"?{name}_{axis}")
        for axis, sizes in enumerate(shapes)
    ]
    return sequence_of(Type(value[0].dtype, tuple(dims)))


def axis_names(example: Example, position: int) -> tuple[str | int, ...]:
    """The name of each axis: equal extents share one, 1 and index vectors none."""
    array = example.inputs[position]
    if not isinstance(array, np.ndarray):
        return ()
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
    graph = built(key, version, example, stored)
    bodies = graph.nodes[0].op.bodies() if graph.nodes else {}
    attrs = {k: onnx_attribute(v, bodies.get(k)) for k, v in example.attrs.items()}
    outputs = output_names(example)
    node = helper.make_node(name, names, outputs, "node", domain=domain, **attrs)
    constants = example.constants(stored)
    inputs = [
        value_info(f"x{i}", input_type(example, i, False))
        for i in run_time(example, stored)
    ]
    initializers = [
        numpy_helper.from_array(x, f"x{i}")
        for i in sorted(constants)
        if isinstance(x := example.inputs[i], np.ndarray)
    ]
    results = [value_info(n, shapeless(graph.types[n])) for n in outputs]
    result = helper.make_graph([node], "main", inputs, results, initializers)
    return with_opset(result, domain, version)


def with_opset(graph: onnx.GraphProto, domain: str, version: int) -> onnx.ModelProto:
    """A model of ``graph`` at an opset."""
    opsets = [helper.make_opsetid(domain, version)]
    if domain:
        opsets.append(helper.make_opsetid("", OPSET))
    ir_version = 10 if version < 22 else 11
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def value_info(name: str, declared: Type) -> onnx.ValueInfoProto:
    """The declaration of a value."""
    return helper.make_value_info(name, type_proto(declared))


def type_proto(declared: Type) -> onnx.TypeProto:
    """A type in ONNX's terms."""
    if isinstance(declared, SequenceType):
        return helper.make_sequence_type_proto(type_proto(declared.element))
    if isinstance(declared, OptionalType):
        return helper.make_optional_type_proto(type_proto(declared.element))
    element = helper.np_dtype_to_tensor_dtype(declared.dtype)
    shape = None if declared.shape is None else [_extent(d) for d in declared.shape]
    return helper.make_tensor_type_proto(element, shape)


def shapeless(value_type: Type) -> Type:
    """``value_type`` with nothing said of shapes."""
    if isinstance(value_type, SequenceType):
        return sequence_of(shapeless(value_type.element))
    if isinstance(value_type, OptionalType):
        return optional_of(shapeless(value_type.element))
    return Type(value_type.dtype, None)


def _extent(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def onnx_attribute(value: Any, typed: Graph | None = None) -> Any:
    """An attribute's value as ``onnx.helper`` wants it; a body, with its types."""
    if isinstance(value, RawGraph):
        return onnx_body(value, typed)
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    if isinstance(value, Type):
        return type_proto(value)
    return list(value) if isinstance(value, tuple) else value


def onnx_body(graph: RawGraph, typed: Graph | None = None) -> onnx.GraphProto:
    """A body in ONNX's terms; its results have the dtypes of those of ``typed``."""
    types: list[Type | None] = [None] * len(graph.outputs)
    if typed is not None:
        types = [typed.type(name) for name in typed.outputs]
    results = [
        onnx.ValueInfoProto(name=name) if t is None else value_info(name, shapeless(t))
        for name, t in zip(graph.outputs, types, strict=True)
    ]
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
        results,
        [numpy_helper.from_array(x, name) for name, x in graph.constants.items()],
    )


def by_name(example: Example, stored: bool) -> Mapping[str, Any]:
    """The run-time operands by the names of the graph's inputs."""
    return {f"x{i}": plain(example.inputs[i]) for i in run_time(example, stored)}
