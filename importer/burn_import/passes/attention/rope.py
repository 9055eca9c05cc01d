"""Recovers rotary position embedding from slices, products and a sum."""

from dataclasses import dataclass, field, replace

import numpy as np

from burn.dtypes import is_float
from burn_import.rewriting.arrays import are_identical, derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import RotaryEmbedding
from burn_ir.ops.support import known_ints

#: Elementwise operators that are followed from a table to its angles.
ELEMENTWISE = ("Cos", "Sin", "Cast", "Identity", "Mul", "Div")
#: The most nodes between a table and its angles.
STEPS = 12


def rope(graph: Graph) -> Graph:
    """Return ``graph`` with ``RotaryEmbedding`` for ``x * cos + rotate_half(x) * sin``.

    ``rotate_half(x)`` is ``concat([-x[..., d / 2 :], x[..., : d / 2]])``. Both halves
    of the tables must be equal, since the operator reads one. If only the first
    features are embedded and the others are concatenated, the two steps become one
    node.
    """
    rewriter = _Rewriter(Dataflow(graph))
    nodes = [rewriter.rewrite(node) for node in graph.nodes]
    if not rewriter.ropes:
        return graph
    order: list[Node] = []
    for old, new in zip(graph.nodes, nodes, strict=True):
        order += [new, *rewriter.behind.get(id(old), ())]
    return with_nodes(graph, order)


