"""Replaces the computed target of a reshape by numbers, with -1 for one extent."""

from collections.abc import Sequence
from itertools import chain

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.support import known_dims, known_ints

#: Elements of a target; None for those that are no known numbers.
Elements = list[int | None]


def reshape_targets(graph: Graph) -> Graph:
    """Return ``graph`` with constant targets of reshapes where one extent is unknown.

    The other extents are positive numbers, so the number of elements determines the
    unknown one. The target of tf2onnx's ``Einsum`` has the maximum of two batch
    extents there. A target whose elements are all known is left to constant folding
    or to the printer, which names its extents.
    """
    if "Reshape" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_with_constant_target(n, flow) for n in graph.nodes])


def _with_constant_target(node: Node, flow: Dataflow) -> Node:
    """Return a reshape with a constant target; other nodes as they are."""
    if node.op.domain or node.op.onnx != "Reshape":
        return node
    if known_ints(flow.graph.type(node.inputs[1])) is not None:
        return node
    target = _target(node, flow)
    if target is None or target.count(None) != 1 or 0 in target:
        return node
    numbers = integers(flow.graph, [-1 if n is None else n for n in target])
    return node.with_op(node.op, (node.inputs[0], numbers))


def _target(node: Node, flow: Dataflow) -> Elements | None:
    """Return the extents of a reshape's result; None if their count is unknown."""
    elements, extents = _elements(node.inputs[1], flow), flow.extents(node.output)
    if elements is None or len(elements) != len(extents):
        return None
    known = [n if n is not None and n > 0 else None for n in elements]
    return [
        extent if isinstance(extent, int) else n
        for n, extent in zip(known, extents, strict=True)
    ]


def _elements(name: str | None, flow: Dataflow) -> Elements | None:
    """Return the elements of an integer vector; None if their count is unknown."""
    t = flow.graph.type(name)
    dims = known_dims(t)
    if t is None or t.shape is None or len(t.shape) != 1:
        return None
    if dims is not None:
        return [n if isinstance(n, int) else None for n in dims]
    if (node := flow.made_by(name, "Concat")) is not None:
        parts = [_elements(operand, flow) for operand in node.inputs]
        known = [part for part in parts if part is not None]
        return list(chain(*known)) if len(known) == len(parts) else None
    if (node := flow.made_by(name, "Max")) is not None:
        parts = [_elements(operand, flow) for operand in node.inputs]
        return _maxima([part for part in parts if part is not None], len(parts))
    node = flow.made_by(name, "Cast")
    return None if node is None else _elements(node.inputs[0], flow)


def _maxima(parts: Sequence[Elements], count: int) -> Elements | None:
    """Return the elementwise maxima of ``count`` vectors of equal lengths."""
    if len(parts) != count or len({len(part) for part in parts}) != 1:
        return None
    columns = zip(*parts, strict=True)
    return [
        None if None in column else max(n for n in column if n is not None)
        for column in columns
    ]
