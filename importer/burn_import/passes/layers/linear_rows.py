"""Applies linear layers to tensors of any rank instead of flattened rows."""

from dataclasses import dataclass, field, replace

from burn_import.passes.shapes.compose_movements import RESHAPES, needs_no_shape
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Conv1D, Linear
from burn_ir.ops.shape import Reshape


def linear_rows(graph: Graph) -> Graph:
    """Return ``graph`` without reshapes that only flatten rows for a linear layer.

    ``Linear`` and ``Conv1D`` apply to the last axis, so leading axes need not be
    flattened before them and restored after them. The reshape after it then changes
    nothing, or splits the features. If the features span several axes of the operand,
    one reshape remains.
    """
    if not any(isinstance(node.op, Linear | Conv1D) for node in graph.nodes):
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.add(node)
    return with_nodes(graph, rewriter.nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    nodes: list[Node] = field(default_factory=list)
    #: The reshape inserted for flattened rows, by their name and leading axes.
    joined: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Append ``node``, with another operand if possible."""
        is_linear = isinstance(node.op, Linear | Conv1D)
        operand = self.operand(node) if is_linear else None
        if operand is not None:
            node = replace(node, inputs=(operand, *node.inputs[1:]))
        self.nodes.append(node)

    def operand(self, node: Node) -> str | None:
        """Return the operand to use instead of flattened rows; None to keep it."""
        rows = self.flow.made_by(node.inputs[0], *RESHAPES)
        if rows is None or rows.inputs[0] is None:
            return None
        x, features = self.flow.extents(rows.inputs[0]), self.flow.extents(rows.output)
        lead = self.count_restored_axes(node, x) if 0 < len(features) < len(x) else None
        if lead is None or features[:-1] == x[:lead]:
            return None
        if len(x) == lead + 1 and x[lead] == features[-1]:
            return rows.inputs[0]
        return self.reshape_rows(rows, lead, features[-1])

    def count_restored_axes(self, node: Node, x: tuple[Dim, ...]) -> int | None:
        """Count the leading axes of ``x`` that every reader of ``node`` restores."""
        readers = self.flow.users.get(node.output, [])
        if not readers or node.output in self.flow.outputs:
            return None
        width = self.flow.extents(node.output)[-1:]
        leading_axes = {
            self.count_axes_restored_by(reader, x, width) for reader in readers
        }
        return leading_axes.pop() if len(leading_axes) == 1 else None

    def count_axes_restored_by(
        self, reader: Node, x: tuple[Dim, ...], width: tuple[Dim, ...]
    ) -> int | None:
        """Count the leading axes of ``x`` before those that ``width`` flattens."""
        if self.flow.made_by(reader.outputs[0], "Reshape") is None or not width:
            return None
        shape = self.flow.extents(reader.output)
        for count in range(len(x) - 1, 0, -1):
            trailing: Dim = 1
            for extent in shape[count:]:
                trailing = trailing * extent
            if shape[:count] == x[:count] and trailing == width[0]:
                fits = needs_no_shape((*x[:count], width[0]), reader, self.flow.graph)
                return count if fits else None
        return None

    def reshape_rows(self, rows: Node, lead: int, width: Dim) -> str | None:
        """Return the rows reshaped to the leading axes of their operand."""
        if not isinstance(width, int) or width == 0:
            return None
        key = (rows.output, lead)
        if key not in self.joined:
            name = self.flow.fresh(f"{rows.output}.features")
            shape = integers(self.flow.graph, [0] * lead + [width])
            inputs = (rows.inputs[0], shape)
            self.nodes.append(
                replace(rows, op=Reshape(), inputs=inputs, outputs=(name,))
            )
            self.joined[key] = name
        return self.joined[key]
