"""Splits an axis before a transpose instead of after it."""

from dataclasses import replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Reshape, Transpose


def splits(graph: Graph) -> Graph:
    """Return ``graph`` with one reshape for two around a transpose, the second a split.

    ``nn.MultiheadAttention`` has samples and heads in one axis until the sequence axis
    is moved: ``reshape(s, b * h, d).transpose(0, 1).reshape(b, h, s, d)``. The values
    in between must have no other readers.
    """
    if not graph.operators >= {"Reshape", "Transpose"}:
        return graph
    flow = Dataflow(graph)
    return with_nodes(
        graph, [new for node in graph.nodes for new in _move_split(flow, node)]
    )


def _move_split(flow: Dataflow, last: Node) -> list[Node]:
    """Return ``last``, or the reshape and transpose that replace it."""
    if last.op.domain or last.op.onnx != "Reshape":
        return [last]
    turn = flow.made_by(last.inputs[0], "Transpose")
    first = None if turn is None else flow.made_by(turn.inputs[0], "Reshape")
    perm = None if turn is None else turn.op.attrs()["perm"]
    if turn is None or first is None or perm is None:
        return [last]
    axis = _axis(flow.extents(turn.output), flow.extents(last.output))
    if axis is None or not flow.are_inside([first, turn], last):
        return [last]
    halves = flow.extents(last.output)[axis : axis + 2]
    target = _target(flow, first.output, perm[axis], halves)
    if target is None:
        return [last]
    split = flow.fresh(f"{first.output}.split")
    inputs = (first.output, target)
    op = Transpose(perm=_split_permutation(perm, axis))
    return [
        replace(first, op=Reshape(), inputs=inputs, outputs=(split,)),
        replace(turn, op=op, inputs=(split,), outputs=last.outputs),
    ]


def _axis(whole: tuple[Dim, ...], split: tuple[Dim, ...]) -> int | None:
    """Return the axis of ``whole`` that is split in two in ``split``."""
    if len(split) != len(whole) + 1:
        return None
    for axis, extent in enumerate(whole):
        around = whole[:axis] == split[:axis] and whole[axis + 1 :] == split[axis + 2 :]
        if around and split[axis] * split[axis + 1] == extent and 1 not in split:
            return axis
    return None


def _target(
    flow: Dataflow, name: str, axis: int, halves: tuple[Dim, ...]
) -> str | None:
    """Return the shape of ``name`` with one axis split, as a constant."""
    shape = flow.extents(name)
    target = [*shape[:axis], *halves, *shape[axis + 1 :]]
    # A 0 copies the extent of the same axis, so it must be before the split.
    zeros = [
        0 if n < axis and not isinstance(d, int) else d for n, d in enumerate(target)
    ]
    numbers = [d if isinstance(d, int) else -1 for d in zeros]
    return integers(flow.graph, numbers) if numbers.count(-1) < 2 else None


def _split_permutation(perm: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return ``perm`` for an operand with the source of ``axis`` split in two."""
    source = perm[axis]
    moved = [[n + (n > source)] for n in perm]
    moved[axis] = [source, source + 1]
    return tuple(n for group in moved for n in group)
