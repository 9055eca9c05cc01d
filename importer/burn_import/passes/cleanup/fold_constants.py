"""Computes nodes whose operands are constants, once, before the model runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn.dtypes import bool_, is_float
from burn_import.passes.cleanup.folding_cost import VALUE_BYTES, Budget, may_copy
from burn_import.provenance.weight_owners import is_authored
from burn_import.rewriting.arrays import equal, held, origins, same_view
from burn_import.rewriting.graphs import rename, value_names
from burn_import.rewriting.pattern import stands_for
from burn_ir.containers import MapType, OptionalType, SequenceType
from burn_ir.error_context import OR_MISSING, error_context
from burn_ir.evaluate import run_node
from burn_ir.graph import Graph, Node
from burn_ir.types import Array, Type

#: What makes numbers of quantised ones, which stay small on disk if it stays a node;
#: and how many numbers are not worth that.
WIDENING = frozenset({"Cast", "DequantizeLinear"})
FEW = 8
#: What has a weight that it multiplies by.
SCALING = frozenset({"LayerNormalization", "Mul", "RMSNormalization"})
#: Results that are views of the operand, or one element seen many times.
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
#: Other forms of the same array, in which a layer may hold it.
FORMS = frozenset(
    {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
#: Formulas of a few numbers, which say more than what they make. A folded one would be
#: taken for a weight, and trained.
FORMULAS = frozenset(
    {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"}
)


def fold_constants(graph: Graph) -> Graph:
    """``graph`` with the results of constant nodes in the store of constants.

    Folded are deterministic nodes without bodies whose operands are all constants, and
    integers that shape arithmetic led to. What would hold too much memory stays a node,
    and so does a layer, which keeps its weights, what computes with weights that
    PyTorch's exporters named, what makes quantised weights larger numbers, a weight
    plus 1 that scales, and what cannot be computed: it fails when the model runs, if it
    ever comes to it. Windows and filters stay formulas.
    """
    folding = _Folding(graph)
    kept = [node for node in graph.nodes if not folding.take(node)]
    if len(kept) == len(graph.nodes):
        return graph
    return rename(graph.with_nodes(kept), folding.aliases)


class _Folding:
    """One run over a graph: its constants so far, and their memory."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = graph.constants
        self.values = value_names(graph)
        self.aliases: dict[str, str] = {}
        self.budget = Budget(graph)

    def take(self, node: Node) -> bool:
        """Return whether ``node`` became constants, which are stored then."""
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
        same = self.same(operands, results)
        if same is not None:
            return self.alias(node, same)
        weights = self.weights(node, operands)
        source = weights[0] if len(weights) == 1 else None
        self.store(node, results, source, literal=not weights)
        self.note(node, operands)
        return True

    def inferred_contents(self, node: Node) -> list[Array] | None:
        """The results if all are integers that inference found."""
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
        """The names of the operands as they are now, None if one is no constant."""
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
        if self.is_layer(node, operands) or self.widens(node, operands):
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
        """Whether the node adds 1 to a weight that scales features, as Gemma does.

        What is trained, and what a record has, is the weight and not the sum.
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

    def widens(self, node: Node, operands: list[str | None]) -> bool:
        """Whether the node makes a stored array of small numbers a larger one."""
        if node.op.onnx not in WIDENING or operands[0] is None:
            return False
        x, result = self.constants[operands[0]], self.graph.types[node.output]
        quantised = x.dtype.itemsize == 1 or node.op.onnx == "DequantizeLinear"
        grows = result.dtype.itemsize > x.dtype.itemsize
        return quantised and grows and x.size > FEW and x.dtype != bool_

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

    def fits(self, node: Node, arrays: list[Array | None]) -> bool:
        """Whether the results can be computed with the work and memory allowed."""
        if node.op.onnx in VIEWS and not may_copy(node, arrays[0]):
            return True
        types = [self.graph.types[n] for n in node.outputs if n is not None]
        if any(isinstance(t, SequenceType | OptionalType | MapType) for t in types):
            return False  # no array
        return self.budget.admits(node, arrays, types)

    def compute(self, node: Node, operands: list[str | None]) -> list[Array] | None:
        arrays = [None if n is None else self.constants[n] for n in operands]
        if not self.fits(node, arrays):
            return None
        try:
            with np.errstate(all="ignore"):
                results = _run(node, arrays)
        except OR_MISSING:
            return None
        given = [a for a in arrays if a is not None]
        size = sum(held(result, given) for result in results)
        if size > min(VALUE_BYTES, self.budget.left):
            return None
        self.budget.left -= size
        return results

    def same(self, operands: list[str | None], results: list[Array]) -> str | None:
        """The operand that is the only result, unchanged; None if none is."""
        for name in operands if len(results) == 1 else ():
            if name is not None and same_view(self.constants[name], results[0]):
                return name
        return None

    def alias(self, node: Node, name: str) -> bool:
        """Whether the result of ``node`` could be called ``name``: outputs cannot."""
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
            stored = self.keep(name, array, source)
            if literal:
                self.constants.literals.add(stored)
            self.values.discard(name)
            if stored != name:
                self.aliases[name] = stored

    def note(self, node: Node, operands: list[str | None]) -> None:
        """Keep the node that a result was folded from.

        What is made from an author's tensor is computed in the source in the end, if
        no layer holds it in its first form.
        """
        kept = [name and self.aliases.get(name, name) for name in node.outputs]
        recipe = replace(node, inputs=tuple(operands), outputs=tuple(kept))
        for name in kept:
            if name is not None:
                self.constants.recipes.setdefault(name, recipe)

    def keep(self, name: str, array: Array, source: str | None) -> str:
        """The name of the stored array: the value's, as names are unique."""
        if name in self.constants and equal(self.constants[name], array):
            return name  # from an earlier run over the same model
        return self.constants.add(name, array, source)

    def weights(self, node: Node, operands: list[str | None]) -> list[str]:
        """The operands that are weights, of which the result is another form.

        Those of a floating type, if there are any; else the first operand, as of what
        scales integers. Several that were all made from one stored array count as one.
        """
        count = 1 if node.op.onnx == "DequantizeLinear" else len(operands)
        names = [name for name in operands[:count] if name is not None]
        floats = [n for n in names if is_float(self.constants[n].dtype)]
        stored = [n for n in floats or names[:1] if not self.is_literal(n)]
        by_origin = {list(origins(self.constants, n))[-1]: n for n in stored}
        return list(by_origin.values())


def _run(node: Node, arrays: list[Array | None]) -> list[Array]:
    if node.op.onnx == "ConstantOfShape" and arrays[0] is not None:
        # One element, seen as often as there are places for it.
        one = run_node(node, [Tensor(np.ones_like(arrays[0]), HOST)])[0]
        return [np.broadcast_to(one.numpy(), arrays[0].tolist())]
    operands = [None if a is None else Tensor(a, HOST) for a in arrays]
    return [np.asarray(result.numpy()) for result in run_node(node, operands)]
