"""Removes ``Detach`` of values that depend on no parameter."""

from __future__ import annotations

from burn_import.passes.rewrite import rename
from burn_import.structure.trained import is_trained
from burn_ir.graph import Graph, Node


def detachments(graph: Graph) -> Graph:
    """``graph`` without ``Detach`` where nothing is trained upstream.

    Gradients of parameters stay what they are; those of the inputs of the model pass
    through. In a body, which alone has no ``opsets``, every ``Detach`` stays: its
    inputs may depend on parameters.
    """
    if "Detach" not in graph.operators or not graph.opsets:
        return graph
    dependent: set[str] = set()
    aliases: dict[str, str] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        is_dependent = _is_dependent(node, graph, dependent)
        if is_dependent:
            dependent.update(name for name in node.outputs if name is not None)
        source = node.inputs[0] if node.inputs else None
        removable = node.op.onnx == "Detach" and not is_dependent
        if removable and source is not None and node.output not in graph.outputs:
            aliases[node.output] = source
        else:
            kept.append(node)
    return rename(graph.with_nodes(kept), aliases) if aliases else graph


def _is_dependent(node: Node, graph: Graph, dependent: set[str]) -> bool:
    """Return whether a result of ``node`` may depend on a parameter.

    The graphs inside a node may read parameters that are not among its operands.
    """
    if node.op.bodies():
        return True
    names = [name for name in node.inputs if name is not None]
    if any(name in dependent for name in names):
        return True
    stored = [name for name in names if name not in graph.types]
    return any(is_trained(graph, name) for name in stored)
