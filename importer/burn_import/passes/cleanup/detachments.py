"""Removes ``Detach`` of values that have no gradient."""

from burn.dtypes import is_float
from burn_import.provenance.trainable import is_trained
from burn_import.rewriting.graphs import rename
from burn_ir.containers import kind_of
from burn_ir.graph import Graph, Node
from burn_ir.types import Type


def detachments(graph: Graph) -> Graph:
    """Return ``graph`` without ``Detach`` of values that have no gradient.

    Parameters and floating inputs have one; positions, buffers and values computed from
    them do not. In a body (which has no ``opsets``) every ``Detach`` stays, because its
    inputs may depend on parameters.
    """
    if "Detach" not in graph.operators or not graph.opsets:
        return graph
    inputs = graph.inputs
    dependent = {name for name in inputs if _has_gradient(graph.types[name])}
    aliases: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        is_dependent = _is_dependent(node, graph, dependent)
        if is_dependent:
            dependent.update(name for name in node.outputs if name is not None)
        source = node.inputs[0] if node.inputs else None
        removable = node.op.onnx == "Detach" and not is_dependent
        if removable and source is not None and node.output not in graph.outputs:
            aliases[node.output] = source
        else:
            nodes.append(node)
    return rename(graph.with_nodes(nodes), aliases) if aliases else graph


def _is_dependent(node: Node, graph: Graph, dependent: set[str]) -> bool:
    """Return whether a result of ``node`` may depend on a parameter or floating input.

    The graphs inside a node may read parameters that are not among its operands.
    """
    if node.op.bodies():
        return True
    names = [name for name in node.inputs if name is not None]
    if any(name in dependent for name in names):
        return True
    stored = [name for name in names if name not in graph.types]
    return any(is_trained(graph, name) for name in stored)


def _has_gradient(kind: Type) -> bool:
    """Return whether values of this type may have a gradient, containers too."""
    return kind_of(kind) != "tensor" or is_float(kind.dtype)
