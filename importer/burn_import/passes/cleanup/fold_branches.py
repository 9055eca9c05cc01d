"""Replaces an ``If`` with a constant condition by the branch that runs."""

from dataclasses import replace

from burn_import.rewriting.graphs import rename
from burn_ir.graph import Graph, Node
from burn_ir.op import operators

BRANCHES = {True: "then_branch", False: "else_branch"}


def fold_branches(graph: Graph) -> Graph:
    """Return ``graph`` with every decided ``If`` replaced by its branch's nodes.

    Results keep the names that the ``If`` gave them.
    """
    branches = [_decided_branch(node, graph) for node in graph.nodes]
    if not any(branches):
        return graph
    nodes: list[Node] = []
    aliases: dict[str, str] = {}
    for node, branch in zip(graph.nodes, branches, strict=True):
        nodes += [node] if branch is None else _inline_body(node, branch, aliases)
    return rename(graph.with_nodes(nodes), aliases)


def _decided_branch(node: Node, graph: Graph) -> Graph | None:
    """Return the branch that runs; None for undecided ``If`` and other nodes."""
    if node.op.onnx != "If" or node.op.domain:
        return None
    condition = graph.type(node.inputs[0])
    if condition is None or condition.known is None or condition.known.size != 1:
        return None
    body = node.op.attrs()[BRANCHES[bool(condition.known.reshape(()))]]
    assert isinstance(body, Graph)
    return body


def _inline_body(node: Node, body: Graph, aliases: dict[str, str]) -> list[Node]:
    """Return the nodes of ``body``, with the outputs of ``node``.

    ``aliases`` receives the inner names of the outputs.
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
        else:  # computed outside the branch, or an output twice
            nodes.append(
                replace(node, op=identity(), inputs=(inside,), outputs=(outside,))
            )
    return nodes
