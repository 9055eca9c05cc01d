"""Replaces lookups in a table of equal integers by that integer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from burn_import.rewriting.arrays import core
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed, common_scope
from burn_ir.graph import Graph, Node
from burn_ir.ops.creation import ConstantOfShape
from burn_ir.ops.shape import Shape
from burn_ir.ops.support import known_dims
from burn_ir.types import Array


def uniform_lookups(graph: Graph) -> Graph:
    """``graph`` with a filled tensor for ``GatherElements`` from equal integers.

    BERT looks up the types of its tokens by position in a table of zeros, which it
    needs nowhere else. An index that is out of range is no error any more. Weights, and
    tables of any floating type, stay what they are.
    """
    if "GatherElements" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.add(node)
    return changed(graph, rewriter.nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """Append ``node``, or what stands for it."""
        looked = self.flow.made_by(node.outputs[0], "GatherElements", "Expand")
        if looked is None:
            self.nodes.append(node)
        elif node.op.onnx == "Expand":
            self.nodes.append(self.filled(node))
        else:
            self.nodes += self.looked_up(node)

    def looked_up(self, node: Node) -> list[Node]:
        value = self.value(node.inputs[0])
        if value is None or not self.flow.extents(node.inputs[1]):
            return [node]
        name = self.flow.fresh(f"{node.output}.shape")
        shape = replace(node, op=Shape(), inputs=node.inputs[1:2], outputs=(name,))
        fill = ConstantOfShape(value=value)
        return [shape, replace(node, op=fill, inputs=(name,))]

    def filled(self, node: Node) -> Node:
        """``Expand`` of what is looked up, as a tensor that is filled at once."""
        looked = self.flow.made_by(node.inputs[0], "GatherElements")
        value = None if looked is None else self.value(looked.inputs[0])
        dims = known_dims(self.flow.graph.type(node.inputs[1]))
        # An extent of 1 that is asked for leaves that of the operand.
        if looked is None or value is None or dims != self.flow.extents(node.output):
            return node
        scope, classes = common_scope(looked, node)
        op, inputs = ConstantOfShape(value=value), node.inputs[1:]
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)

    def value(self, name: str | None) -> Array | None:
        """The element of a stored table of equal integers, with one axis."""
        wide = self.flow.made_by(name, "Expand")
        array = self.flow.stored(name if wide is None else wide.inputs[0])
        if array is None or not array.size or array.dtype.kind not in "biu":
            return None
        first = core(array).reshape(-1)[:1]
        return first if (core(array) == first).all() else None
