"""Constant folding: evaluates nodes whose operands are constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn.dtypes import bool_, is_float
from burn_import.passes.cleanup.folding_cost import VALUE_BYTES, Budget, may_copy
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.weight_owners import is_authored
from burn_import.rewriting.arrays import (
    allocated_bytes,
    are_identical,
    origins,
    same_view,
)
from burn_import.rewriting.graphs import rename, value_names
from burn_import.rewriting.pattern import stands_for
from burn_ir.containers import MapType, OptionalType, SequenceType
from burn_ir.error_context import OR_MISSING, error_context
from burn_ir.evaluate import run_node
from burn_ir.graph import Graph, Node
from burn_ir.types import Array, Type

#: Operators that dequantize: as nodes they keep the stored weights small. Arrays of at
#: most ``FEW`` elements are folded anyway.
WIDENING = frozenset({"Cast", "DequantizeLinear"})
FEW = 8
#: Operators of dequantized arrays that are folded as well: no layer has these in
#: integers, and other operands of the same kind may be floats.
ELEMENTWISE = frozenset(
    {"Add", "Concat", "Div", "Expand", "Mul", "PRelu", "Sub", "Where"}
    | {"BatchNormalization", "GroupNormalization", "InstanceNormalization"}
    | {"LayerNormalization", "RMSNormalization"}
)
#: What quantizers append to the name of an array.
QUANTIZED = "_quantized"
#: Operators that scale features by a weight.
SCALING = frozenset({"LayerNormalization", "Mul", "RMSNormalization"})
#: Operators whose results are views of the operand, or broadcasts of one element.
VIEWS = frozenset(
    {
        "ConstantOfShape",
        "Expand",
        "Flatten",
        "Identity",
        "Reshape",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)
#: Operators that change only the form of an array, in which a layer may store it.
FORMS = frozenset(
    {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
#: Operators that generate arrays from a few numbers. They stay nodes: a folded one
#: would be taken for a trainable weight.
FORMULAS = frozenset(
    {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"}
)


def fold_constants(graph: Graph) -> Graph:
    """Return ``graph`` with constant nodes replaced by stored results.

    Folded are deterministic nodes without bodies whose operands are all constants, and
    integer results that shape inference knows. Not folded are results that need too
    much memory, layers (which keep their weights), computations with an author's
    floating tensors, dequantization, ``weight + 1`` in norms, and nodes that fail: they
    fail when the model runs, if they run. Window functions and filter banks stay nodes.
    """
    folding = _Folding(graph)
    nodes = [node for node in graph.nodes if not folding.fold(node)]
    if len(nodes) == len(graph.nodes):
        return graph
    return rename(graph.with_nodes(nodes), folding.aliases)


class _Folding:
    """The state of one run over a graph: constants, aliases, and budget."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = graph.constants
        self.values = value_names(graph)
        self.aliases: dict[str, str] = {}
        self.budget = Budget(graph)

    def fold(self, node: Node) -> bool:
        """Fold ``node`` if possible; return whether it became constants."""
        operands = self.operands(node)
        if operands is None:
            contents = self.inferred_contents(node)
            if contents is not None:
                self.store(node, contents, None, literal=True)
            return contents is not None
        if not self.may_fold(node, operands):
            return False
        results = self.compute(node, operands)
        if results is None:
            return False
        same = self.same_view(operands, results)
        if same is not None:
            return self.alias(node, same)
        weights = self.source_weights(node, operands)
        source = weights[0] if len(weights) == 1 else None
        if node.op.onnx == "DequantizeLinear" and self.store_dequantized(node, results):
            return True
        self.store(node, results, source, literal=not weights)
        self.record_recipe(node, operands)
        return True

    def inferred_contents(self, node: Node) -> list[Array] | None:
        """Return the results if inference knows all of them as integers."""
        if not node.op.deterministic or all(n is None for n in node.outputs):
            return None
        results = []
        for name in node.outputs:
            contents = None if name is None else self.graph.types[name].known
            if name is not None and (
                contents is None or contents.dtype.kind not in "biu"
            ):
                return None
            results.append(np.zeros(0) if contents is None else contents)
        return results

    def operands(self, node: Node) -> list[str | None] | None:
        """Return the resolved operand names; None if one is no constant."""
        names: list[str | None] = []
        for name in node.inputs:
            now = None if name is None else self.aliases.get(name, name)
            if now is not None and (now in self.values or now not in self.constants):
                return None
            names.append(now)
        return names

    def may_fold(self, node: Node, operands: list[str | None]) -> bool:
        if not node.op.deterministic or node.op.bodies():
            return False
        if node.op.onnx in FORMULAS:
            return False
        if self.is_layer(node, operands) or self.dequantizes(node, operands):
            return False
        return not (self.is_gain(node, operands) or self.trains(node, operands))

    def trains(self, node: Node, operands: list[str | None]) -> bool:
        """Return whether the node computes with a floating tensor of the author's."""
        if node.op.onnx in FORMS:
            return False
        names = [n for n in operands if n is not None]
        floats = [n for n in names if is_float(self.constants[n].dtype)]
        return any(is_authored(self.graph, name) for name in floats)

    def is_gain(self, node: Node, operands: list[str | None]) -> bool:
        """Return whether the node adds 1 to a weight that scales features (Gemma).

        The trainable parameter, and the entry of the record, is the weight and not the
        sum.
        """
        if node.op.onnx != "Add" or node.op.domain:
            return False
        users = self.graph.users.get(node.output, [])
        scales = all(user.op.onnx in SCALING for user in users)
        if not users or not scales or node.output in self.graph.outputs:
            return False
        for one, weight in (operands, operands[::-1]):
            if one is None or weight is None or self.is_literal(weight):
                continue
            stored = self.constants[weight]
            if is_float(stored.dtype) and stored.ndim == 1 and stored.size > 1:
                return stands_for(self.constants[one], 1.0)
        return False

    def dequantizes(self, node: Node, operands: list[str | None]) -> bool:
        """Return whether the node dequantizes a constant to a larger array."""
        if node.op.onnx not in WIDENING or operands[0] is None:
            return False
        x, result = self.constants[operands[0]], self.graph.types[node.output]
        quantized = x.dtype.itemsize == 1 or node.op.onnx == "DequantizeLinear"
        grows = result.dtype.itemsize > x.dtype.itemsize
        if not (quantized and grows and x.size > FEW and x.dtype != bool_):
            return False
        readers = self.graph.users.get(node.output, ())
        return not all(reader.op.onnx in ELEMENTWISE for reader in readers)

    def is_layer(self, node: Node, operands: list[str | None]) -> bool:
        """Return whether the node is a layer with stored weights, like an embedding."""
        types = [None if n is None else Type.of(self.constants[n]) for n in operands]
        with error_context(node, self.graph.opsets):
            layer = node.op.layer(*types)
        if layer is None:
            return False
        weights = [operands[position] for position in layer.weights.values()]
        return any(n is not None and not self.is_literal(n) for n in weights)

    def is_literal(self, name: str) -> bool:
        return name in self.constants.literals

    def is_within_budget(self, node: Node, arrays: list[Array | None]) -> bool:
        """Return whether computing the results stays within the budget."""
        if node.op.onnx in VIEWS and not may_copy(node, arrays[0]):
            return True
        types = [self.graph.types[n] for n in node.outputs if n is not None]
        if any(isinstance(t, SequenceType | OptionalType | MapType) for t in types):
            return False  # the result is no array
        return self.budget.admits(node, arrays, types)

    def compute(self, node: Node, operands: list[str | None]) -> list[Array] | None:
        arrays = [None if n is None else self.constants[n] for n in operands]
        if not self.is_within_budget(node, arrays):
            return None
        try:
            with np.errstate(all="ignore"):
                results = _run(node, arrays)
        except OR_MISSING:
            return None
        operand_arrays = [a for a in arrays if a is not None]
        size = sum(allocated_bytes(result, operand_arrays) for result in results)
        if size > min(VALUE_BYTES, self.budget.free_bytes):
            return None
        self.budget.free_bytes -= size
        return results

    def same_view(self, operands: list[str | None], results: list[Array]) -> str | None:
        """Return the operand that is the same view as the only result, else None."""
        for name in operands if len(results) == 1 else ():
            if name is not None and same_view(self.constants[name], results[0]):
                return name
        return None

    def alias(self, node: Node, name: str) -> bool:
        """Replace the result of ``node`` by ``name``; return False for outputs."""
        if node.output in self.graph.outputs:
            return False
        self.aliases[node.output] = name
        self.values.discard(node.output)
        return True

    def store(
        self, node: Node, results: list[Array], source: str | None, literal: bool
    ) -> None:
        for name, array in zip(node.outputs, results, strict=False):
            if name is None:
                continue
            stored = self.add_constant(name, array, source)
            if literal:
                self.constants.literals.add(stored)
            self.values.discard(name)
            if stored != name:
                self.aliases[name] = stored

    def store_dequantized(self, node: Node, results: list[Array]) -> bool:
        """Store a dequantized array under the name that it had before quantization.

        Return False if the integers have no name that a quantizer gave them.
        """
        integers = self.aliases.get(node.inputs[0] or "", node.inputs[0] or "")
        name = integers.removesuffix(QUANTIZED)
        if name == integers or not name or node.output in self.graph.outputs:
            return False
        if name in self.values or name in self.graph.types:
            return False
        stored = self.add_constant(name, results[0], None)
        if is_leftover(name):  # computed by an exporter: a rotary table, a mask
            self.constants.fills.add(stored)
        self.aliases[node.output] = stored
        self.values.discard(node.output)
        return True

    def record_recipe(self, node: Node, operands: list[str | None]) -> None:
        """Record the node that a result was folded from.

        Results computed from an author's tensor are computed in the generated source in
        the end, unless a layer holds the tensor in its original form.
        """
        names = [name and self.aliases.get(name, name) for name in node.outputs]
        recipe = replace(node, inputs=tuple(operands), outputs=tuple(names))
        for name in names:
            if name is not None:
                self.constants.recipes.setdefault(name, recipe)

    def add_constant(self, name: str, array: Array, source: str | None) -> str:
        """Store an array under its value's name, which is unique; return the name."""
        if name in self.constants and are_identical(self.constants[name], array):
            return name  # stored by an earlier run over the same model
        return self.constants.add(name, array, source)

    def source_weights(self, node: Node, operands: list[str | None]) -> list[str]:
        """Return the weights among the operands that the result derives from.

        These are the floating operands if there are any, else the first operand.
        Several that derive from one stored array count as one.
        """
        count = 1 if node.op.onnx == "DequantizeLinear" else len(operands)
        names = [name for name in operands[:count] if name is not None]
        floats = [n for n in names if is_float(self.constants[n].dtype)]
        stored = [n for n in floats or names[:1] if not self.is_literal(n)]
        by_origin = {list(origins(self.constants, n))[-1]: n for n in stored}
        return list(by_origin.values())


def _run(node: Node, arrays: list[Array | None]) -> list[Array]:
    if node.op.onnx == "ConstantOfShape" and arrays[0] is not None:
        # Compute one element and broadcast it.
        element = run_node(node, [Tensor(np.ones_like(arrays[0]), HOST)])[0]
        return [np.broadcast_to(element.numpy(), arrays[0].tolist())]
    operands = [None if a is None else Tensor(a, HOST) for a in arrays]
    return [np.asarray(result.numpy()) for result in run_node(node, operands)]
