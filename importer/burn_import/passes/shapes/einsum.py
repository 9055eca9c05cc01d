"""Writes a matrix product between transposes as ``einsum`` if that is shorter."""

from dataclasses import replace
from string import ascii_lowercase

from burn.dtypes import is_float
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.matmul import Einsum

#: The least number of transposes around a product that an equation replaces.
FEWEST = 2
Perm = tuple[int, ...]


def einsum(graph: Graph) -> Graph:
    """Return ``graph`` with ``Einsum`` for products of transposed operands or results.

    A swap of the last two axes does not count: ``x.mT`` is readable. The transposed
    values must have no other readers. This pass runs last, since others match products.
    """
    flow = Dataflow(graph)
    results = [_rewrite(flow, node) for node in graph.nodes]
    return with_nodes(graph, [node if new is None else new for node, new in results])


def _rewrite(flow: Dataflow, last: Node) -> tuple[Node, Node | None]:
    """Return ``last``, and the ``Einsum`` that replaces it or None."""
    product = last
    result = None
    if last.op.onnx == "Transpose":
        matmul = flow.made_by(last.inputs[0], "MatMul")
        if matmul is None or not flow.are_inside([matmul], last):
            return last, None
        product, result = matmul, last
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
    """Return whether the only reader is a transpose, which becomes the einsum."""
    readers = flow.users.get(product.output, [])
    alone = [reader.op.onnx for reader in readers] == ["Transpose"]
    return alone and flow.are_inside([product], readers[0])


def _rank(flow: Dataflow, product: Node) -> int:
    """Return the rank of both operands; 0 unless their leading extents agree."""
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
    """Return the source of a transposed operand and the permutation."""
    transpose = flow.made_by(name, "Transpose")
    if transpose is None or not flow.are_inside([transpose], product):
        return name, None
    perm = _perm(flow, transpose)
    rank = len(perm)
    swaps_last_axes = perm == (*range(rank - 2), rank - 1, rank - 2)
    return (name, None) if swaps_last_axes else (transpose.inputs[0], perm)


def _perm(flow: Dataflow, node: Node) -> Perm:
    perm = node.op.attrs()["perm"]
    rank = len(flow.extents(node.inputs[0]))
    return tuple(perm) if perm else tuple(reversed(range(rank)))


def equation(rank: int, left: Perm, right: Perm, result: Perm) -> str:
    """Return the equation of a product of transposed operands: ``abcd,aecd->abe``.

    Letters are assigned in order of appearance. ``left``, ``right`` and ``result`` are
    the permutations before and after the product.
    """
    batch = [f"b{axis}" for axis in range(rank - 2)]
    first, second = [""] * rank, [""] * rank
    for position, label in enumerate([*batch, "i", "k"]):
        first[left[position]] = label
    for position, label in enumerate([*batch, "k", "j"]):
        second[right[position]] = label
    result_labels = [[*batch, "i", "j"][axis] for axis in result]
    letters = dict(zip(dict.fromkeys([*first, *second]), ascii_lowercase, strict=False))
    terms = ["".join(letters[label] for label in term) for term in (first, second)]
    return f"{','.join(terms)}->{''.join(letters[label] for label in result_labels)}"
