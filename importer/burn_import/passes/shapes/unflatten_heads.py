"""Restores separate axes for samples and heads in batched matrix products."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import operators
from burn_ir.ops.shape import Concat, Reshape, Shape
from burn_ir.types import Type

#: The most nodes between the two reshapes.
STEPS = 16
#: Elementwise operators.
ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Neg", "Cast", "Where", "Tanh", "Identity")
#: Operators that treat every matrix of the batch alike.
INNER = ("MatMul", "Softmax", "Transpose", *ELEMENTWISE)


def unflatten_heads(graph: Graph) -> Graph:
    """Return ``graph`` with ``[b, h, m, n]`` where products are of ``[b * h, m, n]``.

    PyTorch's ``bmm`` has samples and heads in one axis, between two reshapes. Both are
    removed if nothing else reads the values in between; operands from elsewhere are
    reshaped where they are produced.
    """
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.visit(node)
    nodes = []
    for node in graph.nodes:
        nodes += [*rewriter.instead.get(id(node), [node])]
    return with_nodes(graph, nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    #: The nodes that replace or follow a node of the graph, by its id.
    instead: dict[int, list[Node]] = field(default_factory=dict)
    #: Reshaped operands from elsewhere, by name and number of heads.
    reshaped: dict[tuple[str, Dim], str] = field(default_factory=dict)

    def visit(self, node: Node) -> None:
        """Rewrite the region before ``node`` if that is the second reshape."""
        if node.op.domain or node.op.onnx != "Reshape" or node.inputs[0] is None:
            return
        out, inner = self.flow.extents(node.output), self.flow.extents(node.inputs[0])
        if len(out) != 4 or len(inner) != 3:
            return
        if out[0] * out[1] != inner[0] or out[2:] != inner[1:]:
            return
        region = _Region(self.flow, out[0], out[1])
        if not region.is_profitable(node.inputs[0]):
            return
        self.apply(region, node)

    def apply(self, region: _Region, last: Node) -> None:
        names = dict(region.seeds)
        for name in region.entries:
            names[name] = self.entry(name, int(region.heads))
        for node in region.nodes:
            names[node.output] = self.flow.fresh(f"{node.output}.heads")
        for node in region.nodes:
            new = _with_heads_axis(node, names)
            behind = self.stack(node, new) if self.is_asked_for(node) else []
            self.instead[id(node)] = [new, *behind]
        root = names[region.nodes[-1].output]
        identity = operators()[("", "Identity")]()
        self.instead[id(last)] = [replace(last, op=identity, inputs=(root,))]

    def is_asked_for(self, node: Node) -> bool:
        """Return whether a ``Shape`` reads the result of a node."""
        readers = self.flow.users.get(node.output, ())
        return any(reader.op.onnx == "Shape" for reader in readers)

    def stack(self, node: Node, apart: Node) -> list[Node]:
        """Return the nodes that recompute the flattened result of ``node``."""
        extents = self.flow.extents(node.output)[1:]
        shape, nodes = self.shape(node, apart.output, (-1,), extents)
        return [*nodes, reshape(node, apart.output, shape, node.output)]

    def entry(self, name: str, heads: int) -> str:
        """Return ``name`` with separate axes for samples and heads."""
        if (name, heads) not in self.reshaped:
            output = self.flow.fresh(f"{name}.heads")
            maker = self.flow.producers[name]
            first, extents = (-1, heads), self.flow.extents(name)[1:]
            shape, nodes = self.shape(maker, name, first, extents)
            new = [*nodes, reshape(maker, name, shape, output)]
            self.instead.setdefault(id(maker), [maker]).extend(new)
            self.reshaped[name, heads] = output
        return self.reshaped[name, heads]

    def shape(
        self, near: Node, name: str, first: tuple[int, ...], last: tuple[Dim, ...]
    ) -> tuple[str, list[Node]]:
        """Return a shape of ``first`` and the two ``last`` extents of a value.

        The nodes that compute it are returned with its name.
        """
        graph = self.flow.graph
        numbers = [n for n in last if isinstance(n, int)]
        if len(numbers) == len(last):
            return integers(graph, [*first, *numbers]), []
        rest, whole = (self.flow.fresh(f"{name}.{part}") for part in ("last", "shape"))
        parts = (integers(graph, [*first]), rest)
        return whole, [
            replace(near, op=Shape(start=-2), inputs=(name,), outputs=(rest,)),
            replace(near, op=Concat(axis=0), inputs=parts, outputs=(whole,)),
        ]


def reshape(near: Node, name: str, shape: str, output: str) -> Node:
    """Return the reshape of a value, in the scope of ``near``."""
    return replace(near, op=Reshape(), inputs=(name, shape), outputs=(output,))


def _with_heads_axis(node: Node, names: dict[str, str]) -> Node:
    """Return ``node`` for operands with one more axis."""
    op, attrs = node.op, node.op.attrs()
    if op.onnx == "Transpose":
        op = op.with_attrs(perm=(0, 1, 3, 2))
    elif op.onnx == "Softmax" and attrs["axis"] > 0:
        op = op.with_attrs(axis=attrs["axis"] + 1)
    inputs = tuple(names.get(n, n) if n is not None else None for n in node.inputs)
    return replace(node, op=op, inputs=inputs, outputs=(names[node.output],))


class _Region:
    """The nodes between two reshapes, with samples and heads in one axis."""

    def __init__(self, flow: Dataflow, batch: Dim, heads: Dim) -> None:
        self.flow, self.batch, self.heads = flow, batch, heads
        self.size = batch * heads
        #: The original operands of flattened values that the nodes read.
        self.seeds: dict[str, str] = {}
        #: Other operands, which are reshaped.
        self.entries: list[str] = []
        #: The nodes, in the order of the graph.
        self.nodes: list[Node] = []
        self._leads: dict[str, bool] = {}

    def is_profitable(self, root: str) -> bool:
        """Return whether the rewrite removes at least as many reshapes as it adds."""
        if self.seed(root) is not None or not self.leads(root, STEPS):
            return False
        self.collect(root, STEPS)
        if not self.entries:
            return True
        products = any(node.op.onnx == "MatMul" for node in self.nodes)
        are_computed = all(name in self.flow.producers for name in self.entries)
        fewer = len(self.entries) <= len(self.seeds)
        return products and are_computed and fewer and isinstance(self.heads, int)

    def is_stacked(self, name: str | None) -> bool:
        shape = self.flow.extents(name)
        return len(shape) == 3 and shape[0] == self.size

    def seed(self, name: str) -> str | None:
        """Return the value of which ``name`` is the flattened form."""
        node = self.flow.made_by(name, "Reshape")
        source = None if node is None else node.inputs[0]
        extents = (self.batch, self.heads, *self.flow.extents(name)[1:])
        return source if self.flow.extents(source) == extents else None

    def leads(self, name: str, steps: int) -> bool:
        """Return whether flattened values and inner nodes alone produce a value."""
        if name not in self._leads:
            self._leads[name] = self.seed(name) is not None or self.passes(name, steps)
        return self._leads[name]

    def passes(self, name: str, steps: int) -> bool:
        node = self.flow.made_by(name, *INNER)
        if node is None or not steps or not self.is_inner(node):
            return False
        operands = [operand for operand in node.inputs if operand is not None]
        if not all(self.is_stacked(n) or self.is_flat(n) for n in operands):
            return False
        stacked = [name for name in operands if self.is_stacked(name)]
        return any([self.leads(name, steps - 1) for name in stacked])

    def is_inner(self, node: Node) -> bool:
        """Return whether a node treats matrices alike and has one reader."""
        attrs = node.op.attrs()
        if node.op.onnx == "Transpose" and attrs["perm"] != (0, 2, 1):
            return False
        if node.op.onnx == "Softmax" and attrs["axis"] not in (-1, -2, 1, 2):
            return False
        readers = self.flow.users.get(node.output, [])
        others = [reader for reader in readers if reader.op.onnx != "Shape"]
        return len(others) == 1 and node.output not in self.flow.outputs

    def is_flat(self, name: str) -> bool:
        """Return whether a value is the same for all matrices of the batch."""
        t: Type | None = self.flow.graph.type(name)
        if t is None or t.shape is None or len(t.shape) > 3:
            return False
        return len(t.shape) < 3 or t.shape[0] == 1

    def collect(self, name: str, steps: int) -> None:
        """Collect the nodes, seeds and entries that lead to a value."""
        seed = self.seed(name)
        if seed is not None:
            self.seeds[name] = seed
        elif not self.leads(name, steps):
            if name not in self.entries:
                self.entries.append(name)
        else:
            node = self.flow.producers[name]
            for operand in dict.fromkeys(node.inputs):
                if operand is not None and self.is_stacked(operand):
                    self.collect(operand, steps - 1)
            self.nodes.append(node)
