"""Adds window masks to scores whose samples and windows share an axis."""

from dataclasses import replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import Slice
from burn_ir.ops.shape import Concat, Reshape, Shape, Tile
from burn_ir.ops.support import known_dims

#: The most masks that are added.
STEPS = 4


def windows(graph: Graph) -> Graph:
    """Return ``graph`` with window masks added to scores ``[b * w, h, m, n]``.

    The original reshapes scores to ``[b, w, h, m, n]``, adds masks, and reshapes back;
    nothing else reads the values in between. The masks are reshaped instead.
    """
    flow = Dataflow(graph)
    nodes = [new for node in graph.nodes for new in _replacements(flow, node)]
    return with_nodes(graph, nodes)


def _replacements(flow: Dataflow, last: Node) -> list[Node]:
    """Return ``last``, or the additions that replace it and the nodes before."""
    if last.op.onnx != "Reshape":
        return [last]
    out, split = flow.extents(last.output), flow.extents(last.inputs[0])
    if len(out) != 4 or len(split) != 5:
        return [last]
    if split[0] * split[1] != out[0] or split[2:] != out[1:]:
        return [last]
    adds: list[tuple[Node, str]] = []
    name, inner = last.inputs[0], [last]
    for _ in range(STEPS):
        first = flow.made_by(name, "Reshape")
        if first is not None and adds and flow.extents(first.inputs[0]) == out:
            fits = all(_is_per_window(flow, mask, split) for _, mask in adds)
            inside = flow.are_inside([*inner[1:], first], last)
            return _add_masks(flow, first, adds, last) if fits and inside else [last]
        add = flow.made_by(name, "Add")
        sides = None if add is None else _scores_and_mask(flow, add, split)
        if add is None or sides is None:
            return [last]
        name = sides[0]
        adds.append((add, sides[1]))
        inner.append(add)
    return [last]


def _scores_and_mask(
    flow: Dataflow, add: Node, split: tuple[Dim, ...]
) -> tuple[str, str] | None:
    """Return the scores and the mask that a node adds."""
    for scores, mask in (add.inputs, add.inputs[::-1]):
        is_reshaped_sum = flow.made_by(scores, "Add", "Reshape") is not None
        if is_reshaped_sum and scores and mask and flow.extents(scores) == split:
            return scores, mask
    return None


def _is_per_window(flow: Dataflow, mask: str, split: tuple[Dim, ...]) -> bool:
    """Return whether ``mask`` has one matrix per window, for one sample or for all."""
    shape = flow.extents(mask)
    return (
        len(shape) == 5
        and shape[1] == split[1]
        and shape[0] in (1, split[0])
        and all(isinstance(n, int) for n in shape[2:])
        and all(n in (1, d) for n, d in zip(shape[2:], split[2:], strict=True))
    )


def _add_masks(
    flow: Dataflow, first: Node, adds: list[tuple[Node, str]], last: Node
) -> list[Node]:
    nodes: list[Node] = []
    scores = first.inputs[0]
    for add, mask in reversed(adds):
        joined = _without_windows(flow, first, add, mask, nodes)
        output = (
            last.output if add is adds[0][0] else flow.fresh(f"{add.output}.joined")
        )
        nodes.append(replace(add, inputs=(scores, joined), outputs=(output,)))
        scores = output
    return nodes


def _samples(flow: Dataflow, first: Node, node: Node) -> Node:
    """Return ``node`` as the number of samples that the scores are reshaped to.

    It is read from the shape that the file computes, if that has it: a ``Shape`` of the
    scores would read them a second time.
    """
    shape = first.inputs[1]
    dims = known_dims(flow.graph.type(shape))
    if dims is None or dims[0] in (0, -1):
        return replace(node, op=Shape(start=0, end=1), inputs=(first.output,))
    zero, one = (integers(flow.graph, [number]) for number in (0, 1))
    return replace(node, op=Slice(), inputs=(shape, zero, one, zero))


def _without_windows(
    flow: Dataflow, first: Node, add: Node, mask: str, nodes: list[Node]
) -> str:
    """Return the name of ``mask`` with samples and windows in one axis.

    The nodes that compute it are appended to ``nodes``.
    """
    graph, shape = flow.graph, flow.extents(mask)
    numbers = [n for n in shape[2:] if isinstance(n, int)]
    if shape[0] != flow.extents(first.output)[0]:
        count, counts, tiled = (
            flow.fresh(f"{mask}.{part}") for part in ("samples", "counts", "tiled")
        )
        ones = integers(graph, [1] * 4)
        nodes += [
            _samples(flow, first, replace(add, outputs=(count,))),
            replace(add, op=Concat(axis=0), inputs=(count, ones), outputs=(counts,)),
            replace(add, op=Tile(), inputs=(mask, counts), outputs=(tiled,)),
        ]
        mask = tiled
    target, output = integers(graph, [-1, *numbers]), flow.fresh(f"{mask}.joined")
    nodes.append(replace(add, op=Reshape(), inputs=(mask, target), outputs=(output,)))
    return output
