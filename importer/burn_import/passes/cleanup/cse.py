"""Common subexpression elimination: merges equal nodes."""

import struct
from collections.abc import Hashable
from typing import Any

import numpy as np

from burn.dtypes import is_integer
from burn_import.provenance.weight_owners import have_equal_contents, is_authored
from burn_import.rewriting.graphs import rename
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of


def cse(graph: Graph) -> Graph:
    """Return ``graph`` with one node for equal operators, attributes and operands.

    Random operators, layers, nodes with bodies, and nodes that produce graph outputs
    are not merged. A node is merged only into one of its own scope or an enclosing
    scope, so that equal modules keep equal code. Operands that are short constants of
    integers, which exporters store once for each use, are equal if their contents are,
    and computed shapes are equal if inference knows that their dimensions are; other
    constants are not, since the model decides which weights are tied, except arrays
    that PyTorch's exporter computed several times in one module, such as masks.
    """
    aliases = _copies(graph)
    seen: dict[Hashable, Node] = {}
    outputs, nodes = set(graph.outputs), []
    for node in graph.nodes:
        key = None if _is_excluded(node, graph) else _key(node, graph, aliases)
        equal = None if key is None else _equal_node(key, node, seen)
        if equal is None or not outputs.isdisjoint(node.outputs):
            nodes.append(node)
            if key is not None:
                seen.setdefault((key, node.scope), node)
            continue
        for name, other in zip(node.outputs, equal.outputs, strict=True):
            if name is not None and other is not None:
                aliases[name] = other
    if not aliases:
        return graph
    return rename(graph.with_nodes(nodes), aliases)


def _copies(graph: Graph) -> dict[str, str]:
    """Map computed constants to the first equal one that their module reads.

    Equal arrays of one repeated element are no evidence: they may be two parameters.
    """
    aliases: dict[str, str] = {}
    firsts: dict[Hashable, list[str]] = {}
    if not graph.producer.startswith("pytorch"):
        return aliases
    for node in graph.nodes:
        if not node.scope or _is_excluded(node, graph):
            continue
        for name in node.inputs:
            if name is None or name in aliases or not _is_computed(graph, name):
                continue
            array = graph.constants[name]
            alike = firsts.setdefault((node.scope, str(array.dtype), array.shape), [])
            first = next((n for n in alike if have_equal_contents(graph, n, name)), "")
            if first and first != name:
                aliases[name] = first
            elif not first:
                alike.append(name)
    return aliases


def _is_computed(graph: Graph, name: str) -> bool:
    """Return whether the exporter computed a constant that is too long to print."""
    if name not in graph.constants or is_authored(graph, name):
        return False
    return graph.constants[name].size > INLINE_LIMIT


def _is_excluded(node: Node, graph: Graph) -> bool:
    if not node.op.deterministic or node.op.bodies():
        return True
    return layer_of(graph, node) is not None


def _equal_node(key: Hashable, node: Node, seen: dict[Hashable, Node]) -> Node | None:
    """Return an equal node of the innermost scope around ``node``; None if none."""
    for length in range(len(node.scope), -1, -1):
        equal = seen.get((key, node.scope[:length]))
        if equal is not None:
            return equal
    return None


def _key(node: Node, graph: Graph, aliases: dict[str, str]) -> Hashable:
    """Return a key that is equal for equal nodes, with aliases resolved."""
    inputs = tuple(
        None if n is None else _operand(graph, aliases.get(n, n)) for n in node.inputs
    )
    asked = tuple(name is not None for name in node.outputs)
    attrs = tuple((k, hashable_key(v)) for k, v in sorted(node.op.attrs().items()))
    return (type(node.op), attrs, inputs, asked)


def _operand(graph: Graph, name: str) -> Hashable:
    """Return the key of an operand: its name, or its content if that is all it is."""
    contents = graph.types[name].known if name in graph.types else None
    if contents is not None and contents.size <= INLINE_LIMIT:
        dims = tuple(contents.ravel().tolist())
        return ("dimensions", graph.types[name].dtype, contents.shape, dims)
    if name not in graph.constants or name in graph.types or is_authored(graph, name):
        return name
    array = graph.constants[name]
    if not is_integer(array.dtype) or array.size > INLINE_LIMIT:
        return name
    return ("constant", hashable_key(array))


def hashable_key(value: Any) -> Hashable:
    """Return a hashable key that is equal for bit-identical attributes only."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return (value.shape, tuple(map(hashable_key, value.ravel().tolist())))
        return (value.dtype.str, str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, list | tuple):
        return (tuple, tuple(map(hashable_key, value)))
    return (type(value), value)
