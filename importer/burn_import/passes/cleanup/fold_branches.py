"""Replaces an ``If`` whose condition is known by the branch that is taken."""

from __future__ import annotations

from dataclasses import replace

from burn_import.rewriting.graphs import rename
from burn_ir.graph import Graph, Node
from burn_ir.op import operators

BRANCHES = {True: "then_branch", False: "else_branch"}


def fold_branches(graph: Graph) -> Graph:
    """``graph`` with the nodes of the branch in place of every decided ``If``.

    Results keep the names that the ``If`` gave them.
    """
    nodes: list[Node] = []
    aliases: dict[str, str] = {}
    for node in graph.nodes:
        taken = _taken(node, graph)
        if taken is None:
            nodes.append(node)
        else:
            nodes += _spliced(node, taken, aliases)
    if len(nodes) == len(graph.nodes) and not aliases:
        return graph
    return rename(graph.with_nodes(nodes), aliases)


def _taken(node: Node, graph: Graph) -> Graph | None:
    """The body that runs, None if that is not known or the node is no ``If``."""
    if node.op.onnx != "If" or node.op.domain:
        return None
    condition = graph.type(node.inputs[0])
    if condition is None or condition.known is None or condition.known.size != 1:
        return None
    body = node.op.attrs()[BRANCHES[bool(condition.known.reshape(()))]]
    assert isinstance(body, Graph)
    return body


def _spliced(node: Node, body: Graph, aliases: dict[str, str]) -> list[Node]:
    """The nodes of ``body``, making the outputs of ``node``.

    ``aliases`` learns what the outputs were called inside.
    """
    for inside, outside in zip(body.inputs, node.inputs[1:], strict=True):
        if outside is not None and inside != outside:
            aliases[inside] = outside
    inner = {name for n in body.nodes for name in n.outputs if name is not None}
    identity = operators()[("", "Identity")]
    nodes = list(body.nodes)
    for inside, outside in zip(body.outputs, node.outputs, strict=False):
        if outside is None:
            continue
        if inside in inner:
            aliases[inside] = outside
            inner.remove(inside)
        else:  # made outside the branch, or given out twice
            nodes.append(
                replace(node, op=identity(), inputs=(inside,), outputs=(outside,))
            )
    return nodes
