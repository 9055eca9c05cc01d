"""Merges zero padding into the padding of the following convolution."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv
from burn_ir.ops.padding import Pad
from burn_ir.ops.support import known_ints

#: Values of ``auto_pad`` with explicit padding or none.
EXPLICIT = ("NOTSET", "VALID")


def conv_padding(graph: Graph) -> Graph:
    """Return ``graph`` with ``Pad`` and ``Conv`` as one convolution.

    The padding must be zeros on spatial axes only, and all readers of the padded value
    must be convolutions. Exporters write such a ``Pad`` for asymmetric padding.
    """
    if not any(isinstance(node.op, Pad) for node in graph.nodes):
        return graph
    flow = Dataflow(graph)
    nodes, absorbed = [], set[int]()
    for node in graph.nodes:
        pad = flow.made_by(node.inputs[0], "Pad") if _is_plain(node) else None
        pads = None if pad is None else _pads(pad, flow)
        if pad is not None and pads is not None and _is_read_by_convolutions(pad, flow):
            absorbed.add(id(pad))
            node = _with_pads(node, pad, pads)
        nodes.append(node)
    if not absorbed:
        return graph
    return with_nodes(graph, [node for node in nodes if id(node) not in absorbed])


def _is_read_by_convolutions(pad: Node, flow: Dataflow) -> bool:
    """Return whether only convolutions read the padded value, as their image."""
    name = pad.output
    return name not in flow.outputs and all(
        flow.is_idle(reader) or _is_plain(reader) and name not in reader.inputs[1:]
        for reader in flow.users[name]
    )


def _is_plain(node: Node) -> bool:
    """Return whether a node is a convolution with explicit padding."""
    return isinstance(node.op, Conv) and node.op.auto_pad in EXPLICIT


def _pads(pad: Node, flow: Dataflow) -> tuple[int, ...] | None:
    """Return the padding before and after each spatial axis; None if unknown.

    None also for values other than 0, negative padding, and padding of other axes.
    """
    data = flow.graph.type(pad.inputs[0])
    _, counts, value, axes = (*pad.inputs, None, None)[:4]
    widths = known_ints(flow.graph.type(counts))
    chosen = known_ints(flow.graph.type(axes))
    if not isinstance(pad.op, Pad) or pad.op.mode != "constant" or data is None:
        return None
    if data.shape is None or widths is None or (axes is not None and chosen is None):
        return None
    if value is not None and flow.scalar(value) != 0:
        return None
    where = range(data.rank) if chosen is None else data.axes(chosen)
    if len(widths) != 2 * len(where) or min(widths, default=0) < 0:
        return None
    before = dict(zip(where, widths, strict=False))
    after = dict(zip(where, widths[len(where) :], strict=True))
    if any(side.get(axis, 0) for side in (before, after) for axis in (0, 1)):
        return None
    axes_of_window = range(2, data.rank)
    sides = (before, after)
    return tuple(int(side.get(axis, 0)) for side in sides for axis in axes_of_window)


def _with_pads(node: Node, pad: Node, pads: tuple[int, ...]) -> Node:
    """Return the convolution of the operand of ``pad``, with both paddings."""
    assert isinstance(node.op, Conv)
    own = node.op.pads if node.op.auto_pad == "NOTSET" else None
    total = [a + b for a, b in zip(pads, own or (0,) * len(pads), strict=True)]
    op = replace(node.op, pads=tuple(total), auto_pad="NOTSET")
    return replace(node, op=op, inputs=(pad.inputs[0], *node.inputs[1:]))
