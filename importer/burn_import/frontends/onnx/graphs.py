"""Conversion of a file's graphs, nodes and attributes to the raw model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtypes import DType
from burn_import.frontends.onnx.attributes import attribute_value
from burn_import.frontends.onnx.dims import DimNames
from burn_import.frontends.onnx.functions import (
    Frame,
    Functions,
    Names,
    TooManyNodes,
)
from burn_import.frontends.onnx.scopes import scope_of
from burn_import.frontends.onnx.tensors import Tensors
from burn_import.frontends.onnx.types import declared_type
from burn_import.provenance.axis_names import axis_name, is_placeholder
from burn_ir import (
    InvalidModel,
    ModelError,
    RawGraph,
    RawNode,
    Type,
)
from burn_ir.dim import Dim
from burn_ir.graph import ROOT_SCOPE
from burn_ir.types import Array

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto

#: The dtype of a body's input without a declared tensor type; the node around the body
#: determines the real one.
UNDECLARED: DType = np.dtype("V")
#: With more initializers than this, all of them listed as inputs, they are weights.
HABIT = 3


@dataclass
class GraphReader:
    """Reads the graphs of one model; collects errors in ``problems``."""

    tensors: Tensors
    dims: DimNames
    opsets: dict[str, int]
    functions: Functions
    ir_version: int
    problems: list[ModelError] = field(default_factory=list)

    def main(self, proto: GraphProto) -> RawGraph:
        """Return the main graph."""
        return self.graph(proto, Frame(self.opsets), is_main=True)

    def graph(self, proto: GraphProto, frame: Frame, is_main: bool = False) -> RawGraph:
        """Return a graph, read in ``frame``."""
        names = frame.names
        if names is not None:
            names = names.inner(_defined_names(proto))
            frame = Frame(frame.opsets, names, frame.call)
        stored = {
            _inner_name(names, name): array for name, array in self.initializers(proto)
        }
        inputs = {}
        overrides = is_main and self.overrides(proto, stored)
        for value in proto.input:
            name = _inner_name(names, value.name)
            if name in inputs:
                message = f"expected inputs of different names, got {name!r} twice"
                self.problems.append(InvalidModel(message))
            if name not in stored or overrides:
                inputs[name] = self.type(value, is_main)
        defaults = {name: array for name, array in stored.items() if name in inputs}
        return RawGraph(
            proto.name,
            inputs,
            tuple(_inner_name(names, value.name) for value in proto.output),
            tuple(self.nodes(proto.node, frame)),
            {name: array for name, array in stored.items() if name not in defaults},
            defaults,
            proto.doc_string,
        )

    def overrides(self, proto: GraphProto, stored: Mapping[str, Array]) -> bool:
        """Return whether callers may override initializers that are inputs too.

        Before version 4 of the IR every initializer had to be an input. Some exporters
        still list all their weights, without meaning that a caller may replace them.
        """
        listed = {value.name for value in proto.input}
        habit = len(stored) > HABIT and listed.issuperset(stored)
        return self.ir_version >= 4 and not habit

    def initializers(self, proto: GraphProto) -> Iterator[tuple[str, Array]]:
        """Yield each initializer once; report and skip invalid ones."""
        tensors: list[tuple[str, Callable[[], Array]]] = [
            (t.name, partial(self.tensors.array, t)) for t in proto.initializer
        ]
        for sparse in proto.sparse_initializer:
            read = partial(self.tensors.sparse, sparse)
            tensors.append((sparse.values.name, read))
        seen = {""}
        for name, array in tensors:
            try:
                if name in seen:
                    raise InvalidModel(
                        f"expected initializers of different names, got {name!r} "
                        + ("twice" if name else "")
                    )
                seen.add(name)
                yield name, array()
            except ModelError as error:
                self.problems.append(error)

    def nodes(self, protos: Iterable[NodeProto], frame: Frame) -> Iterator[RawNode]:
        """Yield the nodes; calls of functions are inlined."""
        for proto in protos:
            try:
                function = self.functions.get(proto)
                if function is not None:
                    yield from self.functions.inline(self, proto, function, frame)
                else:
                    yield self.node(proto, frame)
            except TooManyNodes:
                raise
            except ModelError as error:
                self.problems.append(error)

    def node(self, proto: NodeProto, frame: Frame) -> RawNode:
        """Return a node that is no call of a function."""
        if frame.call is not None:
            self.functions.check_version(proto, frame.opsets, self.opsets)
        scope, classes = self.scope(proto, frame)
        name = proto.name
        if frame.call is not None and name:
            name = f"{frame.call.prefix}{name}"
        attrs = self.attributes(proto, frame)
        if proto.op_type == "Constant" and domain_of(proto.domain) == "":
            attrs = _constant(attrs)
        return RawNode(
            proto.op_type,
            domain_of(proto.domain),
            attrs,
            _values(frame.names, proto.input),
            _values(frame.names, proto.output),
            name,
            scope,
            classes,
        )

    def scope(
        self, proto: NodeProto, frame: Frame
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the node's module path, below that of the enclosing call."""
        metadata: dict[str, str] = {}
        if props := proto.metadata_props:
            entries = {entry.key: entry.value for entry in props}
            # protobuf returns text that is not UTF-8 as bytes; such an entry is
            # ignored.
            metadata = {k: v for k, v in entries.items() if isinstance(v, str)}
        scope, classes = scope_of(_path_name(proto), metadata)
        if frame.call is None or metadata and scope:
            # In a model with function calls (modules), nodes without scope are the
            # root's.
            return scope or ROOT_SCOPE * bool(self.functions.by_key), classes
        return (*frame.call.scope, *scope), frame.call.classes if not scope else ()

    def attributes(self, proto: NodeProto, frame: Frame) -> dict[str, Any]:
        """Return the attributes by name; a reference to an omitted one is omitted."""
        values: dict[str, Any] = {}
        if not proto.attribute:  # fast path
            return values
        for attr in proto.attribute:
            where = f"attribute {attr.name!r} of node {proto.name!r} ({proto.op_type})"
            if attr.name in values:
                raise InvalidModel(f"{where}: it is defined twice")
            if attr.ref_attr_name:
                if frame.call is None:
                    raise InvalidModel(
                        f"{where}: only nodes of functions can refer to attributes"
                    )
                if attr.ref_attr_name in frame.call.attrs:
                    values[attr.name] = frame.call.attrs[attr.ref_attr_name]
                continue
            version = frame.opsets.get(domain_of(proto.domain), 1)
            values[attr.name] = attribute_value(
                attr,
                where,
                (proto.op_type, version, domain_of(proto.domain)),
                self.tensors,
                lambda graph: self.graph(_body(proto, graph), frame),
            )
        return values

    def type(self, value: ValueInfoProto, is_main: bool) -> Type:
        """Return the declared type of an input, with new symbols for open extents."""
        if not is_main and _is_type_open(value.type):
            return Type(UNDECLARED, None)
        try:
            return declared_input(value, self.dims)
        except ModelError as error:
            self.problems.append(error)
            return Type(UNDECLARED, None)


