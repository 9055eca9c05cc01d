"""Applies ``nn.Linear`` to a tensor of any rank instead of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from burn_import.passes.shapes.compose_movements import RESHAPES, needs_no_shape
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Linear
from burn_ir.ops.shape import Reshape


def linear_rows(graph: Graph) -> Graph:
    """``graph`` without reshapes that only make rows for ``Linear``.

    ``Linear`` is applied to the last axis, so that what is reshaped to rows before it
    and back behind it can stay as it is: the reshape behind then changes nothing, or
    divides the features. Operands whose features are spread over several axes are
    reshaped once, to the axes that the result has.
    """
    if not any(isinstance(node.op, Linear) for node in graph.nodes):
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.add(node)
    return changed(graph, rewriter.nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    nodes: list[Node] = field(default_factory=list)
    #: The reshape that was made for rows, by the name of the rows and the rank.
    joined: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Append ``node``, or what stands for it."""
        operand = self.operand(node) if isinstance(node.op, Linear) else None
        if operand is not None:
            node = replace(node, inputs=(operand, *node.inputs[1:]))
        self.nodes.append(node)

    def operand(self, node: Node) -> str | None:
        """What ``node`` is to be applied to instead of rows; None if to what it is."""
        rows = self.flow.made_by(node.inputs[0], *RESHAPES)
        if rows is None or rows.inputs[0] is None:
            return None
        x, features = self.flow.extents(rows.inputs[0]), self.flow.extents(rows.output)
        lead = self.lead(node, x) if 0 < len(features) < len(x) else None
        if lead is None or features[:-1] == x[:lead]:
            return None
        if len(x) == lead + 1 and x[lead] == features[-1]:
            return rows.inputs[0]
        return self.reshaped(rows, lead, features[-1])

    def lead(self, node: Node, x: tuple[Dim, ...]) -> int | None:
        """How many of the first axes of ``x`` every reader of ``node`` brings back."""
        readers = self.flow.users.get(node.output, [])
        if not readers or node.output in self.flow.outputs:
            return None
        width = self.flow.extents(node.output)[-1:]
        found = {self.restored(reader, x, width) for reader in readers}
        return found.pop() if len(found) == 1 else None

    def restored(
        self, reader: Node, x: tuple[Dim, ...], width: tuple[Dim, ...]
    ) -> int | None:
        """How many first axes of ``x`` stand before those that ``width`` became."""
        if self.flow.made_by(reader.outputs[0], "Reshape") is None or not width:
            return None
        shape = self.flow.extents(reader.output)
        for count in range(len(x) - 1, 0, -1):
            behind: Dim = 1
            for extent in shape[count:]:
                behind = behind * extent
            if shape[:count] == x[:count] and behind == width[0]:
                fits = needs_no_shape((*x[:count], width[0]), reader, self.flow.graph)
                return count if fits else None
        return None

    def reshaped(self, rows: Node, lead: int, width: Dim) -> str | None:
        """The name of what is ``rows`` with the first axes of their operand."""
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
