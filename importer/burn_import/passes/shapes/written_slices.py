"""Concatenates the slices that are written into a tensor one after the other."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from burn_import.passes.shapes.affine_indices import Ramp, Ramps, ramp_of_array
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import Slice
from burn_ir.ops.shape import Concat, Unsqueeze
from burn_ir.ops.support import known_ints
from burn_ir.types import Array

#: The least number of writes that are replaced.
FEWEST_WRITES = 3
#: Operators that write into a copy of a tensor.
SCATTERS = ("ScatterElements", "ScatterND")


@dataclass(frozen=True)
class Write:
    """``result[..., start:stop] = update`` at an axis of a copy of ``base``."""

    base: str
    axis: int
    start: int
    stop: int
    update: str
    #: The nodes that write: a scatter, or a concatenation and slices of ``base``.
    nodes: tuple[Node, ...]


def written_slices(graph: Graph) -> Graph:
    """Return ``graph`` with one ``Concat`` for writes of all slices along an axis.

    A loop that fills a tensor, ``y[:, t] = ...``, is exported as a chain of scatters,
    or of concatenations with slices of the tensor before.
    """
    if graph.operators.isdisjoint((*SCATTERS, "Slice")):
        return graph
    flow = Dataflow(graph)
    writes = dict(written_by(graph, flow))
    if len(writes) < FEWEST_WRITES - 1:  # the first may be a concatenation
        return graph
    bases = {write.base for write in writes.values()}
    nodes: list[Node] = []
    for node in graph.nodes:
        is_last = node.outputs[0] in writes and node.outputs[0] not in bases
        chain = _chain(writes, node.output) if is_last else []
        nodes += _join_writes(flow, chain) or [node]
    return with_nodes(graph, nodes)


def written_by(graph: Graph, flow: Dataflow) -> Iterator[tuple[str, Write]]:
    """Yield the results that are a copy of a tensor with slices written into it."""
    ramps = Ramps(flow)
    for node in graph.nodes:
        if node.op.domain or node.outputs[0] is None:
            continue
        write = None
        if node.op.onnx in SCATTERS:
            write = _written_slices(flow, ramps, node)
        elif node.op.onnx == "Concat":
            write = _between_slices(flow, node)
        if write is not None:
            yield node.output, write


def _written_slices(flow: Dataflow, ramps: Ramps, node: Node) -> Write | None:
    """Return the slices that a scatter replaces as a whole."""
    base, name, update = node.inputs
    shape, extents = flow.extents(base), flow.extents(update)
    if base is None or update is None or len(shape) != len(extents):
        return None
    axes = [a for a, extent in enumerate(shape) if extent != extents[a]]
    if node.op.attrs()["reduction"] != "none" or len(axes) != 1:
        return None
    axis = axes[0]
    if node.op.onnx == "ScatterND":
        ramp = _positions(flow.stored(name), axis)
    else:
        is_along = node.op.attrs()["axis"] % len(shape) == axis
        ramp = ramps.of(name) if is_along else None
    count, steps = extents[axis], () if ramp is None else ramp.steps
    if ramp is None or not isinstance(ramp.offset, int) or not isinstance(count, int):
        return None
    expected = [int(a == axis and count > 1) for a in range(len(steps))]
    start = ramp.offset + shape[axis] if ramp.offset < 0 else ramp.offset
    wraps = ramp.offset < 0 < ramp.offset + count  # -1, 0, 1 are no slice
    if wraps or not isinstance(start, int) or list(steps) != expected:
        return None
    return Write(base, axis, start, start + count, update, (node,))


def _positions(indices: Array | None, axis: int) -> Ramp | None:
    """Return where along an axis ``ScatterND`` writes slices; None if to other axes."""
    depth = 0 if indices is None else indices.shape[-1]
    if indices is None or indices.ndim != depth + 1 or axis >= depth:
        return None
    grid = np.moveaxis(np.indices(indices.shape[:-1]), 0, -1)
    others = [a for a in range(depth) if a != axis]
    is_whole = (indices[..., others] == grid[..., others]).all()
    return ramp_of_array(indices[..., axis]) if is_whole else None


def _between_slices(flow: Dataflow, node: Node) -> Write | None:
    """Return the value between the first and last slices of a tensor, as a write."""
    rank = len(flow.extents(node.output))
    if not rank or not 2 <= len(node.inputs) <= 3:
        return None
    axis = node.op.attrs()["axis"] % rank
    before = _slice(flow, node.inputs[0], axis)
    is_last = before is not None and len(node.inputs) == 2
    after = None if is_last else _slice(flow, node.inputs[-1], axis)
    slices = [one for one in (before, after) if one is not None]
    bases = {one.inputs[0] for one, _, _ in slices}
    if len(slices) != len(node.inputs) - 1 or len(bases) != 1:
        return None
    base, update = bases.pop(), node.inputs[0 if before is None else 1]
    extent, extents = flow.extents(base)[axis], flow.extents(update)
    first, start = (0, 0) if before is None else before[1:]
    stop, last = (extent, extent) if after is None else after[1:]
    if base is None or update is None or not isinstance(stop, int) or first:
        return None
    if last != extent or len(extents) != rank or extents[axis] != stop - start:
        return None
    return Write(base, axis, start, stop, update, (node, *(one[0] for one in slices)))


def _slice(flow: Dataflow, name: str | None, axis: int) -> tuple[Node, int, int] | None:
    """Return a slice of one axis, and its first and last positions."""
    node = flow.made_by(name, "Slice")
    part = None if node is None else sliced_axis(flow, node)
    if node is None or part is None or part[0] != axis:
        return None
    return node, part[1], part[2]


def sliced_axis(flow: Dataflow, node: Node) -> tuple[int, int, int] | None:
    """Return the axis of a slice, its first position and the one after its last.

    None if it takes several axes, steps, or positions that are not known.
    """
    shape, operands = flow.extents(node.inputs[0]), (*node.inputs, None, None)[1:5]
    starts, ends, axes, steps = (known_ints(flow.graph.type(n)) for n in operands)
    if not starts or not ends or len(starts) != 1 or (operands[3] and steps != (1,)):
        return None
    if not shape or (operands[2] and not axes):
        return None
    axis = axes[0] % len(shape) if axes else 0
    extent = shape[axis]
    if not isinstance(extent, int):
        return None
    start, stop, _ = slice(starts[0], ends[0]).indices(extent)
    return axis, start, stop


def _chain(writes: dict[str, Write], last: str) -> list[Write]:
    """Return the writes along one axis that lead to ``last``, which comes first."""
    chain = [writes[last]]
    while chain[-1].base in writes and writes[chain[-1].base].axis == chain[0].axis:
        chain.append(writes[chain[-1].base])
    return chain


def _join_writes(flow: Dataflow, chain: list[Write]) -> list[Node]:
    """Return the nodes that replace the last write; none if the base is still read."""
    if len(chain) < FEWEST_WRITES - 1:
        return []
    axis, slots = chain[0].axis, _slots(flow, chain)
    last, *written = [node for write in chain for node in write.nodes]
    rest = _unwritten(slots, flow.extents(chain[0].base)[axis])
    if len(slots) < FEWEST_WRITES or rest is None or not flow.are_inside(written, last):
        return []
    scope, classes = common_scope(*(write.nodes[0] for write in reversed(chain)))
    nodes, pieces = [], []
    for start, stop in rest:
        operands = (integers(flow.graph, [number]) for number in (start, stop, axis))
        inputs, name = (chain[-1].base, *operands), flow.fresh(chain[-1].base)
        part = replace(last, op=Slice(), inputs=inputs, outputs=(name,))
        nodes.append(replace(part, scope=scope, classes=classes))
        slots[start, stop] = name
    for _, update in sorted(slots.items()):
        node = _unsqueezed(flow, update, axis)
        nodes += [] if node is None else [node]
        pieces.append(update if node is None else node.output)
    op, inputs = Concat(axis=axis), tuple(pieces)
    joined = replace(last, op=op, inputs=inputs, scope=scope, classes=classes)
    return [*nodes, joined]


def _unwritten(
    slots: Collection[tuple[int, int]], extent: Dim
) -> list[tuple[int, int]] | None:
    """Return what is not written before and after the slices; None if they have gaps.

    The first slice is that of an initial state.
    """
    starts, stops = zip(*sorted(slots), strict=True)
    if starts[1:] != stops[:-1] or not isinstance(extent, int):
        return None
    ends = ((0, starts[0]), (stops[-1], extent))
    return [(start, stop) for start, stop in ends if start != stop]


def _slots(flow: Dataflow, chain: list[Write]) -> dict[tuple[int, int], str]:
    """Return the written values, by their first position and the one after the last.

    The first write of a chain may be folded: a concatenation with a constant.
    """
    axis = chain[-1].axis
    slots: dict[tuple[int, int], str] = {}
    first = flow.made_by(chain[-1].base, "Concat")
    if first is not None and first.op.attrs()["axis"] in (
        axis,
        axis - _rank(flow, first),
    ):
        stop: Dim = 0
        for name in first.inputs:
            start, stop = stop, stop + flow.extents(name)[axis]
            if isinstance(stop, int) and isinstance(start, int) and name is not None:
                slots |= {} if flow.stored(name) is not None else {(start, stop): name}
    slots |= {(write.start, write.stop): write.update for write in reversed(chain)}
    return slots


def _rank(flow: Dataflow, node: Node) -> int:
    return len(flow.extents(node.output))


def _unsqueezed(flow: Dataflow, name: str, axis: int) -> Node | None:
    """Return ``Unsqueeze`` for a reshape that adds the axis, so that slices stack."""
    node = flow.made_by(name, "Reshape")
    if node is None or node.inputs[0] is None:
        return None
    shape = flow.extents(name)
    without = shape[:axis] + shape[axis + 1 :]
    if shape[axis] != 1 or flow.extents(node.inputs[0]) != without:
        return None
    inputs = (node.inputs[0], integers(flow.graph, [axis]))
    return replace(node, op=Unsqueeze(), inputs=inputs, outputs=(flow.fresh(name),))
