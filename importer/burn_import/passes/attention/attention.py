"""Recovers attention from its matrix products, masks and softmax."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn.dtypes import HALVES, DType, bfloat16, float16, float32, float64
from burn_import.passes.attention.mask_conditions import Conditions
from burn_import.passes.attention.masks import Mask, Masks, Operation
from burn_import.passes.attention.operands import Operands
from burn_import.rewriting.arrays import core
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, rename, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention
from burn_ir.ops.dropout import AttentionWithDropout, TrackedDropout
from burn_ir.ops.programs import AnyOf

#: The most nodes between the two matrix products.
STEPS = 16


def attention(graph: Graph) -> Graph:
    """Return ``graph`` with ``Attention`` for ``softmax(q @ k^T * scale + mask) @ v``.

    Operands have rank 4 (batch, heads, rows, features), or rank 3 with one head. The
    scale may multiply the query, the key, both or their product, and may be a tensor
    with one element per row. A soft cap and masks may follow. The scores and the
    weights must have no other readers. ``Attention`` returns zeros for a fully masked
    row, so the original must do the same, or such rows must be impossible. Results may
    differ by rounding; half types are rounded once instead of after every step.
    """
    flow = Dataflow(graph)
    rewriter = _Rewriter(flow, Conditions(flow))
    nodes = [new for node in graph.nodes for new in rewriter.rewrite(node)]
    aliases = rewriter.aliases
    live = [node for node in nodes if node.outputs[0] not in aliases]
    result = with_nodes(graph, live)
    return result if result is graph else rename(result, aliases)


@dataclass
class _Rewriter:
    flow: Dataflow
    conditions: Conditions
    #: Scaled values, replaced by their operand since the factor is part of the scale.
    aliases: dict[str, str] = field(default_factory=dict)
    #: The result of each mask operation of the graph so far, for reuse.
    masks: dict[Operation, str] = field(default_factory=dict)

    def rewrite(self, node: Node) -> list[Node]:
        """Return ``node``, or the nodes that replace it."""
        if isinstance(node.op, Attention):
            return [_with_default_scale(node, self.flow)]
        if node.op.domain or node.op.onnx != "MatMul":
            return [node]
        match = _Match(self.conditions, node, self.masks)
        if not match.is_complete():
            return [node]
        self.aliases.update(match.operands.aliases)
        return self.nodes_of(match, node)

    def nodes_of(self, match: _Match, node: Node) -> list[Node]:
        mask, operands = match.masks.combine(), match.operands
        factors = operands.apply_factors()
        inputs = (operands.query, operands.key, node.inputs[1])
        for mask_node in match.masks.nodes:
            self.masks.setdefault(
                (type(mask_node.op), mask_node.inputs), mask_node.output
            )
        scope, classes = common_scope(match.product, node)
        new = replace(
            node,
            op=match.op(),
            inputs=inputs if mask is None else (*inputs, mask),
            scope=scope,
            classes=classes,
        )
        return [*operands.key_transposes, *factors, *match.masks.nodes, new]


class _Match:
    """A match of attention, from the second product to the operands."""

    def __init__(
        self, conditions: Conditions, last: Node, earlier_masks: dict[Operation, str]
    ) -> None:
        self.flow, self.last = conditions.flow, last
        self.masks = Masks(conditions, last, earlier_masks)
        self.operands = Operands(self.flow)
        self.softcap = 0.0
        #: Whether a fully masked row is zeros.
        self.guarded = False
        #: Nodes that are removed because attention replaces them.
        self.inner: list[Node] = []
        self.size: Dim = 0
        #: The ratio of dropout of the weights.
        self.dropout = 0.0
        #: The number of nodes between a value and the first product.
        self.distances: dict[str, int] = {}
        self.product = last

    def is_complete(self) -> bool:
        """Return whether ``last`` ends an attention; binds its parts."""
        scores = self.before_softmax(self.last.inputs[0])
        if scores is None or not self.scores(scores):
            return False
        if not self.operands.bind(self.product) or not self.have_fitting_types():
            return False
        if not self.flow.are_inside(self.inner, self.last):
            return False
        return self.masks.are_exact(self.guarded)

    def before_softmax(self, name: str | None) -> str | None:
        """Return the operand of the softmax, skipping guards and casts."""
        name = self.skip_narrowing_cast(self.skip_dropout(name))
        guard = self.flow.made_by(name, "Where")
        if guard is not None:
            name = self.skip_narrowing_cast(guard.inputs[2])
        softmax = self.flow.made_by(name, "Softmax")
        x = None if softmax is None else self.flow.graph.type(softmax.inputs[0])
        if softmax is None or x is None or x.shape is None:
            return None
        if softmax.op.attrs()["axis"] not in (-1, len(x.shape) - 1):
            return None
        self.inner.append(softmax)
        scores = softmax.inputs[0]
        if guard is None:
            return scores
        scores = self.before_guard(guard, scores)
        return scores if self.is_guard(guard, softmax, scores) else None

    def before_guard(self, guard: Node, scores: str | None) -> str | None:
        """Return scores before a ``Where`` that sets fully masked rows to zero.

        With it, the gradient of such rows is zero and not NaN.
        """
        inner = self.flow.made_by(scores, "Where")
        if inner is None or inner.inputs[0] != guard.inputs[0]:
            return scores
        self.inner.append(inner)
        return inner.inputs[2]

    def skip_dropout(self, name: str | None) -> str | None:
        """Return the operand of dropout of elements, else ``name``."""
        node = self.flow.producers.get(name or "")
        if node is None or not isinstance(node.op, TrackedDropout):
            return name
        if node.op.module != "Dropout":
            return name
        self.inner.append(node)
        self.dropout = node.op.ratio
        return node.inputs[0]

    def skip_narrowing_cast(self, name: str | None) -> str | None:
        """Return the operand of a cast from float32 to a half type, else ``name``."""
        node = self.flow.made_by(name, "Cast", "CastLike")
        if node is None or not self.widens(node.output, node.inputs[0]):
            return name
        self.inner.append(node)
        return node.inputs[0]

    def widens(self, half: str | None, wide: str | None) -> bool:
        """Return whether ``half`` is of a half type and ``wide`` of float32."""
        a, b = self.flow.graph.type(half), self.flow.graph.type(wide)
        return (
            a is not None and b is not None and a.dtype in HALVES and b.dtype == float32
        )

    def is_guard(self, guard: Node, softmax: Node, scores: str | None) -> bool:
        """Return whether a ``Where`` sets fully masked rows to zero."""
        condition, zero, _ = guard.inputs
        source = self.flow.made_by(zero, "CastLike", "Cast")
        # For scores of fixed shape, exporters store zeros of that shape.
        zeros = self.flow.stored(zero if source is None else source.inputs[0])
        if zeros is None or core(zeros).any():
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
        return self.finds_hidden_rows(condition, scores)

    def finds_hidden_rows(self, condition: str | None, scores: str | None) -> bool:
        """Return whether ``condition`` is ``max(scores) == -inf`` of a row."""
        equal = self.flow.made_by(condition, "Equal")
        if equal is None:
            return self.finds_no_other(condition, scores)
        for name, other in (equal.inputs, equal.inputs[::-1]):
            largest, bound = self.flow.made_by(name, "ReduceMax"), self.flow.stored(
                other
            )
            if largest is None or bound is None or not np.isneginf(bound).all():
                continue
            self.inner += [equal, largest]
            same = largest.inputs[0] in (scores, self.before_cast(scores))
            return same and self.flow.axes(largest) == (-1,)
        return False

    def finds_no_other(self, condition: str | None, scores: str | None) -> bool:
        """Return whether ``condition`` is ``not any(scores != -inf)`` of a row."""
        none = self.flow.made_by(condition, "Not")
        some = self.flow.producers.get((none and none.inputs[0]) or "")
        if none is None or some is None or not isinstance(some.op, AnyOf):
            return False
        other = self.flow.made_by(some.inputs[0], "Not")
        equal = other and self.flow.made_by(other.inputs[0], "Equal")
        if other is None or equal is None:
            return False
        self.inner += [none, some, other, equal]
        for name, bound in (equal.inputs, equal.inputs[::-1]):
            stored = self.flow.stored(bound)
            if stored is not None and np.isneginf(stored).all():
                same = name in (scores, self.before_cast(scores))
                return same and some.op.axes == (-1,) and some.op.keepdims
        return False

    def before_cast(self, name: str | None) -> str | None:
        node = self.flow.made_by(name, "Cast", "CastLike")
        return None if node is None else node.inputs[0]

    def scores(self, name: str | None) -> bool:
        """Return whether ``name`` is the product after scaling, masks and casts."""
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
        """Return the stage of a node (0 mask, 1 soft cap, 2 scale), and its scores."""
        op = node.op.onnx
        if op == "Cast":
            widens = self.widens(node.inputs[0], node.output)
            return stage, node.inputs[0] if widens else None
        if op == "Add":
            return 0, self.added_scores(node)
        if op == "Where":
            return 0, self.masks.chosen(node)
        capped = self.before_soft_cap(node) if stage == 0 else None
        if capped is not None:
            return 1, capped
        return 2, self.operands.scaled(node)

    def added_scores(self, node: Node) -> str | None:
        """Return the operand of an ``Add`` that is the scores; the other is a mask."""
        distances = [(self.distance(name, STEPS), name) for name in node.inputs]
        (near, scores), (far, other) = distances
        if far < near:
            near, scores, other = far, other, scores
        if near > STEPS or other is None:
            return None
        self.masks.mask_list.append(Mask(other))
        return scores

    def distance(self, name: str | None, steps: int) -> int:
        """Return the number of nodes between a value and the first product."""
        node = self.flow.made_by(name, "MatMul", "Tanh", *_STEPS)
        if node is None or name is None or not steps:
            return STEPS + 1
        if node.op.onnx == "MatMul":
            return 0
        if name not in self.distances:
            lengths = [self.distance(other, steps - 1) for other in node.inputs]
            self.distances[name] = 1 + min(lengths)
        return self.distances[name]

    def before_soft_cap(self, node: Node) -> str | None:
        """Return the operand of ``tanh(x / cap) * cap``."""
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

    def have_fitting_types(self) -> bool:
        """Return whether shapes and dtypes fit and only masks are broadcast."""
        names = self.operands.query, self.last.inputs[1], self.last.output
        types = [self.flow.graph.type(name) for name in names]
        types.append(self.operands.key_type)
        ranked = [t for t in types if t is not None and t.shape is not None]
        ranks = {len(t.dims) for t in ranked}
        if len(ranked) < len(types) or ranks not in ({3}, {4}):
            return False
        query, value, out, key = ranked
        if len({t.dtype for t in ranked}) > 1:
            return False
        *batch, rows, size = query.dims
        columns = key.dims[-1]
        self.size = size
        seen = (*batch, rows, columns) if ranks == {4} else (1, rows, columns)
        return (
            key.dims == (*batch, size, columns)
            and value.dims[:-1] == (*batch, columns)
            and self.masks.fit(seen)
            and self.operands.fit((*batch, rows, columns))
        )

    def op(self) -> Attention:
        """Return the operator; masks must have been combined."""
        window = self.masks.window
        heads = 1 if len(self.masks.scores) == 3 else None
        options: dict[str, Any] = {
            "q_num_heads": heads,
            "kv_num_heads": heads,
            "is_causal": 1 if window.is_causal else 0,
            "left_window_size": window.left,
            "right_window_size": -1 if window.is_causal else window.right,
            "scale": self.scale_or_default(),
            "softcap": self.softcap,
        }
        if self.dropout:
            return AttentionWithDropout(dropout=self.dropout, **options)
        return Attention(**options)

    def scale_or_default(self) -> float | None:
        """Return the scale, None if it is the default 1 / sqrt(size)."""
        dtype = self.flow.graph.types[self.last.output].dtype
        scale = self.operands.scale
        if _is_default_scale(scale, self.size, dtype):
            return None
        return scale if dtype == float64 else float(str(np.float32(scale)))


def _with_default_scale(node: Node, flow: Dataflow) -> Node:
    """Return an ``Attention`` without a scale that is the default up to rounding."""
    op, extents = node.op, flow.extents(node.inputs[0])
    if not isinstance(op, Attention) or op.scale is None or len(extents) != _RANK:
        return node
    dtype = flow.graph.types[node.output].dtype
    if not _is_default_scale(op.scale, extents[-1], dtype):
        return node
    return replace(node, op=replace(op, scale=None))


def _is_default_scale(scale: float, size: Dim, dtype: DType) -> bool:
    """Return whether ``scale`` is 1 / sqrt(size), up to the rounding of the dtype."""
    error = _SCALE_ERRORS.get(dtype, 4e-7)
    return isinstance(size, int) and abs(scale * size**0.5 - 1) < error


#: The rounding of a scale, which may be a product of two factors, by dtype.
_SCALE_ERRORS = {float64: 1e-14, float16: 1e-3, bfloat16: 8e-3}
#: The rank of operands whose last axis is the size of a head.
_RANK = 4
_STEPS = ("Add", "Where", "Mul", "Div", "Cast")
