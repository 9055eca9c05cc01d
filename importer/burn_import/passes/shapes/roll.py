"""Recovers ``roll`` from the concatenation of two slices."""

from dataclasses import dataclass, field, replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Roll
from burn_ir.ops.support import known_ints


def roll(graph: Graph) -> Graph:
    """Return ``graph`` with ``Roll`` for ``concat([x[n:], x[:n]])`` along one axis.

    Consecutive rolls along several axes become one. The extent must be known: for ``n``
    beyond it the slices are the operand and nothing.
    """
    if "Concat" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    return with_nodes(graph, [rewriter.rewrite(node) for node in graph.nodes])


@dataclass
class _Rewriter:
    flow: Dataflow
    #: The rolls found so far, by their results.
    rolls: dict[str, Node] = field(default_factory=dict)

    def rewrite(self, node: Node) -> Node:
        """Return ``node``, or the ``Roll`` that replaces it."""
        if isinstance(node.op, Roll):
            self.rolls[node.output] = node
        if node.op.domain or node.op.onnx != "Concat" or len(node.inputs) != 2:
            return node
        parts = [self.flow.made_by(name, "Slice") for name in node.inputs]
        tail, head = parts
        if tail is None or head is None or tail.inputs[0] != head.inputs[0]:
            return node
        shift = self.roll_shift(node, tail, head)
        if shift is None or not self.flow.are_inside((tail, head), node):
            return node
        new = self.merge_rolls(node, (tail, head), *shift)
        self.rolls[node.output] = new
        return new

    def roll_shift(self, node: Node, tail: Node, head: Node) -> tuple[int, int] | None:
        """Return the shift and the axis of a roll; None if it is none."""
        shape = self.flow.extents(tail.inputs[0])
        last, first = self.slice_bounds(tail), self.slice_bounds(head)
        if last is None or first is None or not shape:
            return None
        axis = node.op.attrs()["axis"] % len(shape)
        extent = shape[axis]
        if not isinstance(extent, int) or last[0] != axis or first[0] != axis:
            return None
        (start, end), (begin, middle) = last[1:], first[1:]
        if (begin, end) != (0, extent) or start != middle or not 0 < start < extent:
            return None
        return (-start if 2 * start <= extent else extent - start), axis

    def slice_bounds(self, node: Node) -> tuple[int, int, int] | None:
        """Return the axis, begin and end of a slice of one axis."""
        shape, operands = self.flow.extents(node.inputs[0]), (*node.inputs, None)[1:5]
        starts, ends, axes = (
            known_ints(self.flow.graph.type(name)) for name in operands[:3]
        )
        if starts is None or ends is None or axes is None or len(axes) != 1:
            return None
        steps = known_ints(self.flow.graph.type(operands[3]))
        if operands[3] is not None and steps != (1,):
            return None
        axis = axes[0] % len(shape)
        extent = shape[axis]
        if not isinstance(extent, int):
            return None
        return axis, *slice(starts[0], ends[0]).indices(extent)[:2]

    def merge_rolls(
        self, node: Node, parts: tuple[Node, ...], shift: int, axis: int
    ) -> Node:
        """Return the ``Roll`` for ``node``, merged with that of its operand."""
        x = parts[0].inputs[0]
        before = None if x is None else self.rolls.get(x)
        scope, classes = common_scope(*parts, node)
        op, inputs = Roll(shifts=(shift,), axes=(axis,)), parts[0].inputs[:1]
        if before is not None and isinstance(before.op, Roll):
            alone = x not in self.flow.outputs and len(self.flow.users[str(x)]) == 2
            if alone and axis not in before.op.axes:
                shifts, axes = (*before.op.shifts, shift), (*before.op.axes, axis)
                op, inputs = Roll(shifts=shifts, axes=axes), before.inputs
                scope, classes = common_scope(before, *parts, node)
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)
