"""Removes weights of ones and biases of zeros that ONNX requires of norms."""

from dataclasses import replace

from burn_import.passes.cleanup.identities import is_weight
from burn_import.rewriting.arrays import core
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.fused import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from burn_ir.ops.norm import (
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
)

_NORMS = (
    *("InstanceNormalization", "BatchNormalization", "LayerNormalization"),
    *("GroupNormalization", "RMSNormalization"),
)


def plain_norms(graph: Graph) -> Graph:
    """Return ``graph`` with norms without weights where theirs are neutral.

    Ones and zeros that are not the model's parameters become ``affine=False``;
    untrained parameters may have the same values. Layer, RMS and group norms are
    changed only if the file lists the model's parameters, or is PyTorch's and has these
    numbers in nodes, where it has no parameters.
    """
    if graph.operators.isdisjoint(_NORMS):
        return graph
    return with_nodes(
        graph, [_without_neutral_weights(node, graph) for node in graph.nodes]
    )


def _without_neutral_weights(node: Node, graph: Graph) -> Node:
    is_recorded = bool(graph.constants.trained) or _are_in_nodes(node, graph)
    if is_recorded and not any(node.outputs[1:]):
        op = _without_weights(node.op)
        if op is not None:
            neutral = is_neutral(node.inputs[1], 1, graph) and _is_narrow(node, graph)
            shifts = node.inputs[2:]
            neutral &= all(b is None or is_neutral(b, 0, graph) for b in shifts)
            return node.with_op(op, node.inputs[:1]) if neutral else node
    if not isinstance(node.op, InstanceNormalization | BatchNormalization):
        return node
    x, scale, bias, *statistics = node.inputs
    if not is_neutral(scale, 1, graph) or not is_neutral(bias, 0, graph):
        return node
    epsilon = node.op.epsilon
    if isinstance(node.op, InstanceNormalization):
        return node.with_op(InstanceNorm(epsilon=epsilon), (x,))
    if node.op.training_mode or any(node.outputs[1:]) or not _are_vectors(node, graph):
        return node
    op = BatchNorm(epsilon=epsilon, momentum=node.op.momentum)
    return replace(node, op=op, inputs=(x, *statistics))


def _without_weights(op: Op) -> Op | None:
    """Return the operator without weights; None for other operators."""
    if isinstance(op, LayerNormalization):
        return LayerNorm(axis=op.axis, epsilon=op.epsilon)
    if isinstance(op, RMSNormalization):
        return RMSNorm(axis=op.axis, epsilon=op.epsilon)
    if isinstance(op, GroupNormalization):
        return GroupNorm(op.num_groups, epsilon=op.epsilon)
    return None


def _are_in_nodes(node: Node, graph: Graph) -> bool:
    """Return whether PyTorch's exporter wrote all weights of a norm as nodes."""
    is_literal = graph.constants.literals.issuperset(filter(None, node.inputs[1:]))
    return is_literal and graph.producer.startswith("pytorch")


def _is_narrow(node: Node, graph: Graph) -> bool:
    """Return whether no weight of a norm has a higher rank than its operand."""
    x, *weights = (graph.type(name) for name in node.inputs)
    if x is None or x.shape is None:
        return False
    shapes = [w.shape for w in weights if w is not None]
    return all(shape is not None and len(shape) <= len(x.shape) for shape in shapes)


def is_neutral(name: str | None, value: int, graph: Graph) -> bool:
    """Return whether an operand is ``value`` everywhere and no parameter."""
    if name is None or name in graph.types or is_weight(name, graph):
        return False
    array = graph.constants[name]
    return array.size > 0 and bool((core(array) == value).all())


def _are_vectors(node: Node, graph: Graph) -> bool:
    """Return whether all statistics are vectors, one element per channel."""
    types = [graph.type(name) for name in node.inputs[1:]]
    return all(
        t is not None and t.shape is not None and len(t.shape) == 1 for t in types
    )
