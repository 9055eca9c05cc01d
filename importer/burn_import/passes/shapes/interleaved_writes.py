"""Stacks tensors that are written to every second row of another one.

Rotary embeddings fill a tensor in place, ``y[..., 0::2] = a`` and ``y[..., 1::2] = b``,
which PyTorch exports as scatters of rows between transposes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from burn_import.passes.shapes.affine_indices import ramp_of_array
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Concat, Reshape, Transpose, Unsqueeze

#: Maximum distance of rows; each result is followed back to so many writes and as many
#: that later ones replace.
MOST_ROWS = 64


@dataclass(frozen=True)
class StridedWrite:
    """``result[start::step] = update`` in a copy of ``base``."""

    base: str
    start: int
    step: int
    update: str
    node: Node


def interleaved_writes(graph: Graph) -> Graph:
    """Return ``graph`` with a stack for scatters that write every row of a tensor.

    The tensor that they write to does not matter then. A transpose of all updates comes
    behind the stack, where the transpose that restores the axes follows it.
    """
    if "ScatterND" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    writes = dict(_strided_writes(graph, flow))
    nodes: list[Node] = []
    for node in graph.nodes:
        is_write = node.outputs[0] in writes
        nodes += (_stacked(flow, writes, node) if is_write else []) or [node]
    return with_nodes(graph, nodes)


def _strided_writes(graph: Graph, flow: Dataflow) -> Iterator[tuple[str, StridedWrite]]:
    """Yield the results of scatters that replace rows at one distance."""
    for node in graph.nodes:
        if node.op.domain or node.op.onnx != "ScatterND":
            continue
        base, indices, update = node.inputs
        rows = flow.stored(indices)
        extents = flow.extents(base)
        if base is None or update is None or rows is None or not extents:
            continue
        if (
            rows.ndim != 2
            or rows.shape[1] != 1
            or node.op.attrs()["reduction"] != "none"
        ):
            continue
        ramp = ramp_of_array(rows[:, 0])
        if ramp is None or len(ramp.steps) != 1 or not isinstance(ramp.offset, int):
            continue
        start, step = ramp.offset, ramp.steps[0]
        if not isinstance(step, int):
            continue
        is_strided = 0 <= start < step and 1 < step <= MOST_ROWS
        if is_strided and extents[0] == step * len(rows):
            yield node.output, StridedWrite(base, start, step, update, node)


def _stacked(flow: Dataflow, writes: dict[str, StridedWrite], last: Node) -> list[Node]:
    """Return the nodes that replace the last of several writes; none if rows stay."""
    chain = _chain(writes, last.output)
    updates = {write.start: write.update for write in reversed(chain)}
    if len(updates) < chain[0].step:
        return []
    sources, order = _sources(flow, [updates[row] for row in sorted(updates)])
    if not order:
        return []  # the rank of the updates is not known
    axis, extents = order[0], flow.extents(sources[0])
    rows = flow.extents(last.output)[0]
    shape = [extent if isinstance(extent, int) else 0 for extent in extents]
    if (
        0 in shape[axis + 1 :]
        or not isinstance(rows, int)
        or len(extents) != len(order)
    ):
        return []
    shape[axis] = rows
    scope, classes = common_scope(*(write.node for write in reversed(chain)))
    first = replace(last, scope=scope, classes=classes)
    return _stack(flow, first, sources, order, shape)


def _chain(writes: dict[str, StridedWrite], last: str) -> list[StridedWrite]:
    """Return the writes that lead to ``last``, which comes first, up to all rows."""
    chain, rows = [writes[last]], {writes[last].start}
    step = chain[0].step
    while len(rows) < step and len(chain) < 2 * step:
        write = writes.get(chain[-1].base)
        if write is None or write.step != step:
            break
        chain.append(write)
        rows.add(write.start)
    return chain


def _stack(
    flow: Dataflow,
    like: Node,
    sources: Sequence[str],
    order: Sequence[int],
    shape: list[int],
) -> list[Node]:
    """Return nodes that stack ``sources`` behind their first axis in ``order``."""
    axis = order[0]
    nodes = []
    for source in sources:
        inputs = (source, integers(flow.graph, [axis + 1]))
        outputs = (flow.fresh(source),)
        nodes.append(replace(like, op=Unsqueeze(), inputs=inputs, outputs=outputs))
    pieces = tuple(node.output for node in nodes)
    stack = Concat(axis=axis + 1)
    joined = replace(like, op=stack, inputs=pieces, outputs=(flow.fresh(like.output),))
    target = (joined.output, integers(flow.graph, shape))
    rows_name = (flow.fresh(like.output),)
    merged = replace(like, op=Reshape(), inputs=target, outputs=rows_name)
    back = Transpose(perm=tuple(order))
    return [*nodes, joined, merged, replace(like, op=back, inputs=merged.outputs)]


def _sources(
    flow: Dataflow, updates: Sequence[str]
) -> tuple[Sequence[str], tuple[int, ...]]:
    """Return what is transposed to all updates, and the order of the transpose."""
    movers = [flow.made_by(update, "Transpose") for update in updates]
    orders = {None if node is None else node.op.attrs()["perm"] for node in movers}
    order = orders.pop()
    if orders or order is None:
        return updates, tuple(range(len(flow.extents(updates[0]))))
    return [node.inputs[0] or "" for node in movers if node is not None], tuple(order)
