"""Recovers ``Unsqueeze`` from reshapes that only insert an axis."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Unsqueeze

#: The scope of a node without the numbers of modules, and the ranks that it changes.
Place: TypeAlias = tuple[tuple[str, ...], int, int]
Extents: TypeAlias = Sequence[Dim]


def inserted_axes(graph: Graph) -> Graph:
    """Return ``graph`` with ``Unsqueeze`` for reshapes that insert one axis.

    Their source then has no extents. A reshape stays if one in an equal module of the
    graph does more: there the axis is a sequence that happens to have one element.
    """
    if "Reshape" not in graph.operators:
        return graph
    reshapes = [n for n in graph.nodes if n.op.onnx == "Reshape" and not n.op.domain]
    axes = {id(node): _axis(node, graph) for node in reshapes}
    splitting = {_place(n, graph) for n in reshapes if axes[id(n)] is None}
    nodes = []
    for node in graph.nodes:
        axis = axes.get(id(node))
        if axis is not None and not _has_sibling(node, graph, splitting):
            inputs = (node.inputs[0], integers(graph, [axis]))
            node = node.with_op(Unsqueeze(), inputs)
        nodes.append(node)
    return with_nodes(graph, nodes)


def _has_sibling(node: Node, graph: Graph, splitting: Iterable[Place]) -> bool:
    """Return whether a reshape of another module with this scope does more."""
    place = _place(node, graph)
    is_numbered = place[0] != node.scope
    return is_numbered and place in splitting


def _place(node: Node, graph: Graph) -> Place:
    scope = tuple("#" if segment.isdigit() else segment for segment in node.scope)
    return (
        scope,
        len(_extents(node.inputs[0], graph)),
        len(_extents(node.output, graph)),
    )


def _extents(name: str | None, graph: Graph) -> Extents:
    t = graph.type(name)
    return () if t is None or t.shape is None else t.shape


def _axis(node: Node, graph: Graph) -> int | None:
    """Return the axis that a reshape inserts, None if it is not one alone.

    The last but one of four axes may be the heads of an attention, whose number
    differs in other models.
    """
    t = graph.type(node.inputs[0])
    if t is None or t.shape is None or node.output in graph.states:
        return None
    extents, target = t.shape, _extents(node.output, graph)
    if len(target) != len(extents) + 1:
        return None
    for axis in range(len(target)):
        if (*extents[:axis], 1, *extents[axis:]) == tuple(target):
            return None if (axis, len(target)) == (2, 4) else axis
    return None
