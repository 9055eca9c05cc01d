"""Query and key of an attention, and the factors of their product."""

from dataclasses import replace

from burn_import.passes.attention.mask_conditions import broadcasts
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.ops.shape import Transpose
from burn_ir.types import Type

#: The most factors that are followed.
STEPS = 16


class Operands:
    """Operands of the first product of attention."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.query = self.key = ""
        self.product: Node
        #: The product of all constant factors of queries, keys and scores.
        self.scale = 1.0
        #: Nodes that multiply scores by a tensor with one element per row, with the
        #: position of the scores. The query can be multiplied instead.
        self.factors: list[tuple[Node, int]] = []
        #: Transposes of the key that are inserted.
        self.key_transposes: list[Node] = []
        #: Scaled values, replaced by their operand since the factor is part of the
        #: scale.
        self.aliases: dict[str, str] = {}
        self.key_type: Type | None = None

    def bind(self, product: Node) -> bool:
        """Return whether ``product`` multiplies a query and a transposed key."""
        self.product = product
        query, key = product.inputs
        self.query = self.unscaled(query, product, []) or ""
        path: list[Node] = []
        key = self.unscaled(key, product, path)
        self.key_type = self.flow.graph.type(key)
        back = self.with_swapped_axes(key, path)
        self.key = self.unscaled(back, product, path) or ""
        return bool(self.query and self.key)

    def scaled(self, node: Node) -> str | None:
        """Return the scores that ``node`` scales by a constant or a factor per row."""
        name, factor = self.flow.factor(node)
        self.scale *= factor
        if name is not None or node.op.onnx not in ("Mul", "Div"):
            return name
        for position in range(1 if node.op.onnx == "Div" else 2):
            scores, other = node.inputs[position], node.inputs[1 - position]
            t = self.flow.graph.type(other)
            if t is None or t.shape is None or t.shape[-1:] not in ((), (1,)):
                continue
            if self.flow.extents(scores) == self.flow.extents(node.output):
                self.factors.append((node, position))
                return scores
        return None

    def apply_factors(self) -> list[Node]:
        """Return nodes that apply :attr:`factors` to the query; updates ``query``."""
        nodes = []
        for node, position in reversed(self.factors):
            output = self.flow.fresh(f"{node.output}.query")
            inputs = list(node.inputs)
            inputs[position] = self.query
            nodes.append(replace(node, inputs=tuple(inputs), outputs=(output,)))
            self.query = output
        return nodes

    def unscaled(self, name: str | None, product: Node, path: list[Node]) -> str | None:
        """Return ``name`` without its last constant factors.

        ``path`` has the nodes from ``name`` to the product and is extended.
        """
        for _ in range(STEPS):
            node = self.flow.made_by(name, "Mul", "Div")
            inner, factor = self.flow.factor(node)
            if node is None or inner is None:
                break
            self.scale *= factor
            path.append(node)
            name = inner
        self.unscale_before_split(name, product, path)
        return name

    def unscale_before_split(
        self, name: str | None, product: Node, path: list[Node]
    ) -> None:
        """Remove a factor from before the split of heads, if it has no other reader."""
        inner = list(path)
        for op in ("Transpose", "Reshape"):
            node = self.flow.made_by(name, op)
            if node is None:
                return
            inner.append(node)
            name = node.inputs[0]
        scaled = self.flow.made_by(name, "Mul", "Div")
        source, factor = self.flow.factor(scaled)
        if scaled is None or source is None:
            return
        if self.flow.are_inside([*inner, scaled], product):
            self.scale *= factor
            self.aliases[scaled.output] = source

    def with_swapped_axes(self, name: str | None, path: list[Node]) -> str | None:
        """Return the operand whose last two axes are swapped in ``name``."""
        rank = len(self.flow.extents(name))
        if rank not in (3, 4) or name is None:
            return None
        node = self.flow.made_by(name, "Transpose")
        perm, source, near = tuple(range(rank)), name, self.product
        if node is not None:
            path.append(node)
            perm, source, near = node.op.attrs()["perm"], str(node.inputs[0]), node
        perm = (*perm[:-2], perm[-1], perm[-2])
        if perm == tuple(range(rank)):
            return source
        output = self.flow.fresh(f"{name}.mT")
        new = replace(near, op=Transpose(perm=perm), inputs=(source,))
        self.key_transposes.append(replace(new, outputs=(output,)))
        return output

    def fit(self, scores: tuple[Dim, ...]) -> bool:
        """Return whether all factors broadcast to the queries and have their dtype."""
        query = self.flow.graph.type(self.query)
        types = [self.flow.graph.type(n.inputs[1 - at]) for n, at in self.factors]
        return all(
            t is not None
            and t.shape is not None
            and query is not None
            and t.dtype == query.dtype
            and broadcasts(t.shape, scores)
            for t in types
        )
