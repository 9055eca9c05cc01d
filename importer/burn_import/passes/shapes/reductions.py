"""Removes axes of extent 1 before and after reductions, or keeps them."""

from dataclasses import dataclass, field, replace
from math import prod

from burn.dtypes import float32, float64
from burn_import.passes.shapes.compose_movements import RESHAPES
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.reduction import ReduceMean
from burn_ir.ops.support import known_ints

#: Reductions whose axes are an operand.
REDUCTIONS = frozenset(
    {
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    }
)
#: Relative errors of a number that is rounded to a dtype.
ROUNDING = {float32: 2e-7, float64: 1e-15}
#: Reductions that leave an axis of extent 1 unchanged.
TRIVIAL = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"})


def reductions(graph: Graph) -> Graph:
    """Return ``graph`` with reductions that drop axes instead of a later removal.

    One that drops axes which are inserted again keeps them. Axes that are inserted only
    to be reduced are removed too. Global pooling followed
    by flattening becomes a mean, as does a sum divided by its number of elements. If
    the two nodes are in different modules, they stay. First nodes of pairs become dead
    code, unless their shapes are read.
    """
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
        name = node.inputs[0] if node.inputs else None
        first = None if name is None else self.flow.producers.get(name)
        new = None if first is None else self.merge(first, node)
        if new is not None:
            self.flow.producers[new.output] = new
        self.nodes.append(node if new is None else new)

    def merge(self, first: Node, node: Node) -> Node | None:
        """Return the reduction equivalent to ``first`` then ``node``, else None."""
        if node.op.domain or first.op.domain:
            return None
        if not self.flow.are_inside((first,), node):
            return None
        if first.op.onnx == "ReduceSum" and node.op.onnx in ("Mul", "Div"):
            return self.mean(first, node)
        if first.op.onnx == "Unsqueeze" and node.op.onnx in TRIVIAL:
            return self.without_new_axes(first, node)
        if first.op.onnx in REDUCTIONS and not first.op.attrs()["keepdims"]:
            return self.with_kept_axes(first, node)
        if node.op.onnx in RESHAPES and node.op.onnx != "Unsqueeze":
            return self.without_kept_axes(first, node)
        return None

    def mean(self, first: Node, node: Node) -> Node | None:
        """Return the mean that a sum divided by the number of its elements is."""
        name, factor = self.flow.factor(node)
        shape, t = self.flow.extents(first.inputs[0]), self.flow.graph.type(node.output)
        axes = self.axes_operand(first, len(shape))
        counts = [shape[axis] for axis in axes or ()]
        fixed = [n for n in counts if isinstance(n, int)]
        if name != first.output or not axes or len(fixed) < len(counts) or t is None:
            return None
        error = ROUNDING.get(t.dtype)
        if error is None or abs(factor * prod(fixed) - 1) > error:
            return None
        op = ReduceMean(keepdims=first.op.attrs()["keepdims"])
        scope, classes = common_scope(first, node)
        return replace(node, op=op, inputs=first.inputs, scope=scope, classes=classes)

    def with_kept_axes(self, first: Node, node: Node) -> Node | None:
        shape = self.flow.extents(first.inputs[0])
        axes = self.axes_operand(first, len(shape))
        if axes is None or node.op.onnx not in RESHAPES or first.scope != node.scope:
            return None
        kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
        if self.flow.extents(node.output) != kept:
            return None
        return replace(node, op=first.op.with_attrs(keepdims=1), inputs=first.inputs)

    def without_kept_axes(self, first: Node, node: Node) -> Node | None:
        axes = self.axes(first)
        if axes is None or not _are_neighbors(first, node):
            return None
        shape = self.flow.extents(first.output)
        left = tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
        if not left or self.flow.extents(node.output) != left:
            return None
        op: Op = ReduceMean(keepdims=0)
        if first.op.onnx != "GlobalAveragePool":
            op = first.op.with_attrs(keepdims=0)
        scope, classes = common_scope(first, node)
        if not node.scope:  # without scope
            scope, classes = first.scope, first.classes
        inputs = (first.inputs[0], integers(self.flow.graph, axes))
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)

    def axes(self, node: Node) -> list[int] | None:
        """Return the axes that ``node`` reduces with ``keepdims``; else None."""
        rank = len(self.flow.extents(node.inputs[0]))
        if node.op.onnx == "GlobalAveragePool" and rank > 2:
            return list(range(2, rank))
        if node.op.onnx not in REDUCTIONS or not node.op.attrs()["keepdims"]:
            return None
        return self.axes_operand(node, rank)

    def axes_operand(self, node: Node, rank: int) -> list[int] | None:
        """Return the axes operand of a node, sorted; None if unknown or empty."""
        if len(node.inputs) < 2 or not rank:
            return None
        axes = known_ints(self.flow.graph.type(node.inputs[1]))
        return sorted(axis % rank for axis in axes) if axes else None

    def without_new_axes(self, first: Node, node: Node) -> Node | None:
        shape = self.flow.extents(first.output)
        new, axes = self.axes_operand(first, len(shape)), self.axes_operand(
            node, len(shape)
        )
        if new is None or axes is None or node.op.attrs()["keepdims"]:
            return None
        before = [axis for axis in range(len(shape)) if axis not in new]
        left = [before.index(axis) for axis in axes if axis not in new]
        if not set(new) <= set(axes) or not left:
            return None
        inputs = (first.inputs[0], integers(self.flow.graph, left))
        return replace(node, inputs=inputs)


def _are_neighbors(first: Node, node: Node) -> bool:
    """Return whether nodes are of one module, of it and a child, or of siblings."""
    a, b = first.scope, node.scope
    if not a or not b:
        return True
    return a == b or a[:-1] == b or (a[:-1] == b[:-1] and len(a) > 1)
