"""Expands operators on quantized tensors to a float operator between quantizers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from burn import dtypes
from burn_import.passes.layers.quantized_operators import (
    EXPANSIONS,
    FloatOperator,
    Quantized,
    float_operator,
)
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes, without_trailing
from burn_ir.graph import Graph, Node
from burn_ir.ops.quantize import DequantizeLinear, QuantizeLinear
from burn_ir.ops.support import ELEMENT_NUMBERS


def expand_quantized_operators(graph: Graph) -> Graph:
    """Return ``graph`` with dequantizers, a float operator and a quantizer for each.

    ``QLinearConv``, ``QLinearMatMul``, ``QGemm``, ``QLinearAdd`` and others
    (``EXPANSIONS``) are defined by this form, in which later passes recover layers,
    norms and attention. Scales and zero points are stored. Results are equal except
    where float32 rounds a quotient across a tie, about one in 100 000, by one step;
    nodes whose scales cause frequent ties stay.
    """
    if graph.operators.isdisjoint(EXPANSIONS):
        return graph
    expander = _Expander(Dataflow(graph))
    return with_nodes(
        graph, [new for node in graph.nodes for new in expander.expanded(node)]
    )


@dataclass
class _Expander:
    flow: Dataflow
    #: Dequantized values by their quantized operand.
    floats: dict[Quantized, str] = field(default_factory=dict)

    def expanded(self, node: Node) -> list[Node]:
        """Return the nodes that ``node`` stands for; itself if it stays."""
        new = float_operator(self.flow, node)
        if new is None:
            return [node]
        nodes: list[Node] = []
        inputs = tuple(
            (
                self.dequantized(operand, node, nodes)
                if isinstance(operand, Quantized)
                else operand
            )
            for operand in new.operands
        )
        middle = replace(node, op=new.op, inputs=without_trailing(inputs))
        if new.scale is None:
            return [*nodes, middle]
        name = self.flow.fresh(f"{_stem(node.output)}_QuantizeLinear_Input")
        return [
            *nodes,
            replace(middle, outputs=(name,)),
            self.quantizer(node, new, name),
        ]

    def dequantized(self, operand: Quantized, node: Node, nodes: list[Node]) -> str:
        """Return the dequantized ``operand``; its node is appended to ``nodes``."""
        if operand in self.floats:
            return self.floats[operand]
        name = self.flow.fresh(self.float_name(operand.name))
        self.floats[operand] = name
        inputs = (operand.name, operand.scale, operand.zero_point)
        op = DequantizeLinear(axis=operand.axis)
        new = replace(node, op=op, inputs=without_trailing(inputs), outputs=(name,))
        producer = self.flow.producers.get(operand.name)
        if producer is not None:
            new = replace(new, scope=producer.scope, classes=producer.classes)
        nodes.append(new)
        return name

    def float_name(self, name: str) -> str:
        """Return a name for a dequantized operand; of a stored one it is the key."""
        if self.flow.stored(name) is None:
            return f"{_stem(name)}_DequantizeLinear_Output"
        return _stem(name) if name != _stem(name) else f"{name}_float"

    def quantizer(self, node: Node, new: FloatOperator, name: str) -> Node:
        """Return the node that quantizes ``name`` as the result of ``node``."""
        dtype = self.flow.graph.types[node.output].dtype
        options = {}
        if new.zero_point is None and dtype != dtypes.uint8:
            options["output_dtype"] = ELEMENT_NUMBERS[dtype]
        inputs = without_trailing((name, new.scale, new.zero_point))
        return replace(node, op=QuantizeLinear(**options), inputs=inputs)


def _stem(name: str) -> str:
    """Return the name that a value had before onnxruntime's quantizer."""
    return name.removesuffix("_quantized")
