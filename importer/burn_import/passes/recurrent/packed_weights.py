"""Replaces packed weights of recurrent layers that a file computes from parameters.

An exporter that does not fold constants writes slices and concatenations of PyTorch's
parameters in front of each operator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn_import.passes.recurrent.recurrent_nodes import KINDS
from burn_import.passes.recurrent.recurrent_weights import Parameters
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.evaluate import run_node
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.types import Array

#: Operators that only move elements. Operands other than the moved ones are integers.
_MOVES = frozenset({"Concat", "Identity", "Reshape", "Slice", "Squeeze"})
_MOVES |= {"Transpose", "Unsqueeze"}


def packed_weights(graph: Graph) -> Graph:
    """Return ``graph`` with constants for weights W, R and B of recurrent operators.

    They must be moved elements of constants, and equal to the parameters of a layer of
    PyTorch that the file has under their names: the layer that is recovered then owns
    these parameters.
    """
    if all(node.op.onnx not in KINDS or node.op.domain for node in graph.nodes):
        return graph
    packing = _Packing(graph)
    nodes = [packing.packed(node) for node in graph.nodes]
    return with_nodes(graph, nodes) if packing.is_changed else graph


class _Packing:
    """Computed weights of one graph, by name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.flow = Dataflow(graph)
        self.parameters = Parameters(graph)
        self.arrays: dict[str, Array | None] = {}
        self.is_changed = False

    def packed(self, node: Node) -> Node:
        """Return ``node`` with its computed weights as constants, if they are named."""
        names = [name for name in node.inputs[1:4] if name is not None]
        is_recurrent = node.op.onnx in KINDS and not node.op.domain
        if not is_recurrent or all(name not in self.graph.types for name in names):
            return node
        arrays = [array for array in map(self.array, names) if array is not None]
        kind = node.op.onnx
        if len(arrays) < len(names) or not self.parameters.named_of(kind, arrays):
            return node
        stored = {
            name: self.graph.constants.add(
                free_name(f"{name}.packed", self.graph.types), array
            )
            for name, array in zip(names, arrays, strict=True)
        }
        self.is_changed = True
        inputs = tuple(stored.get(name or "", name) for name in node.inputs)
        return replace(node, inputs=inputs)

    def array(self, name: str) -> Array | None:
        """Return the contents of a value that is moved elements of constants."""
        if name not in self.graph.types:
            return self.graph.constants.get(name)
        if name not in self.arrays:
            self.arrays[name] = None
            node = self.flow.producers.get(name)
            if node is not None and node.op.onnx in _MOVES and not node.op.domain:
                self.arrays[name] = self._moved(node)
        return self.arrays[name]

    def _moved(self, node: Node) -> Array | None:
        operands = [None if name is None else self.array(name) for name in node.inputs]
        pairs = zip(node.inputs, operands, strict=True)
        if any(name is not None and array is None for name, array in pairs):
            return None
        tensors = [None if a is None else Tensor(a, HOST) for a in operands]
        return np.asarray(run_node(node, tensors)[0].numpy())
