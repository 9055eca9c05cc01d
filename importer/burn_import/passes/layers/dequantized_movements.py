"""Moves dequantized numbers in place of quantized ones, which are dequantized later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from burn import dtypes
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.quantize import DequantizeLinear
from burn_ir.ops.shape import Identity

#: What onnxruntime's quantizer appends to the names of dequantized values.
_FLOAT = "_DequantizeLinear_Output"
#: Operators whose results are elements of their first operand.
MOVEMENTS = frozenset(
    {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Expand"}
    | {"Slice", "Split", "Gather", "GatherElements", "GatherND", "Tile"}
    | {"DepthToSpace", "SpaceToDepth", "MaxPool", "GlobalMaxPool", "Concat"}
)
#: The names of a scale and a zero point.
Numbers: TypeAlias = tuple[str | None, ...]


def dequantized_movements(graph: Graph) -> Graph:
    """Return ``graph`` with data movement behind dequantizers instead of before them.

    ``QuantizeLinear``, movement, ``DequantizeLinear`` become ``QuantizeLinear``,
    ``DequantizeLinear``, movement, if nothing else reads the integers and all have the
    same stored scale and zero point, of one element. ``MaxPool`` and concatenation
    count as movement. Values are bit-identical.
    """
    if not graph.operators >= {"QuantizeLinear", "DequantizeLinear"}:
        return graph
    flow = Dataflow(graph)
    numbers = _quantized_values(flow)
    mover = _Mover(flow, numbers, _dequantized_later(flow, numbers))
    if not mover.later:
        return graph
    return with_nodes(graph, [new for n in graph.nodes for new in mover.moved(n)])


def _quantized_values(flow: Dataflow) -> dict[str, Numbers]:
    """Return scale and zero point of quantized values and of their movements."""
    numbers: dict[str, Numbers] = {}
    for node in flow.graph.nodes:
        if not node.inputs:
            continue
        if node.op.onnx == "QuantizeLinear" and _is_plain(node, flow):
            numbers[node.output] = node.inputs[1:]
        elif _is_movement(node, numbers):
            own = numbers[str(node.inputs[0])]
            numbers.update({name: own for name in node.outputs if name})
    return numbers


def _is_plain(node: Node, flow: Dataflow) -> bool:
    """Return whether a quantizer of float32 has one stored scale and zero point.

    The scale is positive, so that the order of numbers stays.
    """
    arrays = [flow.stored(name) for name in node.inputs[1:] if name is not None]
    t = flow.graph.type(node.inputs[0])
    if node.op.domain or t is None or t.dtype != dtypes.float32:
        return False
    if not all(array is not None and array.size == 1 for array in arrays):
        return False
    scale = arrays[0]
    if scale is None or scale.dtype != dtypes.float32:
        return False
    return bool((scale > 0).all())


def _is_movement(node: Node, numbers: Mapping[str, Numbers]) -> bool:
    """Return whether a node moves elements of one scale and zero point."""
    if node.op.domain or node.op.onnx not in MOVEMENTS:
        return False
    if node.op.onnx.endswith("Pool") and len([n for n in node.outputs if n]) > 1:
        return False  # indices are of integers
    data = node.inputs if node.op.onnx == "Concat" else node.inputs[:1]
    scalings = {numbers.get(name or "") for name in data}
    return len(scalings) == 1 and None not in scalings


def _dequantized_later(flow: Dataflow, numbers: Mapping[str, Numbers]) -> set[str]:
    """Return the results of movement that only dequantizers read, in the end."""
    later: set[str] = set()
    for node in reversed(flow.graph.nodes):
        if not node.inputs or not _is_movement(node, numbers):
            continue
        names = [name for name in node.outputs if name]
        own = numbers[names[0]]
        if all(_is_read_as_float(name, flow, own, later) for name in names):
            later.update(names)
    return later


def _is_read_as_float(
    name: str, flow: Dataflow, numbers: Numbers, later: set[str]
) -> bool:
    """Return whether all readers of ``name`` dequantize it, perhaps after movement.

    The shape may be read as well.
    """
    readers = flow.users.get(name, ())
    if name in flow.outputs or not readers:
        return False
    for node in readers:
        is_dequantizer = node.op.onnx == "DequantizeLinear" and not node.op.domain
        if is_dequantizer and node.inputs == (name, *numbers):
            continue
        if node.op.onnx == "Shape" and not node.op.domain:
            continue
        if not later.issuperset(filter(None, node.outputs)):
            return False
    return True


@dataclass
class _Mover:
    flow: Dataflow
    numbers: Mapping[str, Numbers]
    later: set[str]
    #: Dequantized values by the name of the quantized ones.
    floats: dict[str, str] = field(default_factory=dict)

    def moved(self, node: Node) -> list[Node]:
        """Return the nodes for ``node``, with movement of dequantized values."""
        if self.later.isdisjoint(filter(None, node.outputs)):
            return [self.reader(node)]
        nodes: list[Node] = []
        count = len(node.inputs) if node.op.onnx == "Concat" else 1
        data = tuple(self.dequantized(name, nodes) for name in node.inputs[:count])
        outputs = [name and self.flow.fresh(f"{name}{_FLOAT}") for name in node.outputs]
        pairs = zip(node.outputs, outputs, strict=True)
        self.floats.update({old: new for old, new in pairs if old and new})
        inputs = data + node.inputs[count:]
        return [*nodes, replace(node, inputs=inputs, outputs=tuple(outputs))]

    def reader(self, node: Node) -> Node:
        """Return a node that reads dequantized values instead of quantized ones."""
        name = self.floats.get(node.inputs[0] or "") if node.inputs else None
        if name is None or node.op.domain:
            return node
        if node.op.onnx == "Shape":
            return replace(node, inputs=(name,))
        is_dequantizer = node.op.onnx == "DequantizeLinear"
        if is_dequantizer and node.inputs[1:] == self.numbers[str(node.inputs[0])]:
            return node.with_op(Identity(), (name,))
        return node

    def dequantized(self, name: str | None, nodes: list[Node]) -> str:
        """Return the dequantized ``name``; its node is appended to ``nodes``."""
        assert name is not None
        if name not in self.floats:
            self.floats[name] = self.flow.fresh(f"{name}{_FLOAT}")
            producer = self.flow.producers[name]
            inputs = (name, *self.numbers[name])
            outputs = (self.floats[name],)
            nodes.append(
                replace(producer, op=DequantizeLinear(), inputs=inputs, outputs=outputs)
            )
        return self.floats[name]
