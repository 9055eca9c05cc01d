"""Removes copies of keys and values that groups of query heads share."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention


def repeat_kv(graph: Graph) -> Graph:
    """Return ``graph`` with ``Attention`` that reads unrepeated keys and values.

    Exporters repeat each key and value for its group of neighboring query heads;
    ``Attention`` does so itself. The copies stay if they have other readers.
    """
    flow = Dataflow(graph)
    return with_nodes(graph, [_with_grouped_heads(flow, node) for node in graph.nodes])


def _with_grouped_heads(flow: Dataflow, node: Node) -> Node:
    if not isinstance(node.op, Attention):
        return node
    key, value = (_unrepeated(flow, name) for name in node.inputs[1:3])
    past_or_present = any(node.inputs[4:6]) or any(node.outputs[1:])
    if key is None or value is None or past_or_present:
        return node
    if flow.extents(key)[1:2] != flow.extents(value)[1:2]:
        return node
    return replace(node, inputs=(node.inputs[0], key, value, *node.inputs[3:]))


def _unrepeated(flow: Dataflow, name: str | None) -> str | None:
    """Return the operand that ``name`` repeats; None if it repeats none.

    ``[b, g, s, d]`` is expanded to ``[b, g, n, s, d]`` and reshaped to ``[b, g * n, s,
    d]``.
    """
    merged = flow.made_by(name, "Reshape")
    expanded = flow.made_by(merged.inputs[0], "Expand", "Tile") if merged else None
    unflattened = (
        flow.made_by(expanded.inputs[0], "Unsqueeze", "Reshape") if expanded else None
    )
    if merged is None or expanded is None or unflattened is None:
        return None
    source, repeated = flow.extents(unflattened.inputs[0]), flow.extents(
        expanded.output
    )
    if len(source) != 4 or len(repeated) != 5:
        return None
    batch, groups, length, size = source
    count = repeated[2]
    if not isinstance(groups, int) or not isinstance(count, int):
        return None
    whole = (batch, groups * count, length, size)
    fits = (
        flow.extents(unflattened.output) == (batch, groups, 1, length, size)
        and repeated == (batch, groups, count, length, size)
        and flow.extents(merged.output) == whole
    )
    return unflattened.inputs[0] if fits else None
