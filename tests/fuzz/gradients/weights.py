"""The stored weights of a graph: their readers, and where they are rounded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from burn import dtypes, ops
from burn.dtypes import is_float, is_integer
from burn.primitive import Primitive
from burn_import.rewriting.graphs import captures
from burn_ir import Graph
from burn_ir.containers import AnyType
from burn_ir.graph import Node
from burn_ir.ops.norm import STASH
from burn_ir.types import Type

#: Whether a value of this type keeps less of a weight than the check computes with.
Narrow = Callable[[AnyType | None], bool]

#: Operators whose results do not depend on the contents of their operands.
UNRELATED = ("Shape", "Size")
#: Operators with a slope that their primitives declare no gradient for: PyTorch has
#: none through dynamically quantized layers, nor libsvm through coupled probabilities.
UNDIFFERENTIATED: dict[str, Primitive[..., Any]] = {
    "DynamicQuantizeLSTM": ops.dynamic_quantized_lstm,
    "PairwiseProbabilities": ops.pairwise_probabilities,
}


def bodies_of(graph: Graph) -> Iterator[Graph]:
    """All bodies of the nodes of ``graph``, and the bodies in these."""
    for node in graph.nodes:
        for body in node.op.bodies().values():
            yield body
            yield from bodies_of(body)


def has_halves(graph: Graph) -> bool:
    """Return whether a value of ``graph`` or of a body is of halves."""
    parts = (graph, *bodies_of(graph))
    return any(t.dtype in dtypes.HALVES for p in parts for t in p.types.values())


def read_constants(graph: Graph) -> list[str]:
    """The names of the constants that ``graph`` or a body reads or returns.

    Graphs share their constants with those that passes derive from them, so a value
    that one graph computes may be stored for another one.
    """
    names: set[str] = set()
    for part in (graph, *bodies_of(graph)):
        read = {name for node in part.nodes for name in node.inputs if name is not None}
        computed = {name for node in part.nodes for name in node.outputs}
        names |= (read | set(part.outputs)) - computed - set(part.inputs)
    return sorted(names & set(graph.constants))


def opened(graph: Graph, names: Collection[str]) -> Graph:
    """``graph`` with constants as further inputs, which bodies capture."""
    nodes = tuple(_capturing(node, names) for node in graph.nodes)
    return replace(graph, inputs=(*graph.inputs, *names), nodes=nodes)


def _capturing(node: Node, names: Collection[str]) -> Node:
    bodies = node.op.bodies()
    inner = {name for body in bodies.values() for name in read_constants(body)}
    added = tuple(name for name in names if name in inner)
    if not added:
        return node
    closed = {}
    for key, body in bodies.items():
        types = {name: Type.of(body.constants[name]).forget() for name in added}
        result = opened(body, added)
        closed[key] = replace(result, types={**body.types, **types})
    op = node.op.with_attrs(**closed)
    return replace(node, op=op, inputs=(*node.inputs, *added))


def narrowed(graph: Graph, name: str, narrow: Narrow) -> bool:
    """Return whether a value that follows from the constant ``name`` is narrow.

    So are all values that follow from an operator without a gradient.
    """
    return _follow(graph, {name}, narrow)[0]


def _follow(graph: Graph, names: set[str], narrow: Narrow) -> tuple[bool, set[str]]:
    """Return whether a value that depends on ``names`` is narrow, and all of them."""
    following, result = set(names), False
    for node in graph.nodes:
        is_reached = not following.isdisjoint(node.inputs)
        for body in node.op.bodies().values():
            is_narrow, is_reached = _enter(node, body, following, narrow, is_reached)
            result = result or is_narrow
        if is_reached and node.op.onnx not in UNRELATED:
            outputs = [out for out in node.outputs if out is not None]
            following.update(outputs)
            result = result or any(narrow(graph.types.get(out)) for out in outputs)
            result = result or _has_no_gradient(node) or narrow(_inside(node))
    return result, following


def _inside(node: Node) -> Type | None:
    """The type that attention computes its softmax in, if a node names one."""
    code = getattr(node.op, "softmax_precision", None)
    return None if code is None else Type(STASH[code], None)


def _has_no_gradient(node: Node) -> bool:
    """Return whether a node's primitive declares no gradient where there is a slope."""
    primitive = UNDIFFERENTIATED.get(node.op.onnx)
    return primitive is not None and primitive.rule is None


def _enter(
    node: Node, body: Graph, following: set[str], narrow: Narrow, is_reached: bool
) -> tuple[bool, bool]:
    """Return whether a body has a narrow value, and whether its results follow."""
    count = captures(node)
    plain = body.inputs[: len(body.inputs) - count]
    before = node.inputs[: len(node.inputs) - count]
    inner = {name for name in following if name in body.constants}
    inner |= following & set(body.inputs[len(plain) :])
    if not following.isdisjoint(before):
        inner.update(plain)
    result, results = _follow(body, inner, narrow)
    if not results.isdisjoint(body.outputs):  # also what is carried to other rounds
        again, results = _follow(body, inner | set(plain), narrow)
        return result or again, True
    return result, is_reached


def is_below_float64(value: AnyType | None) -> bool:
    """Return whether a value is floating and has been rounded to less than float64."""
    return value is not None and is_float(value.dtype) and value.dtype.itemsize < 8


def is_below_float32(value: AnyType | None) -> bool:
    """Return whether a value is rounded to integers, or to fewer bits than float32."""
    if value is None:
        return False
    return is_integer(value.dtype) or (
        is_float(value.dtype) and value.dtype.itemsize < 4
    )