def declared_input(value: ValueInfoProto, dims: DimNames) -> Type:
    """Return the declared type of an input, with new symbols for open extents.

    Extents without a name are named after their axis: they may be unequal.

    Raises:
        InvalidModel: no type is declared.
        UnsupportedModel: values of this type are not supported.
    """
    fixed = [dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim]

    def extent(name: str, axis: int) -> Dim:
        if is_placeholder(name):
            return dims.fresh(axis_name(axis, fixed) or f"{value.name}_dim_{axis}")
        return dims.named(name)

    return declared_type(value.type, f"input {value.name!r}", extent)


def domain_of(domain: str) -> str:
    """Return the domain of an operator; the standard one has two spellings."""
    return "" if domain == "ai.onnx" else domain


def dim_params(proto: GraphProto) -> Iterator[str]:
    """Yield the names of dimensions of a graph's inputs, bodies included."""
    for value in proto.input:
        for dim in value.type.tensor_type.shape.dim:
            yield dim.dim_param
    for node in proto.node:
        for attr in node.attribute:
            for body in (attr.g, *attr.graphs) if attr.HasField("g") else attr.graphs:
                yield from dim_params(body)


def _body(node: NodeProto, graph: GraphProto) -> GraphProto:
    """Return a body as the specification has it: branches of If have no inputs.

    Some writers list the captured values of a branch as inputs, which nothing binds.
    """
    if node.op_type != "If" or domain_of(node.domain) != "" or not graph.input:
        return graph
    body = type(graph)()
    body.CopyFrom(graph)
    del body.input[:]
    return body


def _inner_name(names: Names | None, name: str) -> str:
    """Return the name of a value; ``""`` for an operand that is omitted."""
    return name if names is None else names[name] or ""


def _values(names: Names | None, values: Sequence[str]) -> tuple[str | None, ...]:
    """Return the names of a node's operands or results; None for omitted ones."""
    if names is None:
        padded = values[:]
        return tuple([name or None for name in padded] if "" in padded else padded)
    return tuple([name and names[name] or None for name in values])


def _defined_names(proto: GraphProto) -> set[str]:
    """Return the names that a body defines itself."""
    names = {value.name for value in proto.input}
    names |= {tensor.name for tensor in proto.initializer}
    names |= {tensor.values.name for tensor in proto.sparse_initializer}
    return names | {name for node in proto.node for name in node.output if name}


def _is_type_open(proto: TypeProto) -> bool:
    """Return whether a body leaves the type of an input to the node around it."""
    kind = proto.WhichOneof("value")
    return kind is None or kind == "tensor_type" and not proto.tensor_type.elem_type


def _constant(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a Constant with ``value`` as an array."""
    if len(attrs) != 1:
        raise InvalidModel(f"expected a Constant of one value, got {sorted(attrs)}")
    ((key, value),) = attrs.items()
    kinds = {"float": np.float32, "int": np.int64, "string": object}
    kind = key.removeprefix("value_").removesuffix("s")
    if key.startswith("value_") and kind in kinds:
        value = np.array(value, kinds[kind])
        value.flags.writeable = False
    elif key not in ("value", "sparse_value") or not isinstance(value, np.ndarray):
        raise InvalidModel(f"expected a Constant of a tensor, got {key!r}")
    return {"value": value}


def _path_name(proto: NodeProto) -> str:
    """Return the name of a node that has the path of its module, if there is one.

    onnxruntime names a fused attention anew, but not its result. Other fused operators
    may begin in another module: a residual sum and the norm after it.
    """
    result = proto.output[0] if proto.output else ""
    is_fused = proto.domain == "com.microsoft" and "Attention" in proto.op_type
    is_fused = is_fused and "/" not in proto.name and result.startswith("/")
    return result if is_fused else proto.name.removeprefix("fused ")
