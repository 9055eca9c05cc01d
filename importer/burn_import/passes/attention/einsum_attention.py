"""Recovers attention from two ``Einsum`` with a softmax between them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from burn.ops.matmul import explicit
from burn_import.passes.attention.attention import STEPS, attention
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.ops.attention import Attention
from burn_ir.ops.matmul import Einsum, MatMul
from burn_ir.ops.shape import Transpose

#: Operators between the first equation and the softmax, with their operands that can
#: be scores, and those between the softmax and the second equation.
_BEFORE = {
    "Add": (0, 1),
    "Cast": (0,),
    "Div": (0,),
    "Mul": (0, 1),
    "Tanh": (0,),
    "Where": (1, 2),
}
_AFTER = {"Cast": (0,), "CastLike": (0,), "Dropout": (0,), "Where": (2,)}


class Product(NamedTuple):
    """An equation of two operands as a matrix product with permuted axes.

    ``left``, ``right`` and ``result`` are permutations: those of the operands before
    the product of the last two axes, and that of its result.
    """

    operands: tuple[str | None, str | None]
    left: tuple[int, ...]
    right: tuple[int, ...]
    result: tuple[int, ...]


class Pair(NamedTuple):
    """The equations of scores and of values, with the product of each."""

    scores: Node
    values: Node
    products: tuple[Product, Product]


def einsum_attention(graph: Graph) -> Graph:
    """Return ``graph`` with ``Attention`` for two ``Einsum`` around a softmax.

    Both are written as matrix products between transposes, of which the pass
    ``attention`` decides. Equations that are no part of an attention stay as they are.
    """
    if "Einsum" not in graph.operators or "Softmax" not in graph.operators:
        return graph
    pairs = list(_pairs(Dataflow(graph)))
    while pairs:
        result = attention(infer(_with_products(graph, pairs)))
        flow = Dataflow(result)
        matched = [pair for pair in pairs if _is_attention(flow, pair.values.output)]
        if len(matched) == len(pairs):
            return result
        pairs = matched
    return graph


def _is_attention(flow: Dataflow, name: str) -> bool:
    """Return whether a value is an attention, or one with permuted axes."""
    transpose = flow.made_by(name, "Transpose")
    producer = flow.producers[name if transpose is None else str(transpose.inputs[0])]
    return isinstance(producer.op, Attention)


def _pairs(flow: Dataflow) -> Iterator[Pair]:
    for node in flow.graph.nodes:
        for at in (0, 1) if isinstance(node.op, Einsum) else ():
            pair = _pair(flow, node, at)
            if pair is not None:
                yield pair
                break


def _pair(flow: Dataflow, values: Node, at: int) -> Pair | None:
    """Return the attention whose weights are operand ``at`` of ``values``."""
    terms = _terms(flow, values)
    if terms is None:
        return None
    *batch, row, column = list(terms[at])
    second = _product(values, terms, at, (batch, row, column))
    softmax = _producer(flow, values.inputs[at], _AFTER, "Softmax")
    if second is None or softmax is None:
        return None
    scores = _producer(flow, softmax.inputs[0], _BEFORE, "Einsum")
    first = None if scores is None else _scores(flow, scores)
    if scores is None or first is None or len(first.result) != len(second.result):
        return None
    return Pair(scores, values, (first, second))


def _scores(flow: Dataflow, node: Node) -> Product | None:
    """Return the product of queries and keys, whose rows and columns come last."""
    terms = _terms(flow, node)
    if terms is None:
        return None
    *batch, row, _ = list(terms[2])
    query = 0 if row in terms[0] else 1
    inner = {*terms[query]} - {*batch, row}
    if len(inner) != 1:
        return None
    return _product(node, terms, query, (batch, row, inner.pop()))


def _terms(flow: Dataflow, node: Node) -> tuple[str, str, str] | None:
    """Return the labels of two operands and the result; None for other equations.

    Each label must name one axis of a term, and ranks must be known.
    """
    assert isinstance(node.op, Einsum)
    types = [flow.graph.type(name) for name in node.inputs]
    ranks = [t.rank for t in types if t is not None and t.shape is not None]
    if len(node.inputs) != len(ranks) or len(ranks) != 2:
        return None
    (left, right), result = explicit(node.op.equation, ranks)
    is_single = all(len(set(term)) == len(term) for term in (left, right, result))
    sizes = {len(left), len(right), len(result)}
    return (left, right, result) if is_single and sizes in ({3}, {4}) else None


def _product(
    node: Node, terms: tuple[str, str, str], at: int, labels: tuple[list[str], str, str]
) -> Product | None:
    """Return the product whose left operand is operand ``at`` of an equation.

    ``labels`` are those of its batch axes, its rows and the axis that is summed. None
    if the equation is no matrix product with these.
    """
    batch, row, inner = labels
    left, right, result = terms[at], terms[1 - at], terms[2]
    columns = {*right} - {*batch, inner}
    if {*left} != {*batch, row, inner} or len(columns) != 1 or row in right:
        return None
    (column,) = columns
    if {*right} != {*batch, inner, column} or {*result} != {*batch, row, column}:
        return None
    orders = ([*batch, row, inner], [*batch, inner, column])
    whole = [*batch, row, column]
    return Product(
        (node.inputs[at], node.inputs[1 - at]),
        tuple(left.index(label) for label in orders[0]),
        tuple(right.index(label) for label in orders[1]),
        tuple(whole.index(label) for label in result),
    )


def _producer(
    flow: Dataflow, name: str | None, passed: Mapping[str, tuple[int, ...]], op: str
) -> Node | None:
    """Return the nearest producer of kind ``op`` behind nodes of kinds ``passed``."""
    names = [name]
    for _ in range(STEPS):
        nodes = [flow.producers[n] for n in names if n in flow.producers]
        for node in nodes:
            if node.op.onnx == op and not node.op.domain:
                return node
        names = [
            node.inputs[position]
            for node in nodes
            for position in passed.get(node.op.onnx, ())
        ]
    return None


def _with_products(graph: Graph, pairs: Collection[Pair]) -> Graph:
    """Return ``graph`` with matrix products in place of the equations of ``pairs``."""
    flow = Dataflow(graph)
    products = {
        id(node): product
        for pair in pairs
        for node, product in zip(pair[:2], pair.products, strict=True)
    }
    nodes: list[Node] = []
    for node in graph.nodes:
        product = products.get(id(node))
        nodes += [node] if product is None else _as_product(flow, node, product)
    return with_nodes(graph, nodes)


def _as_product(flow: Dataflow, node: Node, product: Product) -> list[Node]:
    nodes, operands = [], []
    perms = (product.left, product.right)
    for name, perm in zip(product.operands, perms, strict=True):
        if perm != tuple(range(len(perm))):
            name, source = flow.fresh(f"{name}.permuted"), name
            op = Transpose(perm=perm)
            nodes.append(replace(node, op=op, inputs=(source,), outputs=(name,)))
        operands.append(name)
    if product.result == tuple(range(len(product.result))):
        return [*nodes, replace(node, op=MatMul(), inputs=tuple(operands))]
    output = flow.fresh(f"{node.output}.product")
    op = Transpose(perm=product.result)
    return [
        *nodes,
        replace(node, op=MatMul(), inputs=tuple(operands), outputs=(output,)),
        replace(node, op=op, inputs=(output,)),
    ]
