"""Inlining of model-local functions.

https://onnx.ai/onnx/repo-docs/IR.html#functions: a function is identified by domain,
name and overload, refers to attributes of its call by ``ref_attr_name``, and imports
its own operator sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from burn_ir import InvalidModel, RawNode, UnsupportedModel
from burn_ir.graph import FUNCTION
from burn_ir.names import UniqueNames

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

#: The most nodes after inlining: functions that call each other twice double the number
#: with every level.
MAX_NODES = 50_000
#: The limit on nodes after inlining: allowed for any model, and for each node in the
#: file.
NODES, NODES_PER_NODE = 5_000, 256
MAX_CALL_DEPTH = 32

Key = tuple[str, str, str]


class TooManyNodes(UnsupportedModel):  # noqa: N818  ends the reading at once
    """Raised when inlining exceeds the limit on nodes."""


@dataclass(frozen=True)
class FunctionCall:
    """One call of a function, the context in which its nodes are read."""

    attrs: Mapping[str, Any]
    prefix: str
    scope: tuple[str, ...]
    classes: tuple[str, ...]
    stack: tuple[Key, ...]


class Names:
    """Value names inside a call: the caller's for inputs and outputs, new ones else.

    None stands for an input that the call omits.
    """

    def __init__(
        self, prefix: str, unique: UniqueNames, names: dict[str, str | None]
    ) -> None:
        self.prefix = prefix
        self.unique = unique
        self.renamed = names
        self.outer: Names | None = None

    def inner(self, defined: set[str]) -> Names:
        """Return the names of a body, with new names for the values in ``defined``."""
        names = Names(self.prefix, self.unique, {})
        names.outer = self
        for name in sorted(defined):
            names.renamed[name] = names.fresh(name)
        return names

    def __getitem__(self, name: str) -> str | None:
        if name not in self.renamed:
            if self.outer is not None:
                return self.outer[name]
            self.renamed[name] = self.fresh(name)
        return self.renamed[name]

    def fresh(self, name: str) -> str:
        return self.unique.unique(f"{self.prefix}{name}")


@dataclass(frozen=True)
class Frame:
    """The context of nodes: the model itself, a function's call, or a body of either.

    ``names`` renames values inside calls; None keeps the names of the file.
    """

    opsets: Mapping[str, int]
    names: Names | None = None
    call: FunctionCall | None = None


class NodeReader(Protocol):
    """The methods of the graph reader that inlining calls."""

    opsets: dict[str, int]

    def nodes(self, protos: Iterable[NodeProto], frame: Frame) -> Iterator[RawNode]:
        """Return the nodes of a function or graph."""

    def scope(
        self, proto: NodeProto, frame: Frame
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the module path of a node, and its classes."""

    def attributes(self, proto: NodeProto, frame: Frame) -> dict[str, Any]:
        """Return the attributes of a node by name."""


