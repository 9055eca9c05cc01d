"""Removes leading axes of extent 1 from operands that broadcast."""

from dataclasses import dataclass, field, replace

from burn_import.passes.shapes.implicit_broadcast import ELEMENTWISE
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Unsqueeze
from burn_ir.ops.support import known_ints


def leading_axes(graph: Graph) -> Graph:
    """Return ``graph`` without ``Unsqueeze`` of leading axes that broadcasting adds.

    Only integers and conditions are considered: positions, and masks of them. The first
    axes of an operand are dropped if another operand has as many axes. If every operand
    has them, the operator is applied without them, provided that its readers drop them
    too; a lookup of rows (``Gather``) likewise.
    """
    if "Unsqueeze" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.add(node)
    return with_nodes(graph, rewriter.nodes) if rewriter.has_changes else graph


@dataclass(frozen=True)
class _LeadingAxes:
    """An ``Unsqueeze`` of ``count`` leading axes, and of ``others``."""

    source: str
    count: int
    #: Further new axes, counted without the leading ones.
    others: tuple[int, ...]


@dataclass
class _Rewriter:
    flow: Dataflow
    nodes: list[Node] = field(default_factory=list)
    has_changes: bool = False
    #: Values with leading axes, by name.
    wide: dict[str, _LeadingAxes] = field(default_factory=dict)
    #: Values without them, by their source and other new axes.
    narrow: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Append ``node`` or its replacement."""
        if self.flow.made_by(node.outputs[0], "Unsqueeze") is not None:
            self.record(node)
        elif self.flow.made_by(node.outputs[0], "Gather") is not None:
            node = self.lookup(node)
        elif not node.op.domain and node.op.onnx in ELEMENTWISE:
            node = self.elementwise(node)
        self.nodes.append(node)

    def record(self, node: Node) -> None:
        """Note the leading axes that consecutive ``Unsqueeze`` nodes insert."""
        if not self.flow.is_discrete(node.output):
            return
        axes, source = self.new_axes(node)
        count = sum(axis == position for position, axis in enumerate(axes))
        if count and source is not None:
            others = tuple(axis - count for axis in axes[count:])
            self.wide[node.output] = _LeadingAxes(source, count, others)

    def new_axes(self, node: Node) -> tuple[list[int], str | None]:
        """Return the axes of extent 1 in a result, and the value without them."""
        t, source = self.flow.graph.type(node.output), node.inputs[0]
        numbers = known_ints(self.flow.graph.type(node.inputs[1]))
        if t is None or t.shape is None or numbers is None:
            return [], None
        axes = t.axes(numbers)
        before = self.flow.made_by(source, "Unsqueeze")
        if before is None:
            return sorted(axes), source
        inner, source = self.new_axes(before)
        others = [axis for axis in range(len(t.shape)) if axis not in axes]
        return sorted([*axes, *(others[axis] for axis in inner)]), source

    def rank(self, name: str | None) -> int | None:
        t = self.flow.graph.type(name)
        return None if t is None or t.shape is None else len(t.shape)

    def elementwise(self, node: Node) -> Node:
        ranks = [self.rank(name) for name in node.inputs]
        present = [rank for rank in ranks if rank is not None]
        if len(present) < len(ranks) or not self.wide.keys() & set(node.inputs):
            return node
        top = max(present)
        counts = [self.count(name) for name in node.inputs]
        drop = min(n for n, rank in zip(counts, present, strict=True) if rank == top)
        if drop and self.are_droppable(node, drop):
            inner = [rank - n for n, rank in zip(counts, present, strict=True)]
            return self.applied_inside(node, counts, top - max(inner))
        positions = [position for position, rank in enumerate(present) if rank == top]
        counts[min(positions, key=lambda position: self.preference(node, position))] = 0
        return self.with_operands(node, counts)

    def count(self, name: str | None) -> int:
        """Count the leading axes of extent 1 that a value was given."""
        return self.wide[name].count if name in self.wide else 0

    def preference(self, node: Node, position: int) -> tuple[int, bool]:
        """Return the sort key of operands that may keep their axes, the best first."""
        wide = self.wide.get(str(node.inputs[position]))
        return (0, False) if wide is None else (wide.count, not wide.others)

    def lookup(self, node: Node) -> Node:
        """Return a lookup of rows whose indices have no leading axes."""
        name = node.inputs[1]
        if node.op.attrs()["axis"] or name not in self.wide:
            return node
        count = self.wide[name].count
        if not self.are_droppable(node, count):
            return node
        return self.applied_inside(node, [0, count], count)

    def are_droppable(self, node: Node, count: int) -> bool:
        """Return whether every reader broadcasts ``node`` to as many axes anyway."""
        rank = self.rank(node.output)
        readers = self.flow.users.get(node.output, ())
        if rank is None or not readers or node.output in self.flow.outputs:
            return False
        return all(
            not user.op.domain
            and user.op.onnx in ELEMENTWISE
            and any(
                name != node.output and (self.rank(name) or 0) >= rank
                for name in user.inputs
            )
            for user in readers
        )

    def with_operands(self, node: Node, counts: list[int]) -> Node:
        """Return ``node`` with so many leading axes of each operand removed."""
        if not any(counts):
            return node
        self.has_changes = True
        inputs = tuple(
            (
                self.without_leading_axes(node, name)
                if name is not None and count
                else name
            )
            for name, count in zip(node.inputs, counts, strict=True)
        )
        return replace(node, inputs=inputs)

    def without_leading_axes(self, near: Node, name: str) -> str:
        """Return the value ``name`` without its leading axes."""
        wide = self.wide[name]
        if not wide.others:
            return wide.source
        key = (wide.source, wide.others)
        if key not in self.narrow:
            self.narrow[key] = self.flow.fresh(f"{name}.narrow")
            inputs = (wide.source, integers(self.flow.graph, [*wide.others]))
            maker = self.flow.producers.get(name, near)
            outputs = (self.narrow[key],)
            self.nodes.append(
                replace(maker, op=Unsqueeze(), inputs=inputs, outputs=outputs)
            )
        return self.narrow[key]

    def applied_inside(self, node: Node, counts: list[int], added: int) -> Node:
        """Return the ``Unsqueeze`` that restores the axes, and append the operator."""
        inner = self.flow.fresh(f"{node.output}.narrow")
        self.nodes.append(replace(self.with_operands(node, counts), outputs=(inner,)))
        self.wide[node.output] = _LeadingAxes(inner, added, ())
        inputs = (inner, integers(self.flow.graph, [*range(added)]))
        return replace(node, op=Unsqueeze(), inputs=inputs)
