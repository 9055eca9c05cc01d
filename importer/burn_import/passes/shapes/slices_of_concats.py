"""Reads the operand of a concatenation instead of the slice that holds it.

Embeddings of timesteps exchange sines and cosines by slices of their concatenation.
"""

from burn_import.passes.shapes.written_slices import sliced_axis
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Identity


def slices_of_concats(graph: Graph) -> Graph:
    """Return ``graph`` with operands of concatenations for slices that equal them.

    The extents along the axis must be known, and both must be in one module.
    """
    if not graph.operators >= {"Slice", "Concat"}:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_rewrite(flow, node) for node in graph.nodes])


def _rewrite(flow: Dataflow, node: Node) -> Node:
    """Return ``node``, or an identity of the operand that the slice holds."""
    if node.op.domain or node.op.onnx != "Slice":
        return node
    whole = flow.made_by(node.inputs[0], "Concat")
    part = None if whole is None else sliced_axis(flow, node)
    if whole is None or part is None or whole.scope != node.scope:
        return node  # the operands of another module are no results of it
    axis, start, stop = part
    if whole.op.attrs()["axis"] % len(flow.extents(whole.output)) != axis:
        return node
    position = 0
    for name in whole.inputs:
        extent = flow.extents(name)[axis] if flow.extents(name) else None
        if not isinstance(extent, int) or name is None or position > start:
            break
        if (position, position + extent) == (start, stop) and extent:
            return node.with_op(Identity(), (name,))
        position += extent
    return node
