"""Recovers ``Where`` from sums of products with a condition and its negation."""

from math import isfinite

import numpy as np

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_import.rewriting.pattern import Call, Match, Search, Value
from burn_ir.graph import Graph, Node
from burn_ir.ops.logic import Where

_CONDITION = Value("condition")
_SELECTION = Call(
    "Add",
    Call("Mul", Call("Cast", _CONDITION), Value("a")),
    Call("Mul", Call("Cast", Call("Not", _CONDITION)), Value("b")),
)


def selections(graph: Graph) -> Graph:
    """Return ``graph`` with ``Where(c, a, b)`` for ``a * c + b * (not c)``.

    tf2onnx writes TensorFlow's selections so, with casts of the condition. Operands
    that may be infinite are left alone, since their product with 0 is NaN. A NaN in the
    operand that is not selected was NaN in the file's sum; it is not in TensorFlow's
    selection, nor in ``Where``.
    """
    if not {"Not", "Mul", "Add"} <= graph.operators:
        return graph
    flow, search = Dataflow(graph), Search(graph)
    return with_nodes(graph, [_selection(n, search, flow) for n in graph.nodes])


def _selection(node: Node, search: Search, flow: Dataflow) -> Node:
    """Return the selection that a sum computes; other nodes as they are."""
    if node.op.domain or node.op.onnx != "Add":
        return node
    for match in _SELECTION.match(node.output, search, Match()):
        condition, a, b = (match.values[name] for name in ("condition", "a", "b"))
        t = search.graph.type(condition)
        is_condition = t is not None and t.dtype == np.bool_
        if is_condition and isfinite(flow.magnitude(a) + flow.magnitude(b)):
            return node.with_op(Where(), (condition, a, b))
    return node
