"""Recovers attention from the products, the mask and the softmax it is written as."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from burn.dtypes import HALVES, float32, float64
from burn_import.passes.conditions import Conditions
from burn_import.passes.dataflow import Dataflow
from burn_import.passes.masks import Mask, Masks
from burn_import.passes.rewrite import changed, common_scope, rename
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention
from burn_ir.ops.shape import Transpose
from burn_ir.types import Type

#: How many nodes there may be between the two products.
STEPS = 16


def attention(graph: Graph) -> Graph:
    """``graph`` with ``Attention`` for ``softmax(q @ k^T * scale + mask) @ v``.

    Heads are an axis of their own. The scale may be on the query, the key, both or
    their product; a soft cap and masks may follow. Of the scores and the weights
    nothing else may be read. A row of which everything is hidden is zeros afterwards,
    so it must be so before, or it must be sure that there is none. Results may differ
    by rounding, and half types are rounded once instead of in every step.
    """
    flow = Dataflow(graph)
    rewriter = _Rewriter(flow, Conditions(flow))
    nodes = [new for node in graph.nodes for new in rewriter.rewritten(node)]
    aliases = rewriter.aliases
    kept = [node for node in nodes if node.outputs[0] not in aliases]
    result = changed(graph, kept)
    return result if result is graph else rename(result, aliases)


@dataclass
class _Rewriter:
    flow: Dataflow
    conditions: Conditions
    #: Values that lose a factor which became part of a scale.
    aliases: dict[str, str] = field(default_factory=dict)

    def rewritten(self, node: Node) -> list[Node]:
        """``node``, or the nodes that stand for it."""
        if node.op.domain or node.op.onnx != "MatMul":
            return [node]
        match = _Match(self.flow, self.conditions, node)
        if not match.found():
            return [node]
        self.aliases.update(match.aliases)
        return self.nodes_of(match, node)

    def nodes_of(self, match: _Match, node: Node) -> list[Node]:
        inputs = (match.query, match.key, node.inputs[1])
        mask = match.masks.combined()
        scope, classes = common_scope(match.product, node)
        new = replace(
            node,
            op=Attention(scale=match.scale_or_default(), softcap=match.softcap),
            inputs=inputs if mask is None else (*inputs, mask),
            scope=scope,
            classes=classes,
        )
        return [*match.turned, *match.masks.nodes, new]


class _Match:
    """What is found on the way from the second product to the operands."""

    def __init__(self, flow: Dataflow, conditions: Conditions, last: Node) -> None:
        self.flow, self.last = flow, last
        self.masks = Masks(flow, conditions, last)
        self.scale, self.softcap = 1.0, 0.0
        #: Whether a row that is hidden wholly is zeros.
        self.guarded = False
        #: Nodes that are there for attention alone.
        self.inner: list[Node] = []
        #: Nodes that turn the key back.
        self.turned: list[Node] = []
        self.aliases: dict[str, str] = {}
        self.query = self.key = ""
        self.turned_type: Type | None = None
        self.size: Dim = 0
        self.product = last

    def found(self) -> bool:
        """Whether ``last`` is the end of attention, which is taken apart by this."""
        softmax = self.softmax(self.last.inputs[0])
        if softmax is None or not self.scores(softmax.inputs[0]):
            return False
        if not self.operands() or not self.fits():
            return False
        if not self.flow.are_inside(self.inner, self.last):
            return False
        return self.masks.are_exact(self.guarded)

    def softmax(self, name: str | None) -> Node | None:
        """The softmax that makes the weights, through a guard and casts."""
        name = self.narrowed(name)
        guard = self.flow.made_by(name, "Where")
        if guard is not None:
            name = self.narrowed(guard.inputs[2])
        softmax = self.flow.made_by(name, "Softmax")
        x = None if softmax is None else self.flow.graph.type(softmax.inputs[0])
        if softmax is None or x is None or x.shape is None:
            return None
        if softmax.op.attrs()["axis"] not in (-1, len(x.shape) - 1):
            return None
        if guard is not None and not self.is_guard(guard, softmax):
            return None
        self.inner.append(softmax)
        return softmax

    def narrowed(self, name: str | None) -> str | None:
        """What was cast to a half type, if ``name`` was."""
        node = self.flow.made_by(name, "Cast", "CastLike")
        if node is None or not self.widens(node.output, node.inputs[0]):
            return name
        self.inner.append(node)
        return node.inputs[0]

    def widens(self, half: str | None, wide: str | None) -> bool:
        """Whether two values are of a half type and of float32."""
        a, b = self.flow.graph.type(half), self.flow.graph.type(wide)
        return (
            a is not None and b is not None and a.dtype in HALVES and b.dtype == float32
        )

    def is_guard(self, guard: Node, softmax: Node) -> bool:
        """Whether a ``Where`` puts zeros in place of rows that are hidden wholly."""
        condition, zero, _ = guard.inputs
        source = self.flow.made_by(zero, "CastLike", "Cast")
        if self.flow.scalar(zero if source is None else source.inputs[0]) != 0:
            return False
        self.inner += [guard] if source is None else [guard, source]
        stored = self.flow.stored(condition)
        if stored is not None:
            return not stored.any()
        self.guarded = True
        nan = self.flow.made_by(condition, "IsNaN")
        if nan is not None:
            self.inner.append(nan)
            return nan.inputs[0] == softmax.output
        return self.finds_hidden_rows(condition, softmax)

    def finds_hidden_rows(self, condition: str | None, softmax: Node) -> bool:
        """Whether ``condition`` is that the largest score is minus infinity."""
        equal = self.flow.made_by(condition, "Equal")
        if equal is None:
            return False
        for name, other in (equal.inputs, equal.inputs[::-1]):
            largest, bound = self.flow.made_by(name, "ReduceMax"), self.flow.stored(
                other
            )
            if largest is None or bound is None or not np.isneginf(bound).all():
                continue
            self.inner += [equal, largest]
            return self.flow.axes(largest) == (-1,) and largest.inputs[0] in (
                softmax.inputs[0],
                self.before_cast(softmax.inputs[0]),
            )
        return False

    def before_cast(self, name: str | None) -> str | None:
        node = self.flow.made_by(name, "Cast", "CastLike")
        return None if node is None else node.inputs[0]

    def scores(self, name: str | None) -> bool:
        """Whether ``name`` is the product with what is done to it, outside in."""
        stage = 0
        for _ in range(STEPS):
            product = self.flow.made_by(name, "MatMul")
            if product is not None:
                self.product = product
                self.inner.append(product)
                return True
            node = self.flow.made_by(name, *_STEPS)
            if node is None:
                return False
            step, inner = self.step(node, stage)
            if inner is None or step < stage:
                return False
            self.inner.append(node)
            stage, name = step, inner
        return False

    def step(self, node: Node, stage: int) -> tuple[int, str | None]:
        """The stage of a node (mask, soft cap, scale), and the scores it is about."""
        op = node.op.onnx
        if op == "Cast":
            widens = self.widens(node.inputs[0], node.output)
            return stage, node.inputs[0] if widens else None
        if op == "Add":
            return 0, self.added(node)
        if op == "Where":
            return 0, self.masks.chosen(node)
        capped = self.capped(node) if stage == 0 else None
        if capped is not None:
            return 1, capped
        return 2, self.scaled(node)

    def added(self, node: Node) -> str | None:
        """The operand of an ``Add`` that is scores; the other one is a mask."""
        for name, other in (node.inputs, node.inputs[::-1]):
            if name is not None and other is not None and self.leads(name, STEPS):
                self.masks.found.append(Mask(other))
                return name
        return None

    def leads(self, name: str | None, steps: int) -> bool:
        """Whether ``name`` comes of a product by steps that scores may go through."""
        node = self.flow.made_by(name, "MatMul", "Tanh", *_STEPS)
        if node is None or not steps:
            return False
        if node.op.onnx == "MatMul":
            return True
        return any(self.leads(other, steps // 2) for other in node.inputs)

    def capped(self, node: Node) -> str | None:
        """What is squeezed by ``tanh(x / cap) * cap``."""
        if node.op.onnx != "Mul":
            return None
        for name, other in (node.inputs, node.inputs[::-1]):
            tanh, cap = self.flow.made_by(name, "Tanh"), self.flow.scalar(other)
            if tanh is None or cap is None or cap <= 0:
                continue
            scaled = self.flow.made_by(tanh.inputs[0], "Mul", "Div")
            inner, factor = self.flow.factor(scaled)
            if scaled is None or inner is None or abs(factor * cap - 1) > 1e-6:
                return None
            self.softcap = cap
            self.inner += [tanh, scaled]
            return inner
        return None

    def scaled(self, node: Node) -> str | None:
        name, factor = self.flow.factor(node)
        self.scale *= factor
        return name

    def operands(self) -> bool:
        """Whether the operands of the first product are a query and a turned key."""
        query, key = self.product.inputs
        self.query = self.unscaled(query, []) or ""
        path: list[Node] = []
        key = self.unscaled(key, path)
        self.turned_type = self.flow.graph.type(key)
        self.key = self.unscaled(self.turned_back(key, path), path) or ""
        return bool(self.query and self.key)

    def unscaled(self, name: str | None, path: list[Node]) -> str | None:
        """``name`` without the factors that it was multiplied by last.

        ``path`` has the nodes from there to the product, and gets more.
        """
        for _ in range(STEPS):
            node = self.flow.made_by(name, "Mul", "Div")
            inner, factor = self.flow.factor(node)
            if node is None or inner is None:
                break
            self.scale *= factor
            path.append(node)
            name = inner
        self.unscale_before_split(name, path)
        return name

    def unscale_before_split(self, name: str | None, path: list[Node]) -> None:
        """Take a factor from before heads were split, if nobody else sees it."""
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
        if self.flow.are_inside([*inner, scaled], self.product):
            self.scale *= factor
            self.aliases[scaled.output] = source

    def turned_back(self, name: str | None, path: list[Node]) -> str | None:
        """The value of which ``name`` is the transpose of the last two axes."""
        node = self.flow.made_by(name, "Transpose", "Reshape")
        if node is None:
            return None
        if node.op.onnx == "Reshape":
            return self.turned_as_stack(node, path)
        path.append(node)
        perm = node.op.attrs()["perm"]
        if perm is None or len(perm) != 4:
            return None
        perm = (*perm[:2], perm[3], perm[2])
        if perm == (0, 1, 2, 3):
            return node.inputs[0]
        output = self.flow.fresh(f"{node.output}.mT")
        op = Transpose(perm=perm)
        self.turned.append(replace(node, op=op, outputs=(output,)))
        return output

    def turned_as_stack(self, node: Node, path: list[Node]) -> str | None:
        """What PyTorch's exporter turns as a stack of matrices: ``[b * h, t, d]``."""
        turned = self.flow.made_by(node.inputs[0], "Transpose")
        if turned is None or turned.op.attrs()["perm"] != (0, 2, 1):
            return None
        stacked = self.flow.made_by(turned.inputs[0], "Reshape")
        if stacked is None:
            return None
        path += [node, turned, stacked]
        types = [self.flow.graph.type(n) for n in (stacked.inputs[0], stacked.output)]
        key, stack, result = *types, self.flow.graph.type(node.output)
        if key is None or stack is None or result is None:
            return None
        if not (key.shape and stack.shape and result.shape) or len(key.shape) != 4:
            return None
        batch, heads, columns, size = key.shape
        kept = stack.shape[1:] == (columns, size)
        same = result.shape == (batch, heads, size, columns)
        return stacked.inputs[0] if kept and same else None

    def fits(self) -> bool:
        """Whether nothing is broadcast but masks, and the dtype is one."""
        names = self.query, self.last.inputs[1], self.last.output
        types = [self.flow.graph.type(name) for name in names]
        types.append(self.turned_type)
        if any(t is None or t.shape is None or len(t.shape) != 4 for t in types):
            return False
        query, value, out, key = (t for t in types if t is not None)
        if len({t.dtype for t in (query, value, out, key)}) > 1:
            return False
        batch, heads, rows, size = query.dims
        columns = key.dims[3]
        self.size = size
        return (
            key.dims == (batch, heads, size, columns)
            and value.dims[:3] == (batch, heads, columns)
            and self.masks.fit((batch, heads, rows, columns))
        )

    def scale_or_default(self) -> float | None:
        """The scale, None if it is that of the definition, 1 / sqrt(size)."""
        wide = self.flow.graph.types[self.last.output].dtype == float64
        error = 1e-14 if wide else 4e-7
        size = self.size if isinstance(self.size, int) else 0
        if abs(self.scale * size**0.5 - 1) < error:
            return None
        return self.scale if wide else float(str(np.float32(self.scale)))


_STEPS = ("Add", "Where", "Mul", "Div", "Cast")
