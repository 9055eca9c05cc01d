"""Inference of value names from producers and consumers.

A value has the same noun in the module that computes it and in those that get it.
Values without evidence have no noun: they are part of the main data flow.
"""

from __future__ import annotations

from collections.abc import Iterator

from burn.dtypes import bool_, is_float
from burn_import.codegen.naming.modulation import modulation_names
from burn_import.codegen.naming.vocabulary import (
    ATTENTION_NOUNS,
    COMPARISONS,
    MASK_NOUNS,
    MASK_OPS,
    MODEL_RESULT_NOUNS,
    OPERAND_NOUNS,
    RESULT_NOUNS,
    ROW_NOUNS,
    SCALAR_OPS,
    SCALED_NOUNS,
    SHARED_NOUNS,
    SIZE_OPS,
    VIEW_OPS,
    indices_of,
    keeps_noun,
    result_of,
)
from burn_import.provenance.exporter_names import authored, custom_identifier
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.state_owners import states_of
from burn_import.tracing.identifiers import argument, snake
from burn_ir.graph import Graph, Node
from burn_ir.ops.weight_quantized import QuantizeDequantize

#: Maximum constant that masks a score.
HIDDEN = -1e4
#: Maximum number of nodes between a layer and the attention that reads its result.
DEEPEST = 12


def infer_value_names(tree: Tree) -> dict[str, str]:
    """Return the noun of every value with one, by the value's name."""
    run = _Finder(tree)
    for node in run.nodes:
        run.name_results(node)
    for part in tree.parts:
        run.name_module_result(part)
    for node in reversed(run.nodes):
        run.name_operands(node)
    return run.nouns() | modulation_names(tree.root.graph)


