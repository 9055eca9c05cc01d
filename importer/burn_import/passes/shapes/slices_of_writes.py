"""Slices of a tensor into which a slice was written, read from what was written.

An update in place of a part, ``x[:, :n] *= mask``, is exported as a scatter into the
whole tensor, of which the model then reads the part again.
"""

from dataclasses import replace

from burn_import.passes.shapes.written_slices import (
    SCATTERS,
    Write,
    sliced_axis,
    written_by,
)
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import Slice
from burn_ir.ops.shape import Identity


def slices_of_writes(graph: Graph) -> Graph:
    """Return ``graph`` with slices of the update, or of the tensor before the write.

    The slice is inside of what is written, or outside, along the axis of the write; the
    tensor may be transposed between them.
    """
    if "Slice" not in graph.operators or graph.operators.isdisjoint(SCATTERS):
        return graph
    flow = Dataflow(graph)
    writes = dict(written_by(graph, flow))
    if not writes:
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _slice_before_writing(flow, writes, node) or [node]
    return with_nodes(graph, nodes)


def _slice_before_writing(
    flow: Dataflow, writes: dict[str, Write], node: Node
) -> list[Node]:
    """Return the nodes that replace a slice of a written tensor; none for others."""
    if node.op.domain or node.op.onnx != "Slice":
        return []
    part = sliced_axis(flow, node)
    if part is None or part[1] >= part[2]:
        return []
    axis, start, stop = part
    movers: list[Node] = []
    name = node.inputs[0]
    while (mover := flow.made_by(name, "Transpose")) is not None:
        axis = _order(flow, mover)[axis]
        movers.append(mover)
        name = mover.inputs[0]
    write = writes.get(name or "")
    if write is None or write.axis != axis:
        return []
    if write.start <= start and stop <= write.stop:
        source, offset = write.update, write.start
    elif stop <= write.start or write.stop <= start:
        source, offset = write.base, 0
    else:
        return []
    nodes = []
    for mover in reversed(movers):
        before = flow.made_by(source, "Transpose")
        if before is not None and _order(flow, before) == _inverse(_order(flow, mover)):
            source = before.inputs[0] or ""
            continue
        nodes.append(replace(mover, inputs=(source,), outputs=(flow.fresh(source),)))
        source = nodes[-1].output
    if (start, stop) == (write.start, write.stop):
        return [*nodes, node.with_op(Identity(), (source,))]
    numbers = (start - offset, stop - offset, part[0])
    operands = (integers(flow.graph, [number]) for number in numbers)
    return [*nodes, node.with_op(Slice(), (source, *operands))]


def _order(flow: Dataflow, node: Node) -> tuple[int, ...]:
    """Return the axes of the operand of a transpose, in the order of its result."""
    order = node.op.attrs()["perm"]
    axes = range(len(flow.extents(node.inputs[0])))
    return tuple(reversed(axes)) if order is None else tuple(order)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))
