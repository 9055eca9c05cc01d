"""Repeats elements when the model runs that a record would hold too often."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn_import.passes.cleanup.folding_cost import VALUE_BYTES
from burn_import.rewriting.arrays import core, derive, integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed, in_bodies, made
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.op import Op
from burn_ir.ops.creation import ConstantOfShape
from burn_ir.ops.shape import Expand
from burn_ir.types import Array


def repeated(graph: Graph, most: int = VALUE_BYTES) -> Graph:
    """``graph`` with nodes for arrays of more than ``most`` bytes and fewer elements.

    Folding keeps what is seen many times once, as most of that is looked up or cut and
    becomes small. What does not would be written in full, and be a file of gigabytes
    that a model of a few bytes asks for. This is done once, at the end: folding would
    take the nodes away again.
    """
    result = in_bodies(lambda inner: _repeated(inner, most), graph)
    return graph if result is graph else infer(result)


def _repeated(graph: Graph, most: int) -> Graph:
    values = made(graph)
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
    return changed(graph, [*(_node(graph, *pair) for pair in outputs.items()), *users])


def _is_large(array: Array, most: int) -> bool:
    return array.nbytes > most and 0 in array.strides


def _node(graph: Graph, name: str, output: str) -> Node:
    """The node that makes the array called ``name``."""
    array = graph.constants[name]
    shape, once = integers(graph, list(array.shape)), np.array(core(array))
    if once.size == 1:
        op: Op = ConstantOfShape(once.reshape(1))
        return Node(op, (shape,), (output,))
    return Node(Expand(), (derive(graph, name, once, ".once"), shape), (output,))
