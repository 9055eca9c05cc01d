"""Replaces large broadcast constants by nodes that broadcast at run time."""

from dataclasses import replace

import numpy as np

from burn_import.passes.cleanup.folding_cost import VALUE_BYTES
from burn_import.rewriting.arrays import core, derive, integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import apply_with_bodies, value_names, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.op import Op
from burn_ir.ops.creation import ConstantOfShape
from burn_ir.ops.shape import Expand
from burn_ir.types import Array


def repeated(graph: Graph, most: int = VALUE_BYTES) -> Graph:
    """Return ``graph`` with nodes for broadcast constants of over ``most`` bytes.

    Folding keeps a broadcast constant as one element with strides of 0, since most are
    sliced and become small. The others would be written to the record in full:
    gigabytes from a model of a few bytes. This runs once, at the end, because folding
    would remove the nodes again.
    """
    result = apply_with_bodies(lambda inner: _repeat_large(inner, most), graph)
    return graph if result is graph else infer(result)


def _repeat_large(graph: Graph, most: int) -> Graph:
    values = value_names(graph)
    names = dict.fromkeys(n for node in graph.nodes for n in node.inputs if n)
    stored = (n for n in names if n in graph.constants and n not in values)
    large = [n for n in stored if _is_large(graph.constants[n], most)]
    if not large:
        return graph
    flow = Dataflow(graph)
    outputs = {name: flow.fresh(f"{name}.repeated") for name in large}
    users = [
        replace(node, inputs=tuple(outputs.get(n, n) if n else n for n in node.inputs))
        for node in graph.nodes
    ]
    return with_nodes(
        graph, [*(_node(graph, *pair) for pair in outputs.items()), *users]
    )


def _is_large(array: Array, most: int) -> bool:
    return array.nbytes > most and 0 in array.strides


def _node(graph: Graph, name: str, output: str) -> Node:
    """Return the node that computes the constant called ``name``."""
    array = graph.constants[name]
    shape, once = integers(graph, list(array.shape)), np.array(core(array))
    if once.size == 1:
        op: Op = ConstantOfShape(once.reshape(1))
        return Node(op, (shape,), (output,))
    return Node(Expand(), (derive(graph, name, once, ".once"), shape), (output,))
