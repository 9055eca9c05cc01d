"""Writes a product of matrices between transposes as ``einsum``, where that is less."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

from burn.dtypes import is_float
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed
from burn_ir.graph import Graph, Node
from burn_ir.ops.matmul import Einsum

#: So many transposes around a product are harder to read than one equation.
FEWEST = 2
Perm = tuple[int, ...]


def einsum(graph: Graph) -> Graph:
    """``graph`` with ``Einsum`` for products whose operands and result are transposed.

    A matrix that is only turned is no such transpose: ``x.mT`` reads well. All others
    have to be read by the product alone. It runs after all other passes, which know
    products.
    """
    flow = Dataflow(graph)
    results = [_written(flow, node) for node in graph.nodes]
    return changed(graph, [node if new is None else new for node, new in results])


def _written(flow: Dataflow, last: Node) -> tuple[Node, Node | None]:
    """``last`` with the equation in its place, if it ends such a product."""
    product = last
    result = None
    if last.op.onnx == "Transpose":
        made = flow.made_by(last.inputs[0], "MatMul")
        if made is None or not flow.are_inside([made], last):
            return last, None
        product, result = made, last
    elif last.op.onnx != "MatMul" or last.op.domain or _is_turned_later(flow, last):
        return last, None
    sources = [_source(flow, name, product) for name in product.inputs]
    count = sum(perm is not None for _, perm in sources) + (result is not None)
    rank = _rank(flow, product)
    if count < FEWEST or not rank:
        return last, None
    perms = [perm or tuple(range(rank)) for _, perm in sources]
    order = _perm(flow, result) if result is not None else tuple(range(rank))
    op = Einsum(equation=equation(rank, perms[0], perms[1], order))
    return last, replace(last, op=op, inputs=tuple(name for name, _ in sources))


def _is_turned_later(flow: Dataflow, product: Node) -> bool:
    """Whether the only reader is a transpose, which will write the equation."""
    readers = flow.users.get(product.output, [])
    alone = [reader.op.onnx for reader in readers] == ["Transpose"]
    return alone and flow.are_inside([product], readers[0])


def _rank(flow: Dataflow, product: Node) -> int:
    """How many axes both operands have, 0 unless these are the same but for two."""
    types = [flow.graph.type(name) for name in product.inputs]
    shapes = [None if t is None else t.shape for t in types]
    dtype = flow.graph.types[product.output].dtype
    if shapes[0] is None or shapes[1] is None or not is_float(dtype):
        return 0
    a, b = shapes[0], shapes[1]
    if len(a) != len(b) or len(a) < 3:
        return 0
    return len(a) if a[:-2] == b[:-2] else 0


def _source(
    flow: Dataflow, name: str | None, product: Node
) -> tuple[str | None, Perm | None]:
    """What an operand is a transpose of, and how; itself if it is none to take in."""
    made = flow.made_by(name, "Transpose")
    if made is None or not flow.are_inside([made], product):
        return name, None
    perm = _perm(flow, made)
    rank = len(perm)
    turned = perm == (*range(rank - 2), rank - 1, rank - 2)
    return (name, None) if turned else (made.inputs[0], perm)


def _perm(flow: Dataflow, node: Node) -> Perm:
    given = node.op.attrs()["perm"]
    rank = len(flow.extents(node.inputs[0]))
    return tuple(given) if given else tuple(reversed(range(rank)))


def equation(rank: int, left: Perm, right: Perm, result: Perm) -> str:
    """``abcd,aecd->abe``: the axes of what is transposed before a product, and after.

    Letters are given in the order in which they stand in the equation.
    """
    batch = [f"b{axis}" for axis in range(rank - 2)]
    first, second = [""] * rank, [""] * rank
    for place, label in enumerate([*batch, "i", "k"]):
        first[left[place]] = label
    for place, label in enumerate([*batch, "k", "j"]):
        second[right[place]] = label
    made = [[*batch, "i", "j"][axis] for axis in result]
    letters = dict(zip(dict.fromkeys([*first, *second]), ascii_lowercase, strict=False))
    terms = ["".join(letters[label] for label in term) for term in (first, second)]
    return f"{','.join(terms)}->{''.join(letters[label] for label in made)}"