@dataclass
class _Rewriter:
    flow: Dataflow
    #: The embeddings found, by result.
    ropes: dict[str, Node] = field(default_factory=dict)
    #: The half of each table, None if its halves differ.
    halves: dict[str, str | None] = field(default_factory=dict)
    #: New nodes, by the id of the node they follow.
    behind: dict[int, list[Node]] = field(default_factory=dict)

    def rewrite(self, node: Node) -> Node:
        """Return ``node``, or its replacement."""
        if node.op.domain or node.op.onnx not in ("Add", "Concat"):
            return node
        new = self.sum(node) if node.op.onnx == "Add" else self.partial_embedding(node)
        if new is None:
            return node
        self.ropes[node.output] = new
        return new

    def sum(self, node: Node) -> Node | None:
        """Return the embedding whose result is the sum ``node``; None if it is none."""
        products = [self.flow.made_by(name, "Mul") for name in node.inputs]
        if any(product is None for product in products):
            return None
        for plain, rotated in (products, products[::-1]):
            if plain is None or rotated is None or plain is rotated:
                continue
            for x, cos in (plain.inputs, plain.inputs[::-1]):
                for half, sin in (rotated.inputs, rotated.inputs[::-1]):
                    inner = self.rotation(x, half)
                    if inner is not None:
                        inner = [*inner, plain, rotated]
                        return self.build_embedding(node, inner, x, cos, sin)
        return None

    def rotation(self, x: str | None, half: str | None) -> list[Node] | None:
        """Return the nodes of ``half = rotate_half(x)``; None for another value."""
        joined = self.flow.made_by(half, "Concat")
        shape = self.flow.extents(x)
        if joined is None or not shape or not self.is_last(joined):
            return None
        size = shape[-1]
        if len(joined.inputs) != 2 or not isinstance(size, int) or size % 2:
            return None
        negated = self.flow.made_by(joined.inputs[0], "Neg")
        if negated is None:
            return None
        second = self.flow.piece(negated.inputs[0])
        first = self.flow.piece(joined.inputs[1])
        if second != (x, size // 2, size) or first != (x, 0, size // 2):
            return None
        return [joined, negated]

    def is_last(self, joined: Node) -> bool:
        rank = len(self.flow.extents(joined.output))
        return joined.op.attrs()["axis"] in (-1, rank - 1)

    def build_embedding(
        self,
        node: Node,
        inner: list[Node],
        x: str | None,
        cos: str | None,
        sin: str | None,
    ) -> Node | None:
        if not self.flow.are_inside(inner, node):
            return None
        shape, t = self.flow.extents(x), self.flow.graph.type(x)
        if t is None or not is_float(t.dtype):
            return None
        if len(shape) != 4 or self.flow.extents(node.output) != shape:
            return None
        tables = [self.table(name, shape) for name in (cos, sin)]
        if None in tables:
            return None
        scope, classes = common_scope(*inner, node)
        op, inputs = RotaryEmbedding(), (x, *tables)
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)

    def table(self, name: str | None, shape: tuple[Dim, ...]) -> str | None:
        """Return the half of a table that is unsqueezed for the heads.

        Exporters fold the unsqueeze of a stored table.
        """
        batch, _, length, size = shape
        array = self.flow.stored(name)
        if name is not None and array is not None:
            if array.shape not in {(1, 1, length, size), (batch, 1, length, size)}:
                return None
            return self.half(derive(self.flow.graph, name, array[:, 0], ".rows"), 1)
        node = self.flow.made_by(name, "Unsqueeze")
        if node is None:
            return None
        extents = self.flow.extents(node.inputs[0])
        if len(extents) != 3 or extents[0] not in (1, batch):
            return None
        if extents[1:] != (length, size):
            return None
        if known_ints(self.flow.graph.type(node.inputs[1])) not in ((1,), (-3,)):
            return None
        return self.half(node.inputs[0], STEPS)

    def half(self, name: str | None, steps: int) -> str | None:
        """Return the value whose last axis ``name`` repeats twice; None if none."""
        if name is None or not steps:
            return None
        if name not in self.halves:
            self.halves[name] = self.compute_half(name, steps)
        return self.halves[name]

    def compute_half(self, name: str, steps: int) -> str | None:
        if self.flow.stored(name) is not None:
            return self.stored_half(name)
        node = self.flow.made_by(name, "Concat", "Gather", *ELEMENTWISE)
        if node is None:
            return None
        if node.op.onnx == "Concat":
            twice = len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]
            return node.inputs[0] if twice and self.is_last(node) else None
        source, rest = node.inputs[0], node.inputs[1:]
        if node.op.onnx == "Gather":
            if node.op.attrs()["axis"] or len(self.flow.extents(source)) != 2:
                return None
        elif rest:
            source, rest = self.scaled_operand(node)
        inner = self.half(source, steps - 1)
        if inner is None:
            return None
        output = self.flow.fresh(f"{name}.half")
        inputs = (inner, *rest)
        new = replace(node, inputs=inputs, outputs=(output,))
        self.behind.setdefault(id(node), []).append(new)
        return output

    def scaled_operand(self, node: Node) -> tuple[str | None, tuple[str | None, ...]]:
        """Return the value that a node scales by a constant, and the constant."""
        source, _ = self.flow.factor(node)
        return source, tuple(name for name in node.inputs if name != source)

    def stored_half(self, name: str) -> str | None:
        constants = self.flow.graph.constants
        array = constants[name]
        if not array.ndim or array.shape[-1] % 2:
            return None
        first, second = np.split(array, 2, axis=-1)
        if not are_identical(np.ascontiguousarray(first), np.ascontiguousarray(second)):
            return None
        derived = f"{name}.half"
        if constants.source.get(derived) == name:
            return derived
        return constants.add(self.flow.fresh(derived), first, source=name)

    def full_embedding(self, name: str | None) -> Node | None:
        """Return the embedding of all features that produces a value."""
        node = self.flow.made_by(name, "RotaryEmbedding")
        return None if node is None or node.op.attrs()["rotary_embedding_dim"] else node

    def partial_embedding(self, node: Node) -> Node | None:
        """Return the embedding of the first features, joined with the others."""
        first = self.ropes.get(node.inputs[0] or "") or self.full_embedding(
            node.inputs[0]
        )
        if first is None or len(node.inputs) != 2 or not self.is_last(node):
            return None
        start, rest = self.flow.piece(first.inputs[0]), self.flow.piece(node.inputs[1])
        if start is None or rest is None or start[0] != rest[0] or start[1]:
            return None
        size = self.flow.extents(start[0])[-1]
        if rest[1:] != (start[2], size) or not self.flow.are_inside([first], node):
            return None
        scope, classes = common_scope(first, node)
        op = first.op.with_attrs(rotary_embedding_dim=start[2])
        inputs = (start[0], *first.inputs[1:])
        return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)
