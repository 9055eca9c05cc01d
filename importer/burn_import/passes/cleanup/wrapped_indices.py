"""Removes the arithmetic that adds the extent of an axis to negative indices."""

from burn.dtypes import is_float
from burn_import.rewriting.graphs import with_nodes
from burn_import.rewriting.pattern import (
    Call,
    Match,
    Number,
    Search,
    Stored,
    Value,
    stands_for,
)
from burn_ir.graph import Graph, Node

_X = Value("x")
_IS_NEGATIVE = Call("Less", Value("compared"), Number(0))
_SHIFTED = Call("Add", _X, Stored("extent"))
_WRAPPED = Call("Where", _IS_NEGATIVE, _SHIFTED, _X)


def wrapped_indices(graph: Graph) -> Graph:
    """Return ``graph`` with gathers that read ``x`` for ``where(x < 0, x + n, x)``.

    ``n`` is the extent of the gathered axis. ``Gather`` counts a negative index from
    the end itself, so every index from ``-n`` to ``n - 1`` reads the same elements;
    others are errors, although the arithmetic accepts those from ``-2 * n``.
    """
    if not {"Gather", "Where"} <= graph.operators:
        return graph
    search = Search(graph)
    return with_nodes(graph, [_without_arithmetic(n, search) for n in graph.nodes])


def _without_arithmetic(node: Node, search: Search) -> Node:
    """Return a gather with unwrapped indices; other nodes as they are."""
    data, *_ = (*node.inputs, None)
    t = search.graph.type(data)
    if node.op.domain or node.op.onnx != "Gather" or t is None or not t.shape:
        return node
    extent = t.shape[node.op.attrs()["axis"]]
    if not isinstance(extent, int) or node.inputs[1] is None:
        return node
    for match in _WRAPPED.match(node.inputs[1], search, Match()):
        if _wraps_by(extent, match, search):
            return node.with_op(node.op, (data, match.values["x"]))
    return node


def _wraps_by(extent: int, match: Match, search: Search) -> bool:
    """Return whether a match adds ``extent`` to negative elements of ``x``."""
    x = search.graph.type(match.values["x"])
    number = search.number(match.values["extent"])
    if x is None or x.shape is None or number is None or match.rank > len(x.shape):
        return False
    if number.ndim > len(x.shape) or not stands_for(number, extent):
        return False
    return _has_sign_of(match.values["compared"], match.values["x"], search)


def _has_sign_of(name: str, x: str, search: Search) -> bool:
    """Return whether a value is ``x``, or its cast to a floating type."""
    if name == x:
        return True
    node, t = search.node(name), search.graph.type(name)
    is_cast = node is not None and node.op.onnx == "Cast" and node.inputs[0] == x
    return is_cast and t is not None and is_float(t.dtype)
