"""Takes the weights off norms that have none: ones and zeros that ONNX asks for."""

from __future__ import annotations

from dataclasses import replace

from burn_import.passes.cleanup.identities import is_weight
from burn_import.rewriting.arrays import core
from burn_import.rewriting.graphs import changed
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import BatchNorm, InstanceNorm
from burn_ir.ops.norm import BatchNormalization, InstanceNormalization


def plain_norms(graph: Graph) -> Graph:
    """``graph`` with ``InstanceNorm`` and ``BatchNorm`` where nothing is scaled.

    That is by ones, and shifted by zeros, which are no weights of the model: one that
    is not trained yet has such, too. ``affine=False`` is what PyTorch calls it.
    """
    if graph.operators.isdisjoint(("InstanceNormalization", "BatchNormalization")):
        return graph
    return changed(graph, [_plain(node, graph) for node in graph.nodes])


def _plain(node: Node, graph: Graph) -> Node:
    if not isinstance(node.op, InstanceNormalization | BatchNormalization):
        return node
    x, scale, bias, *statistics = node.inputs
    if not _is_neutral(scale, 1, graph) or not _is_neutral(bias, 0, graph):
        return node
    epsilon = node.op.epsilon
    if isinstance(node.op, InstanceNormalization):
        return node.with_op(InstanceNorm(epsilon=epsilon), (x,))
    if node.op.training_mode or any(node.outputs[1:]) or not _are_vectors(node, graph):
        return node
    op = BatchNorm(epsilon=epsilon, momentum=node.op.momentum)
    return replace(node, op=op, inputs=(x, *statistics))


def _is_neutral(name: str | None, value: int, graph: Graph) -> bool:
    """Whether an operand is ``value`` everywhere, and no weight."""
    if name is None or name in graph.types or is_weight(name, graph):
        return False
    array = graph.constants[name]
    return array.size > 0 and bool((core(array) == value).all())


def _are_vectors(node: Node, graph: Graph) -> bool:
    """Whether there is one statistic for each channel, and not for each element."""
    types = [graph.type(name) for name in node.inputs[1:]]
    return all(
        t is not None and t.shape is not None and len(t.shape) == 1 for t in types
    )
