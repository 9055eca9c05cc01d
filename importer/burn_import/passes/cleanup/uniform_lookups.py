"""Replaces gathers from a table of equal integers by a filled tensor."""

from dataclasses import dataclass, field, replace

from burn_import.rewriting.arrays import core
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.creation import ConstantOfShape
from burn_ir.ops.shape import Shape
from burn_ir.ops.support import known_dims
from burn_ir.types import Array


def uniform_lookups(graph: Graph) -> Graph:
    """Return ``graph`` with a filled tensor for gathers from equal integers.

    BERT gathers token types by position from a table of zeros that has no other use. An
    index out of range is no error any more. Weights and floating tables are not
    changed.
    """
    if "GatherElements" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.add(node)
    return with_nodes(graph, rewriter.nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """Append ``node`` or its replacement."""
        gather = self.flow.made_by(node.outputs[0], "GatherElements", "Expand")
        if gather is None:
            self.nodes.append(node)
        elif node.op.onnx == "Expand":
            self.nodes.append(self.fill_expanded(node))
        else:
            self.nodes += self.replace_lookup(node)

    def replace_lookup(self, node: Node) -> list[Node]:
        value = self.value(node.inputs[0])
        if value is None or not self.flow.extents(node.inputs[1]):
            return [node]
        name = self.flow.fresh(f"{node.output}.shape")
        shape = replace(node, op=Shape(), inputs=node.inputs[1:2], outputs=(name,))
        fill = ConstantOfShape(value=value)
        return [shape, replace(node, op=fill, inputs=(name,))]

    def fill_expanded(self, node: Node) -> Node:
        """Return the filled tensor for an ``Expand`` of such a gather."""
        gather = self.flow.made_by(node.inputs[0], "GatherElements")
        value = None if gather is None else self.value(gather.inputs[0])
        dims = known_dims(self.flow.graph.type(node.inputs[1]))
        # An extent of 1 in the target shape keeps the operand's extent.
        if gather is None or value is None or dims != self.flow.extents(node.output):
            return node
        scope, classes = common_scope(gather, node)
        op, inputs = ConstantOfShape(value=value), node.inputs[1:]
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)

    def value(self, name: str | None) -> Array | None:
        """Return the element of a constant table of equal integers, with shape [1]."""
        wide = self.flow.made_by(name, "Expand")
        array = self.flow.stored(name if wide is None else wide.inputs[0])
        if array is None or not array.size or array.dtype.kind not in "biu":
            return None
        first = core(array).reshape(-1)[:1]
        return first if (core(array) == first).all() else None
