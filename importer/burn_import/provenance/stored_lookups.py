"""Embeddings whose indices are stored: positions, and the type of every token."""

from dataclasses import replace

from burn.dtypes import is_float
from burn_import.provenance.trainable import is_trained
from burn_import.provenance.weight_owners import original
from burn_ir.graph import Graph, Node
from burn_ir.ops.embedding import Embedding
from burn_ir.ops.indexing import Gather


def with_embeddings(graph: Graph) -> Graph:
    """Return ``graph`` with modules for lookups that the file shows to be modules.

    Such a lookup is in the scope of the module that owns the table. The constant
    indices alone do not tell an ``nn.Embedding`` from a parameter that is indexed.
    """
    nodes = [_as_module(node, graph) for node in graph.nodes]
    changed = any(a is not b for a, b in zip(nodes, graph.nodes, strict=True))
    return graph.with_nodes(nodes) if changed else graph


def _as_module(node: Node, graph: Graph) -> Node:
    if not isinstance(node.op, Gather | Embedding) or not _is_lookup(node, graph):
        return node
    if isinstance(node.op, Embedding):
        return replace(node, op=replace(node.op, module=1))
    return replace(node, op=Embedding(module=1)) if node.op.axis == 0 else node


def _is_lookup(node: Node, graph: Graph) -> bool:
    """Return whether a node reads rows of its own module's weight by known indices."""
    table, indices = node.inputs
    if table is None or indices is None or table not in graph.constants:
        return False
    array, known = graph.constants[table], graph.type(indices)
    if array.ndim != 2 or not is_float(array.dtype) or not is_trained(graph, table):
        return False
    is_known = known is not None and known.known is not None and bool(known.shape)
    key = original(graph, table).split(".")
    return is_known and tuple(key) == (*node.scope, "weight")
