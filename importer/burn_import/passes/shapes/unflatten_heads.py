"""Gives stacks of matrices an axis for samples and one for heads again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import operators
from burn_ir.ops.shape import Concat, Reshape, Shape
from burn_ir.types import Type

#: How many nodes there may be between the two reshapes.
STEPS = 16
#: Operators that work element by element.
ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Neg", "Cast", "Where", "Tanh", "Identity")
#: Operators that treat every matrix of a stack alike.
INNER = ("MatMul", "Softmax", "Transpose", *ELEMENTWISE)


def stacks(graph: Graph) -> Graph:
    """``graph`` with ``[b, h, m, n]`` where products are of ``[b * h, m, n]``.

    What PyTorch computes with ``bmm`` has samples and heads in one axis, from a reshape
    to one behind. Both go if nothing else reads what is between them; what comes of
    elsewhere is reshaped where it is made.
    """
    rewriter = _Rewriter(Dataflow(graph))
    for node in graph.nodes:
        rewriter.visit(node)
    nodes = []
    for node in graph.nodes:
        nodes += [*rewriter.instead.get(id(node), [node])]
    return changed(graph, nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    #: What stands for a node of the graph, or is put behind it.
    instead: dict[int, list[Node]] = field(default_factory=dict)
    #: Values of other origin that were reshaped, by name and heads.
    reshaped: dict[tuple[str, Dim], str] = field(default_factory=dict)

    def visit(self, node: Node) -> None:
        """Rewrite what leads to ``node``, if that is the second reshape."""
        if node.op.domain or node.op.onnx != "Reshape" or node.inputs[0] is None:
            return
        out, inner = self.flow.extents(node.output), self.flow.extents(node.inputs[0])
        if len(out) != 4 or len(inner) != 3:
            return
        if out[0] * out[1] != inner[0] or out[2:] != inner[1:]:
            return
        region = _Region(self.flow, out[0], out[1])
        if not region.found(node.inputs[0]):
            return
        self.apply(region, node)

    def apply(self, region: _Region, last: Node) -> None:
        names = dict(region.seeds)
        for name in region.entries:
            names[name] = self.entry(name, int(region.heads))
        for node in region.nodes:
            names[node.output] = self.flow.fresh(f"{node.output}.heads")
        for node in region.nodes:
            new = _unstacked(node, names)
            behind = self.stack(node, new) if self.is_asked_for(node) else []
            self.instead[id(node)] = [new, *behind]
        root = names[region.nodes[-1].output]
        identity = operators()[("", "Identity")]()
        self.instead[id(last)] = [replace(last, op=identity, inputs=(root,))]

    def is_asked_for(self, node: Node) -> bool:
        """Whether the extents of a result are asked for."""
        readers = self.flow.users.get(node.output, ())
        return any(reader.op.onnx == "Shape" for reader in readers)

    def stack(self, node: Node, apart: Node) -> list[Node]:
        """The nodes that make the result of ``node`` again."""
        extents = self.flow.extents(node.output)[1:]
        shape, nodes = self.shape(node, apart.output, (-1,), extents)
        return [*nodes, reshape(node, apart.output, shape, node.output)]

    def entry(self, name: str, heads: int) -> str:
        """``name`` with an axis for samples and one for heads."""
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
        """A shape of ``first`` and of the two ``last`` extents of a value, and the
        nodes that make it.
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
    """The reshape of a value, in the module that ``near`` is of."""
    return replace(near, op=Reshape(), inputs=(name, shape), outputs=(output,))


def _unstacked(node: Node, names: dict[str, str]) -> Node:
    """``node`` on operands with an axis more."""
    op, attrs = node.op, node.op.attrs()
    if op.onnx == "Transpose":
        op = op.with_attrs(perm=(0, 1, 3, 2))
    elif op.onnx == "Softmax" and attrs["axis"] > 0:
        op = op.with_attrs(axis=attrs["axis"] + 1)
    inputs = tuple(names.get(n, n) if n is not None else None for n in node.inputs)
    return replace(node, op=op, inputs=inputs, outputs=(names[node.output],))


class _Region:
    """The nodes between reshapes, of samples and heads in one axis."""

    def __init__(self, flow: Dataflow, batch: Dim, heads: Dim) -> None:
        self.flow, self.batch, self.heads = flow, batch, heads
        self.size = batch * heads
        #: What the nodes read, before it was stacked.
        self.seeds: dict[str, str] = {}
        #: What they read that was not.
        self.entries: list[str] = []
        #: In the order of the graph.
        self.nodes: list[Node] = []
        self._leads: dict[str, bool] = {}

    def found(self, root: str) -> bool:
        """Whether fewer reshapes will do; more values are reshaped for a product."""
        if self.seed(root) is not None or not self.leads(root, STEPS):
            return False
        self.collect(root, STEPS)
        if not self.entries:
            return True
        products = any(node.op.onnx == "MatMul" for node in self.nodes)
        made = all(name in self.flow.producers for name in self.entries)
        fewer = len(self.entries) <= len(self.seeds)
        return products and made and fewer and isinstance(self.heads, int)

    def is_stacked(self, name: str | None) -> bool:
        shape = self.flow.extents(name)
        return len(shape) == 3 and shape[0] == self.size

    def seed(self, name: str) -> str | None:
        """What ``name`` is the stack of."""
        node = self.flow.made_by(name, "Reshape")
        source = None if node is None else node.inputs[0]
        extents = (self.batch, self.heads, *self.flow.extents(name)[1:])
        return source if self.flow.extents(source) == extents else None

    def leads(self, name: str, steps: int) -> bool:
        """Whether a stack is made of seeds by nodes of which nothing else is read."""
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
        """Whether a node treats matrices alike, and is read by one other."""
        attrs = node.op.attrs()
        if node.op.onnx == "Transpose" and attrs["perm"] != (0, 2, 1):
            return False
        if node.op.onnx == "Softmax" and attrs["axis"] not in (-1, -2, 1, 2):
            return False
        readers = self.flow.users.get(node.output, [])
        others = [reader for reader in readers if reader.op.onnx != "Shape"]
        return len(others) == 1 and node.output not in self.flow.outputs

    def is_flat(self, name: str) -> bool:
        """Whether a value is the same for all matrices of a stack."""
        t: Type | None = self.flow.graph.type(name)
        if t is None or t.shape is None or len(t.shape) > 3:
            return False
        return len(t.shape) < 3 or t.shape[0] == 1

    def collect(self, name: str, steps: int) -> None:
        """Put what leads to a stack into the lists."""
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
