"""Removes transposes of leading axes around functions of the last axis."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from burn_import.passes.cleanup.identities import identities
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.op import Op, operators
from burn_ir.ops.fused import Conv1D, Linear
from burn_ir.ops.indexing import Gather
from burn_ir.ops.shape import Reshape, Shape, Transpose

Order = tuple[int, ...]


def leading_transposes(graph: Graph) -> Graph:
    """Return ``graph`` with linear layers of ``x`` instead of its transpose.

    PyTorch's attention puts the sequence before the batch, projects the features and
    transposes again. A transpose moves behind linear layers, reshapes that split or
    join the last axes, splits and selections, up to transposes that absorb it. It stays
    where a reader is anything else, or if as many transposes would be left.
    """
    while "Transpose" in graph.operators:
        result = _sweep(Dataflow(graph))
        if result is graph:
            break
        graph = identities(infer(result))
    return graph


def _sweep(flow: Dataflow) -> Graph:
    """Return the graph without the transposes that can be removed independently."""
    replaced: dict[int, list[Node]] = {}
    for node in flow.graph.nodes:
        order = _order(node)
        if order is None or node.inputs[0] is None or id(node) in replaced:
            continue
        region = _Region(flow, {**replaced, id(node): []})
        moves = region.push(node.output, node.inputs[0], order)
        if moves and region.added < 1 + region.removed:
            replaced = region.replaced
    nodes = [new for n in flow.graph.nodes for new in replaced.get(id(n), [n])]
    return with_nodes(flow.graph, nodes)


def _order(node: Node) -> Order | None:
    """Return the permutation of a transpose; None for other nodes."""
    return node.op.perm if isinstance(node.op, Transpose) else None


@dataclass
class _Region:
    """The readers of a transposed value, rewritten to read the value itself."""

    flow: Dataflow
    #: The nodes that replace a node of the graph, by its identity.
    replaced: dict[int, list[Node]]
    #: The numbers of transposes that are inserted, and removed apart from the first.
    added: int = 0
    removed: int = 0

    def push(self, name: str, source: str, order: Order) -> bool:
        """Rewrite all readers of ``name``: ``source`` with its axes in ``order``."""
        readers = {id(user): user for user in self.flow.users.get(name, ())}
        if not readers or name in self.flow.outputs:
            return False
        return all(self.rewrite(one, source, order) for one in readers.values())

    def rewrite(self, node: Node, source: str, order: Order) -> bool:
        """Rewrite one reader; return whether the transpose moves behind it."""
        is_operand = node.inputs[0] not in node.inputs[1:]
        if id(node) in self.replaced or not is_operand or node.op.bodies():
            return False
        if isinstance(node.op, Transpose):
            return self.absorb(node, source, order)
        if isinstance(node.op, Linear | Conv1D):
            is_last = order[-1] == len(order) - 1
            return is_last and self.follow(node, node.op, source, order)
        if node.op.domain:
            return False
        if isinstance(node.op, Shape):
            return self.measure(node, node.op, source, order)
        if node.op.onnx == "Reshape":
            return self.reshape(node, source, order)
        if node.op.onnx in ("Gather", "Split"):
            return self.take(node, source, order)
        return False

    def absorb(self, node: Node, source: str, order: Order) -> bool:
        """Compose the transpose with another one."""
        outer = _order(node)
        if outer is None:
            return False
        perm = tuple(order[axis] for axis in outer)
        identity = operators()[("", "Identity")]()
        is_removed = perm == tuple(range(len(perm)))
        self.removed += is_removed
        op = identity if is_removed else Transpose(perm=perm)
        self.replaced[id(node)] = [replace(node, op=op, inputs=(source,))]
        return True

    def follow(self, node: Node, op: Op, source: str, order: Order) -> bool:
        """Apply ``op`` to ``source``; move the transpose, now ``order``, behind it."""
        inputs = (source, *node.inputs[1:])
        if order == tuple(range(len(order))):
            self.replaced[id(node)] = [replace(node, op=op, inputs=inputs)]
            return True
        names = [self.flow.fresh(f"{name}.rows") for name in node.outputs if name]
        outputs = tuple(names)
        self.replaced[id(node)] = [replace(node, op=op, inputs=inputs, outputs=outputs)]
        pairs = zip(filter(None, node.outputs), names, strict=True)
        return all(self.push(old, new, order) for old, new in pairs)

    def reshape(self, node: Node, source: str, order: Order) -> bool:
        """Move the transpose behind a reshape that splits or joins the last axes."""
        x, out = self.flow.extents(node.inputs[0]), self.flow.extents(node.output)
        kept = min(len(x), len(out)) - 1
        if kept < 1 or x[:kept] != out[:kept] or not _are_equal(x[kept:], out[kept:]):
            return False
        lead, last = order[:kept], order[kept:]
        if sorted(lead) != list(range(kept)) and len(last) == 1:
            return False
        inner = (*sorted(lead), *last)
        before: list[Node] = []
        if inner != tuple(range(len(order))):
            name = self.flow.fresh(f"{node.output}.turned")
            transpose = Transpose(perm=inner)
            before = [replace(node, op=transpose, inputs=(source,), outputs=(name,))]
            source = name
            self.added += 1
        ranks = {axis: rank for rank, axis in enumerate(sorted(lead))}
        moved = (*(ranks[axis] for axis in lead), *range(kept, len(out)))
        shape = integers(self.flow.graph, [0] * kept + [int(n) for n in out[kept:]])
        whole = replace(node, inputs=(node.inputs[0], shape))
        result = self.follow(whole, Reshape(), source, moved)
        self.replaced[id(node)] = [*before, *self.replaced.pop(id(whole))]
        return result

    def measure(self, node: Node, op: Shape, source: str, order: Order) -> bool:
        """Read one extent, or all in the order of the transpose."""
        axes = order[op.start : op.end]
        if len(axes) == 1:
            one = replace(op, start=axes[0], end=axes[0] + 1)
            self.replaced[id(node)] = [replace(node, op=one, inputs=(source,))]
            return True
        name = self.flow.fresh(f"{node.output}.rows")
        inputs = (name, integers(self.flow.graph, list(axes)))
        self.replaced[id(node)] = [
            replace(node, op=Shape(), inputs=(source,), outputs=(name,)),
            replace(node, op=Gather(), inputs=inputs),
        ]
        return True

    def take(self, node: Node, source: str, order: Order) -> bool:
        """Move the transpose behind a selection of one index, or a split."""
        axis = int(node.op.attrs()["axis"]) % len(order)
        op = node.op.with_attrs(axis=order[axis])
        if node.op.onnx == "Split":
            return None not in node.outputs and self.follow(node, op, source, order)
        index = self.flow.stored(node.inputs[1])
        if index is None or index.ndim:
            return False
        others = [n for position, n in enumerate(order) if position != axis]
        moved = tuple(n - (n > order[axis]) for n in others)
        return self.follow(node, op, source, moved)


def _are_equal(some: Sequence[Dim], others: Sequence[Dim]) -> bool:
    """Return whether axes of known extents have equally many elements, and some."""
    numbers = [[n for n in dims if isinstance(n, int)] for dims in (some, others)]
    if [len(one) for one in numbers] != [len(some), len(others)]:
        return False
    return prod(numbers[0]) == prod(numbers[1]) > 0