class _Finder:
    def __init__(self, tree: Tree) -> None:
        self.graph = graph = tree.root.graph
        self.constants = graph.constants
        self.paths = {k: v for part in tree.parts for k, v in part.layer_paths.items()}
        self.nodes = list(_every_node(graph))
        self.inputs = {name: argument(name) for name in graph.arguments}
        #: The model input that a value is a view of.
        self.origin = {name: name for name in graph.arguments}
        #: The only model input that a mask is computed from, "" if there are others.
        self.sources = {name: name for name in graph.arguments}
        self.makers = {name: n for n in self.nodes for name in n.outputs if name}
        self.from_producer: dict[str, str] = {}
        self.reader_nouns: dict[str, str] = {}
        self.written: dict[str, str] = {}
        self.readers: dict[str, int] = {}
        self.naming_reads: dict[str, int] = {}
        for node in self.nodes:
            for name in node.inputs if node.op.onnx not in SIZE_OPS else ():
                if name is not None:
                    self.readers[name] = self.readers.get(name, 0) + 1

    def name_results(self, node: Node) -> None:
        """Record the nouns of a node's results, from the node itself."""
        kind, attribute = self.kind(node), self.attribute(node)
        first = node.inputs[0] if node.inputs else None
        for position, name in enumerate(node.outputs):
            if name is None:
                continue
            self.written[name] = authored(name)
            noun = self.noun_from_producer(kind, position, node, attribute)
            if noun:
                self.from_producer[name] = noun
            if first is not None and kind in VIEW_OPS and first in self.origin:
                self.origin[name] = self.origin[first]
            self.sources[name] = self.mask_input(node, kind)
        for body in node.op.bodies().values():
            if kind == "If":
                for inner, outer in zip(body.inputs, node.inputs[1:], strict=True):
                    self.origin.update({inner: self.origin.get(outer or "", "")})
                    self.from_producer.update(
                        {inner: self.from_producer.get(outer or "", "")}
                    )
            else:
                self.written.update(
                    {name: custom_identifier(name) for name in body.inputs}
                )

    def mask_input(self, node: Node, kind: str) -> str:
        """Return the only model input that a mask computation depends on, else ""."""
        if kind not in VIEW_OPS | MASK_OPS | COMPARISONS | SCALAR_OPS:
            return ""
        names = [n for n in node.inputs if n is not None and n not in self.constants]
        data = names[:1] if kind in VIEW_OPS else names
        data_sources = {self.sources.get(name, "") for name in data}
        return data_sources.pop() if len(data_sources) == 1 else ""

    def noun_from_producer(
        self, kind: str, position: int, node: Node, attribute: str
    ) -> str:
        """Return the noun of a result, from its operator, layer or operand."""
        nouns = RESULT_NOUNS.get(kind, ())
        if position < len(nouns) and nouns[position]:
            return nouns[position]
        if position == 0 and attribute:
            noun = result_of(attribute)
            return noun if noun == "bias" or kind != "Embedding" else ""
        if position or not node.inputs:
            return ""
        if kind in VIEW_OPS | {"TopK"}:
            noun = self.from_producer.get(node.inputs[0] or "", "")
            is_float_mask = kind == "Cast" and self.is_mask(node.inputs[0])
            return noun or ("mask" if is_float_mask and self.is_float(node) else "")
        return self.noun_of_combination(kind, node)

    def noun_of_combination(self, kind: str, node: Node) -> str:
        """Return the noun of a result that combines several values."""
        nouns_in = [
            self.from_producer.get(name, "")
            for name in node.inputs
            if name is not None and name not in self.constants
        ]
        first = nouns_in[0] if nouns_in else ""
        if kind == "Div" and first == "weights":
            return first  # normalized weights
        if kind in COMPARISONS and set(nouns_in) == {"positions"} and len(nouns_in) > 1:
            return "causal"
        if kind == "Sub" and nouns_in == ["positions", "positions"]:
            return "distance"
        if kind == "Where" and self.masks_scores(node):
            return "mask"
        alone = len(nouns_in) == 1 and kind in SCALAR_OPS
        return first if alone and first in SCALED_NOUNS | {"positions"} else ""

    def masks_scores(self, node: Node) -> bool:
        """Return whether a ``Where`` selects a constant that masks a score."""
        sides = [self.constants.get(name or "") for name in node.inputs[1:]]
        return any(
            float(side.reshape(-1)[0]) <= HIDDEN
            for side in sides
            if side is not None and side.size == 1 and is_float(side.dtype)
        )

    def kind(self, node: Node) -> str:
        """Return the name of a standard or ``burn`` operator, "" for custom ones.

        A lookup in a layer's weights is an ``Embedding``.
        """
        if node.op.domain not in ("", "burn"):
            return ""
        is_lookup = node.op.onnx == "Gather" and bool(self.attribute(node))
        return "Embedding" if is_lookup else node.op.onnx

    def attribute(self, node: Node) -> str:
        """Return the attribute of a layer, "" for a quantizer and any other node."""
        path = self.paths.get(id(node), ())
        is_quantizer = isinstance(node.op, QuantizeDequantize)
        return path[-1] if path and not is_quantizer else ""

    def name_module_result(self, part: ModuleNode) -> None:
        """Record the noun of a module's only result, from the module's attribute."""
        word = part.path[-1] if part.path else ""
        if (
            word
            and len(part.outputs) == 1
            and part.outputs[0] not in self.from_producer
        ):
            self.from_producer[part.outputs[0]] = result_of(word)

    def name_operands(self, node: Node) -> None:
        """Record the nouns of a node's operands, from the node that reads them."""
        kind, attribute = self.kind(node), self.attribute(node)
        crossing = kind == "Attention" and self.is_cross_attention(node)
        for position, noun in OPERAND_NOUNS.get(kind, {}).items():
            self.record_use(
                node, position, f"cross_{noun}" if crossing and position == 3 else noun
            )
        if kind == "Embedding":
            self.record_use(node, 1, indices_of(attribute))
        noun = self.noun(node.outputs[0]) if node.outputs else ""
        if kind == "MatMul":
            self.name_factors(node, noun)
        elif attribute and keeps_noun(attribute):
            self.record_use(node, 0, noun or result_of(attribute))
        elif noun:
            self.propagate_noun(node, kind, noun)

    def propagate_noun(self, node: Node, kind: str, noun: str) -> None:
        """Record the nouns of operands that follow from that of the result."""
        if kind in VIEW_OPS:
            self.record_use(node, 0, noun)
        elif kind == "Concat" or (noun in MASK_NOUNS and kind in MASK_OPS):
            for position in range(len(node.inputs)):
                self.record_use(node, position, noun)
        elif noun in MASK_NOUNS and kind == "Add":
            for position, name in enumerate(node.inputs):
                masks = self.from_producer.get(name or "") == "mask"
                self.record_use(node, position, noun if masks else MASK_NOUNS[noun])
        elif noun in SCALED_NOUNS and kind in SCALAR_OPS | {"RotaryEmbedding", "Where"}:
            self.name_scaled_operand(node, noun)

    def is_cross_attention(self, node: Node) -> bool:
        """Return whether an attention is a cross-attention."""
        sources = [self.source(name) for name in node.inputs[:2]]
        return "" not in sources and sources[0] != sources[1]

    def source(self, name: str | None) -> str:
        """Return the noun of the values that a layer projects; "" if there is none."""
        for _ in range(DEEPEST):
            node = self.makers.get(name or "")
            if node is None:
                return ""
            kind, path = self.kind(node), self.paths.get(id(node))
            if path is not None and not keeps_noun(path[-1]):
                return node.inputs[0] or ""
            others = {"Concat", "RotaryEmbedding", "Linear"}
            if kind not in VIEW_OPS | SCALAR_OPS | others:
                return ""
            name = node.inputs[-1 if kind == "Concat" else 0]
        return ""

    def name_scaled_operand(self, node: Node, noun: str) -> None:
        """Give the noun of a scaled or masked result to its operand."""
        for position, name in enumerate(node.inputs):
            if name in self.constants:
                continue
            if self.is_factor(node, name):
                self.record_use(node, position, ROW_NOUNS[node.op.onnx])
            elif self.from_producer.get(name or "") != "mask" and not self.is_mask(
                name
            ):
                self.record_use(node, position, noun)
            elif noun == "scores":
                self.record_use(node, position, "mask")
            if node.op.onnx == "RotaryEmbedding":
                break

    def is_factor(self, node: Node, name: str | None) -> bool:
        """Return whether a product or quotient scales whole rows by an operand."""
        own, whole = (self.graph.types.get(n or "") for n in (name, node.output))
        if node.op.onnx not in ROW_NOUNS or own is None or whole is None:
            return False
        if not own.shape or not whole.shape:
            return False
        return own.shape[-1] == 1 != whole.shape[-1]

    def is_mask(self, name: str | None) -> bool:
        value_type = self.graph.types.get(name or "")
        return value_type is not None and value_type.dtype == bool_

    def is_float(self, node: Node) -> bool:
        value_type = self.graph.types.get(node.output)
        return value_type is not None and is_float(value_type.dtype)

    def name_factors(self, node: Node, noun: str) -> None:
        """Record operand nouns: scores are query @ key, results weights @ value."""
        left, right = node.inputs[:2]
        if left in self.constants or right in self.constants:
            return
        if noun == "scores":
            self.record_use(node, 0, "query")
            self.record_use(node, 1, "key")
        elif self.from_producer.get(left or "") == "weights":
            self.record_use(node, 1, "value")

    def record_use(self, node: Node, position: int, noun: str) -> None:
        """Record that ``node`` reads ``noun`` at ``position``; conflicts become ""."""
        name = node.inputs[position] if position < len(node.inputs) else None
        if name is None or not noun:
            return
        self.naming_reads[name] = self.naming_reads.get(name, 0) + 1
        if self.reader_nouns.setdefault(name, noun) != noun:
            self.reader_nouns[name] = ""

    def noun(self, name: str | None) -> str:
        """Return the noun of a value, from its readers or else from its producer."""
        if name is None:
            return ""
        reader_nouns = self.reader_nouns.get(name, "")
        if reader_nouns and reader_nouns not in SHARED_NOUNS:
            agreed = self.naming_reads.get(name, 0) >= self.readers.get(name, 0)
            reader_nouns = reader_nouns if agreed else ""
        own = self.from_producer.get(name, "")
        if own == "positions" and self.is_integer(name):
            return own  # rather than the angles that are computed from them
        return reader_nouns or own

    def is_integer(self, name: str) -> bool:
        value_type = self.graph.types.get(name)
        return value_type is not None and value_type.dtype.kind in "iu"

    def nouns(self) -> dict[str, str]:
        """Return the noun of each value: the author's own, else the inferred one."""
        chosen = {**self.states(), **self.inputs}
        ends = set(self.graph.outputs)
        for name in dict.fromkeys(
            [*self.written, *self.from_producer, *self.reader_nouns]
        ):
            if name in chosen:
                continue
            own = self.written.get(name, "")
            noun = self.noun(name)
            if noun not in ATTENTION_NOUNS:
                noun = own or self.source_input(name) or noun
            if name in ends:
                noun = snake(name) if own else MODEL_RESULT_NOUNS.get(noun, noun)
            if noun:
                chosen[name] = noun
        return chosen

    def states(self) -> dict[str, str]:
        """Return the nouns of states before and after a call, from their keys."""
        return {
            name: snake(state.constant.rpartition(".")[2], "state")
            for state in states_of(self.graph)
            for name in (state.after, state.before)
        }

    def source_input(self, name: str) -> str:
        """Return the model input that a value is a view of, or a mask from, else ""."""
        origin = self.origin.get(name, "")
        if origin:
            return self.inputs[origin]
        source = self.sources.get(name, "")
        masked = "mask" in source.lower() and self.noun(name) in MASK_NOUNS
        return self.inputs[source] if masked else ""


def _every_node(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.op.bodies().values():
            yield from _every_node(body)
