"""Removes the copies of keys and values that several heads of queries share."""

from __future__ import annotations

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention


def repeat_kv(graph: Graph) -> Graph:
    """``graph`` with ``Attention`` that reads keys and values of fewer heads.

    Exporters repeat each of them for its group of neighbouring heads; attention does
    so by itself. The copies stay where somebody else reads them.
    """
    flow = Dataflow(graph)
    return changed(graph, [_grouped(flow, node) for node in graph.nodes])


def _grouped(flow: Dataflow, node: Node) -> Node:
    if not isinstance(node.op, Attention):
        return node
    key, value = (_once(flow, name) for name in node.inputs[1:3])
    past_or_present = any(node.inputs[4:6]) or any(node.outputs[1:])
    if key is None or value is None or past_or_present:
        return node
    if flow.extents(key)[1:2] != flow.extents(value)[1:2]:
        return node
    return replace(node, inputs=(node.inputs[0], key, value, *node.inputs[3:]))


def _once(flow: Dataflow, name: str | None) -> str | None:
    """What ``name`` repeats: ``[b, g, s, d]`` as ``[b, g, n, s, d]``, then merged."""
    merged = flow.made_by(name, "Reshape")
    expanded = flow.made_by(merged.inputs[0], "Expand", "Tile") if merged else None
    apart = (
        flow.made_by(expanded.inputs[0], "Unsqueeze", "Reshape") if expanded else None
    )
    if merged is None or expanded is None or apart is None:
        return None
    source, several = flow.extents(apart.inputs[0]), flow.extents(expanded.output)
    if len(source) != 4 or len(several) != 5:
        return None
    batch, groups, length, size = source
    count = several[2]
    if not isinstance(groups, int) or not isinstance(count, int):
        return None
    whole = (batch, groups * count, length, size)
    fits = (
        flow.extents(apart.output) == (batch, groups, 1, length, size)
        and several == (batch, groups, count, length, size)
        and flow.extents(merged.output) == whole
    )
    return apart.inputs[0] if fits else None