class Functions:
    """The local functions of one model."""

    def __init__(self, model: ModelProto) -> None:
        self.by_key: dict[Key, FunctionProto] = {}
        for proto in model.functions:
            key = (_domain(proto.domain), proto.name, proto.overload)
            if key in self.by_key:
                raise InvalidModel(f"expected one function {key[1]!r}, found two")
            self.by_key[key] = proto
        self.names = UniqueNames(_names(model.graph) if self.by_key else ())
        self.sizes: dict[Key, int] = {}
        self.count = 0
        stored = len(model.graph.node) + sum(len(f.node) for f in model.functions)
        self.most = min(MAX_NODES, NODES + NODES_PER_NODE * stored)

    def get(self, node: NodeProto) -> FunctionProto | None:
        """Return the function that a node calls; None if it is an operator."""
        if not self.by_key:
            return None
        return self.by_key.get((_domain(node.domain), node.op_type, node.overload))

    def inline(
        self, reader: NodeReader, node: NodeProto, proto: FunctionProto, frame: Frame
    ) -> Iterator[RawNode]:
        """Yield the nodes of a function for one call of it.

        Raises:
            InvalidModel: the function calls itself, or the call does not fit its
                signature.
            TooManyNodes: the calls become too many nodes.
        """
        if frame.call is None:
            self._check_size(node, proto)
        self._count(node)
        call = self._call(reader, node, proto, frame)
        actual = [
            frame.names[n] if frame.names and n else n or None for n in node.input
        ]
        if len(actual) > len(proto.input) or len(node.output) > len(proto.output):
            raise InvalidModel(
                f"{_label(node)}: expected at most {len(proto.input)} inputs and "
                f"{len(proto.output)} outputs as the function has, got "
                f"{len(actual)} and {len(node.output)}"
            )
        actual += [None] * (len(proto.input) - len(actual))
        names = Names(
            call.prefix, self.names, dict(zip(proto.input, actual, strict=True))
        )
        outputs = [frame.names[n] if frame.names and n else n for n in node.output]
        passed = _bind_outputs(names, proto, outputs)
        opsets = _opsets(proto)
        for domain, version in opsets.items():
            reader.opsets.setdefault(domain, version)
        for raw in reader.nodes(proto.node, _frame(frame, opsets, names, call)):
            if frame.call is None:  # count at the outermost call only
                self._count(node)
            yield raw
        for inner, outer in passed:
            yield RawNode(
                *("Identity", "", {}, (names[inner],), (outer,)),
                *(f"{call.prefix}{inner}", call.scope, call.classes),
            )

    def _call(
        self, reader: NodeReader, node: NodeProto, proto: FunctionProto, frame: Frame
    ) -> FunctionCall:
        key = (_domain(proto.domain), proto.name, proto.overload)
        outer = frame.call
        stack = () if outer is None else outer.stack
        if key in stack or len(stack) >= MAX_CALL_DEPTH:
            trouble = f"function {proto.name!r} calls itself"
            if key not in stack:
                trouble = f"expected calls at most {MAX_CALL_DEPTH} deep, got more"
            raise InvalidModel(f"{_label(node)}: {trouble}")
        attrs = reader.attributes(node, frame)
        defaults = {
            attr.name for attr in proto.attribute_proto if attr.name not in attrs
        }
        if defaults:
            attrs |= self._defaults(reader, proto, defaults, frame)
        scope, classes = reader.scope(node, frame)
        scope = tuple(filter(None, scope))  # the root module has no segment
        leaf = node.name or next((n for n in node.output if n), proto.name)
        classes = classes or ("",) * len(scope)
        return FunctionCall(
            attrs,
            f"{outer.prefix if outer else ''}{leaf}/",
            (*scope, leaf.rpartition("/")[2] or proto.name),
            (*classes, f"{FUNCTION}{proto.name}"),
            (*stack, key),
        )

    def _defaults(
        self, reader: NodeReader, proto: FunctionProto, names: set[str], frame: Frame
    ) -> dict[str, Any]:
        from onnx import NodeProto

        holder = NodeProto(op_type=proto.name, domain=proto.domain)
        holder.attribute.extend(a for a in proto.attribute_proto if a.name in names)
        return reader.attributes(holder, frame)

    def _count(self, node: NodeProto) -> None:
        self.count += 1
        if self.count > self.most:
            raise _too_many(node, self.most)

    def _check_size(self, node: NodeProto, proto: FunctionProto) -> None:
        """Raise TooManyNodes before a call that exceeds the limit is inlined."""
        if self.count + self._size(proto, 0) > self.most:
            raise _too_many(node, self.most)

    def _size(self, proto: FunctionProto, depth: int) -> int:
        """Return a lower bound of a function's nodes; bodies are not counted."""
        key = (_domain(proto.domain), proto.name, proto.overload)
        if key not in self.sizes:
            self.sizes[key] = 0  # ends the recursion of a cyclic call
            called = [self.get(node) for node in proto.node]
            deep = depth >= MAX_CALL_DEPTH
            self.sizes[key] = sum(
                1 if inner is None or deep else 1 + self._size(inner, depth + 1)
                for inner in called
            )
        return self.sizes[key]

    def check_version(
        self, node: NodeProto, required: Mapping[str, int], opsets: Mapping[str, int]
    ) -> None:
        """Check that the function's opset has the same version of the operator.

        Raises:
            UnsupportedModel: the function's opset defines another version of the
                operator.
        """
        domain = _domain(node.domain)
        mine, models = required.get(domain), opsets.get(domain)
        if mine is None or models is None or mine == models:
            return
        versions = [_since(node.op_type, version, domain) for version in (mine, models)]
        if versions[0] != versions[1]:
            raise UnsupportedModel(
                f"{_label(node)}: expected functions of the model's opset {models}, "
                f"got one of opset {mine}, which has another version of this operator; "
                "convert the model to one opset"
            )


def _too_many(node: NodeProto, most: int) -> TooManyNodes:
    return TooManyNodes(
        f"{_label(node)}: expected calls of functions to become at most {most} "
        "nodes, got more"
    )


def _frame(
    frame: Frame, opsets: Mapping[str, int], names: Names, call: FunctionCall
) -> Frame:
    return type(frame)(opsets or frame.opsets, names, call)


def _bind_outputs(
    names: Names, proto: FunctionProto, outputs: list[str | None]
) -> list[tuple[str, str]]:
    """Map outputs to the caller's names; return (inner, outer) pairs to copy.

    An output that is an input needs an ``Identity`` node.
    """
    passed = []
    for inner, outer in zip(proto.output, outputs, strict=False):
        if not outer:
            continue
        if inner in names.renamed:
            passed.append((inner, outer))
        else:
            names.renamed[inner] = outer
    return passed


def _opsets(proto: FunctionProto) -> dict[str, int]:
    return {_domain(entry.domain): entry.version for entry in proto.opset_import}


def _since(op_type: str, version: int, domain: str) -> int:
    from onnx import defs

    try:
        return int(defs.get_schema(op_type, version, domain).since_version)
    except defs.SchemaError:
        return 0


def _label(node: NodeProto) -> str:
    """Return a node's name, or its first output, and its operator."""
    name = node.name or next((output for output in node.output if output), "")
    return f"node {name!r} ({node.op_type})"


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _names(graph: GraphProto) -> Iterator[str]:
    """Yield every value name in a graph and its bodies."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from node.output
        for attr in node.attribute:
            if attr.HasField("g"):
                yield from _names(attr.g)
