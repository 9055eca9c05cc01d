"""Recovers ``nn.MultiheadAttention`` from an attention and its projections."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from burn_import.passes.attention.arrangements import (
    MOVES,
    Arrangements,
    EqualExtentsError,
    Heads,
    Term,
    UnfollowedError,
    heads_of,
    rows_of_constant,
)
from burn_import.passes.attention.attended_values import AttentionMatch, attention_of
from burn_import.passes.attention.module_masks import ModuleMasks
from burn_import.passes.attention.module_parameters import (
    Rows,
    may_have_modules,
    module_parameters,
)
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import symbols
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Linear, MultiheadAttention
from burn_ir.ops.shape import Transpose
from burn_ir.types import Array

_SWAPPED = (1, 0, 2)
#: The most choices of numbers for symbols.
_MOST_TRIALS = 32
#: The most moves after the projection of the output.
_MOVES_AFTER = 3


def multihead_attention(graph: Graph) -> Graph:
    """Return ``graph`` with ``MultiheadAttention`` for PyTorch's module of that name.

    The projections to queries, keys and values have rows of one stored matrix, or of
    one each and of a common bias, and the file names one of these parameters. Where a
    file has the length of the example in its shapes, the module fits others as well.
    A row that masks of minus infinity hide remains NaN, or zeros in ``Attention``.
    """
    if not may_have_modules(graph):
        return graph
    flow = Dataflow(graph)
    instead: dict[int, list[Node]] = {}
    for node in graph.nodes:
        match = _match(flow, node)
        if match is not None:
            output, nodes = match.replacement()
            instead[id(output)] = nodes
    nodes = [n for node in graph.nodes for n in instead.get(id(node), [node])]
    return with_nodes(graph, nodes)


class Projection(NamedTuple):
    """A projection to heads, with rows of a stored weight and perhaps of a bias."""

    x: str
    heads: Heads
    weight: Rows
    bias: Rows | None
    factor: float


def _match(flow: Dataflow, last: Node) -> _Match | None:
    """Return the module that ends in a linear function, None if it is none.

    If shapes have the length of the example, so does the symbol in its place.
    """
    if not isinstance(last.op, Linear) or flow.stored(last.inputs[1]) is None:
        return None
    attended = attention_of(flow, last)
    if attended is None:
        return None
    waiting: list[dict[str, int]] = [{}]
    others: list[dict[str, int]] | None = None
    for _ in range(_MOST_TRIALS):
        if not waiting:
            break
        match = _Match(flow, last, attended, Arrangements(flow, waiting.pop(0)))
        try:
            if match.is_complete():
                return match
            if match.has_other_owners():
                return None
        except UnfollowedError:
            pass
        except EqualExtentsError as error:
            waiting.insert(0, error.sizes)
        if others is None and not waiting:
            waiting = others = match.other_sizes()
    return None


@dataclass
class _Match:
    flow: Dataflow
    last: Node
    attended: AttentionMatch
    view: Arrangements
    projections: list[Projection] = field(default_factory=list)
    parameters: tuple[str | None, ...] = ()
    masks: ModuleMasks | None = None
    #: The factor of the scores, None for the default of ``Attention``.
    factor: float | None = None
    #: Values that are the result, with whether their batch is first.
    outputs: list[tuple[Node, bool]] = field(default_factory=list)

    def other_sizes(self) -> list[dict[str, int]]:
        """Return extents by which lengths in shapes may be those of symbols."""
        names = [*self.attended.operands, *self.attended.inner.outputs]
        numbers = {d for n in names if n for d in self.flow.extents(n)}
        lengths = sorted(n for n in numbers if isinstance(n, int) and n > 1)
        symbols = [s for s in self.view.sizes if s.isidentifier()]
        return [{symbol: n} for symbol in symbols for n in lengths]

    def is_complete(self) -> bool:
        """Return whether the module is complete; binds its parts."""
        flags = (False, bool(self.attended.scores), False)
        for name, flag in zip(self.attended.operands, flags, strict=True):
            projection = self.projection(name, flag)
            if projection is None:
                return False
            self.projections.append(projection)
        self.view.equate([p.heads.batch for p in self.projections])
        return (
            self.have_one_owner()
            and self.are_masks()
            and self.has_one_mask()
            and self.have_one_scale()
            and self.is_merged()
        )

    def single(self, name: str | None) -> Term | None:
        """Return the only term of a value; None if it is omitted."""
        terms = [] if name is None else self.view.terms(name)
        return terms[0] if len(terms) == 1 else None

    def projection(self, name: str, is_transposed: bool) -> Projection | None:
        """Return the projection that ``name`` has the heads of."""
        terms = self.view.terms(name)
        biases = [t for t in terms if self.flow.stored(t.name) is not None]
        products = [term for term in terms if term not in biases]
        if len(products) != 1 or len(biases) > 1:
            return None
        (term,) = products
        node, heads = self.flow.producers.get(term.name), heads_of(term, is_transposed)
        if node is None or heads is None or node.inputs[0] is None:
            return None
        weight = self.weight(node, heads.begin)
        if weight is None:
            return None
        bias, own = None, (*node.inputs[2:], None)[0]
        if biases:
            bias = _bias_of(biases[0], heads, is_transposed)
        elif own is not None:
            bias = self.rows(own, heads.begin)
        is_biased = bool(biases) or own is not None
        if is_biased and (bias is None or any(t.factor != term.factor for t in biases)):
            return None
        return Projection(node.inputs[0], heads, weight, bias, term.factor)

    def weight(self, node: Node, begin: int) -> Rows | None:
        """Return the array and the row in it from which on a node has its weight."""
        if isinstance(node.op, Linear):
            return self.rows(node.inputs[1], begin)
        if node.op.domain or node.op.onnx != "MatMul":
            return None
        term = self.single(node.inputs[1])
        if term is None or term.indices.ndim != 2:
            return None
        start = rows_of_constant(term._replace(indices=term.indices.T))
        return self.stored_rows(start, begin)

    def rows(self, name: str | None, begin: int) -> Rows | None:
        term = self.single(name)
        return None if term is None else self.stored_rows(rows_of_constant(term), begin)

    def stored_rows(self, start: tuple[str, int] | None, begin: int) -> Rows | None:
        if start is None or self.flow.stored(start[0]) is None:
            return None
        return Rows(start[0], start[1] + begin)

    def have_one_scale(self) -> bool:
        """Return whether the only factor of scores is the default."""
        query, key, value = self.projections
        factor = query.factor * key.factor
        if self.factor is not None:
            factor *= self.factor * query.heads.size**0.5
        return abs(factor - 1) < 4e-7 and value.factor == 1

    def have_one_owner(self) -> bool:
        """Return whether the parameters are those of one module; binds them."""
        heads = [projection.heads[4:] for projection in self.projections]
        biases = [p.bias for p in self.projections if p.bias is not None]
        if len(set(heads)) > 1 or len(biases) not in (0, 3):
            return False
        weights = [projection.weight for projection in self.projections]
        embed = heads[0][0] * heads[0][1]
        graph = self.flow.graph
        parameters = module_parameters(graph, self.last, weights, biases, embed)
        self.parameters = parameters or ()
        return parameters is not None

    def has_other_owners(self) -> bool:
        """Return whether the projections are known, and are no parts of a module."""
        return len(self.projections) == 3 and not self.parameters

    def are_masks(self) -> bool:
        """Return whether what is added to scores are masks of the module."""
        query, key, value = (p.heads for p in self.projections)
        scores = (query.batch, query.heads, query.length, key.length)
        inner = self.attended.inner
        self.bind_joint(inner.output, scores)
        self.masks = ModuleMasks(self.flow, scores, self.last)
        if key.length != value.length:
            return False
        if not self.attended.scores:
            mask = (*inner.inputs, None)[3]
            return self.masks.bind([] if mask is None else self.view.terms(mask))
        terms = self.view.terms(self.attended.scores)
        products = [term for term in terms if term.name == inner.output]
        if len(products) != 1 or not products[0].is_plain():
            return False
        self.factor = products[0].factor
        return self.masks.bind([t for t in terms if t.name != inner.output])

    def has_one_mask(self) -> bool:
        """Return whether no other mask is beside a causal one, as PyTorch wants it."""
        return not self.attended.is_causal or self.masks is None or not self.masks.mask

    def bind_joint(self, name: str, shape: tuple[int, ...]) -> None:
        """Give the batch of a value that is broadcast from two the number of both."""
        dims = self.flow.extents(name)
        for symbol in symbols(dims[0]) if len(dims) == len(shape) else ():
            self.view.sizes.setdefault(symbol, shape[0])

    def is_merged(self) -> bool:
        """Return whether the output's projection is of merged heads; binds results."""
        heads = self.projections[0].heads
        shape = (heads.batch, heads.heads, heads.length, heads.size)
        self.bind_joint(self.attended.core.output, shape)
        merged = self.single(self.last.inputs[0])
        if merged is None or merged.name != self.attended.core.output:
            return False
        order = np.arange(np.prod(shape)).reshape(shape).swapaxes(1, 2)
        first = order.reshape(heads.batch, heads.length, -1)
        indices, node = merged.indices, self.last
        for _ in range(_MOVES_AFTER):
            layouts = {True: first, False: first.swapaxes(0, 1)}
            self.outputs += [
                (node, is_first)
                for is_first, order in layouts.items()
                if np.array_equal(order, indices)
            ][:1]
            after = self.mover(node)
            if after is None:
                break
            node, indices = after, self.view.apply(after, after.output, indices)
        return bool(self.outputs) and merged.factor == 1

    def mover(self, node: Node) -> Node | None:
        """Return the node that moves the elements of a result, its only reader."""
        readers = self.flow.users.get(node.output, [])
        if len(readers) != 1 or node.output in self.flow.outputs:
            return None
        is_move = readers[0].op.onnx in MOVES and not readers[0].op.domain
        return readers[0] if is_move and readers[0].inputs[0] == node.output else None

    def replacement(self) -> tuple[Node, list[Node]]:
        """Return the node that the module replaces, and the new nodes."""
        assert self.masks is not None
        is_first = self.has_batch_first()
        nodes: list[Node] = []
        operands = tuple(self.laid_out(p, is_first, nodes) for p in self.projections)
        fitting = [node for node, layout in self.outputs if layout is is_first]
        last = fitting[-1] if fitting else self.outputs[-1][0]
        name = last.output if fitting else self.flow.fresh(f"{last.output}.turned")
        scope, classes = common_scope(self.attended.inner, self.last)
        module = replace(
            self.last,
            op=self.op(is_first),
            inputs=(*operands, self.masks.padding, self.masks.mask, *self.parameters),
            outputs=(name,),
            scope=scope,
            classes=classes,
        )
        nodes += [*self.masks.nodes, module]
        if not fitting:
            nodes.append(replace(last, op=Transpose(perm=_SWAPPED), inputs=(name,)))
        return last, nodes

    def has_batch_first(self) -> bool:
        """Return whether fewer transposes remain with the batch first."""
        costs = {}
        for is_first in (True, False):
            inputs = [
                (p.heads.is_first is is_first) is (self.source(p.x) is not None)
                for p in self.projections
            ]
            costs[is_first] = sum(inputs) + (self.outputs[-1][1] is not is_first)
        return costs[True] <= costs[False]

    def source(self, name: str) -> str | None:
        """Return the value whose first two axes are swapped in ``name``."""
        node = self.flow.made_by(name, "Transpose")
        is_swap = node is not None and node.op.attrs()["perm"] == _SWAPPED
        return node.inputs[0] if node is not None and is_swap else None

    def laid_out(self, of: Projection, is_first: bool, nodes: list[Node]) -> str:
        """Return the operand of a projection with the batch first, or second."""
        if of.heads.is_first is is_first:
            return of.x
        source = self.source(of.x)
        if source is not None:
            return source
        for node in nodes:
            if node.inputs[0] == of.x:
                return node.output
        name = self.flow.fresh(f"{of.x}.turned")
        op = Transpose(perm=_SWAPPED)
        nodes.append(replace(self.last, op=op, inputs=(of.x,), outputs=(name,)))
        return name

    def op(self, is_first: bool) -> MultiheadAttention:
        """Return the operator."""
        assert self.masks is not None
        masks = self.masks.padding, self.masks.mask
        is_masked = self.factor is not None and masks != (None, None)
        return MultiheadAttention(
            num_heads=self.projections[0].heads.heads,
            batch_first=is_first,
            is_causal=self.attended.is_causal or self.masks.is_causal,
            need_weights=is_masked,
            dropout=self.attended.dropout,
        )


def _bias_of(term: Term, heads: Heads, is_transposed: bool) -> Rows | None:
    """Return the array and the element from which on a bias is added to heads."""
    indices: Array = term.indices
    indices = indices.swapaxes(-1, -2) if is_transposed else indices
    shape = (heads.batch, heads.heads, heads.length, heads.size)
    begin = int(indices.flat[0])
    order = np.arange(begin, begin + heads.heads * heads.size)
    expected = np.broadcast_to(order.reshape(1, heads.heads, 1, heads.size), shape)
    if len(term.shape) > 1 or indices.size != expected.size:
        return None
    is_bias = np.array_equal(indices.reshape(shape), expected)
    return Rows(term.name, begin) if is_bias else None
