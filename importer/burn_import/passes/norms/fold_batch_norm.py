"""Folds batch normalization into the preceding layer, for inference only."""

from collections.abc import Iterable
from dataclasses import replace
from math import prod

import numpy as np

from burn.dtypes import is_float
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv, ConvTranspose
from burn_ir.ops.fused import Linear
from burn_ir.ops.norm import BatchNormalization
from burn_ir.types import Array


def fold_batch_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``BatchNormalization`` folded into weights.

    The layer before is a ``Conv``, ``ConvTranspose`` or ``Linear`` with constant
    weights and no other readers. Results are equal up to rounding, but training
    differs: this pass runs only if it is requested by name.
    """
    flow = Dataflow(graph)
    nodes = []
    for node in graph.nodes:
        layer = _layer(node, flow)
        new = None if layer is None else _fold(layer, node, flow)
        nodes.append(node if new is None else new)
    return with_nodes(graph, nodes)


def _layer(node: Node, flow: Dataflow) -> Node | None:
    """Return the layer that ``node`` normalizes, if ``node`` is its only reader."""
    op, name = node.op, node.inputs[0] if node.inputs else None
    if not isinstance(op, BatchNormalization) or op.training_mode or name is None:
        return None
    layer = flow.producers.get(name)
    if layer is None or not isinstance(layer.op, Conv | ConvTranspose | Linear):
        return None
    # BatchNormalization applies to axis 1, and the features of ``Linear`` are last.
    if isinstance(layer.op, Linear) and len(flow.extents(name)) != 2:
        return None
    return layer if flow.are_inside((layer,), node) else None


def _fold(layer: Node, norm: Node, flow: Dataflow) -> Node | None:
    weights = _arrays(layer.inputs[1:], flow)
    statistics = _arrays(norm.inputs[1:], flow)
    if weights is None or statistics is None:
        return None
    scale, shift, mean, var = statistics
    channels = _channels(layer, weights[0])
    if {array.shape for array in statistics} != {(channels,)}:
        return None
    assert isinstance(norm.op, BatchNormalization)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(var + norm.op.epsilon)
    before = weights[1] if len(weights) > 1 else np.zeros(channels)
    bias = (before - mean) * factor + shift
    weight = _scale_channels(layer, weights[0], factor)
    dtype = flow.graph.constants[str(layer.inputs[1])].dtype
    new = [array.astype(dtype) for array in (weight, bias)]
    if not all(np.isfinite(array.astype(np.float64)).all() for array in new):
        return None
    return _with_weights(layer, norm, new, flow.graph)


def _arrays(names: Iterable[str | None], flow: Dataflow) -> list[Array] | None:
    """Return constant floating operands in float64; None if one is not constant."""
    arrays = []
    for name in names:
        if name is None:
            continue
        array = flow.stored(name)
        if array is None or not is_float(array.dtype):
            return None
        arrays.append(array.astype(np.float64))
    return arrays


def _channels(layer: Node, weight: Array) -> int:
    """Return the number of output channels of the layer."""
    if isinstance(layer.op, ConvTranspose):
        return int(weight.shape[1]) * layer.op.group
    return int(weight.shape[0])


def _scale_channels(layer: Node, weight: Array, factor: Array) -> Array:
    """Return ``weight`` with each output channel multiplied by its factor."""
    if isinstance(layer.op, ConvTranspose):  # [in, out / groups, ...]
        groups = layer.op.group
        inner, outer, *window = weight.shape
        parts = weight.reshape(groups, inner // groups, outer, prod(window))
        return (parts * factor.reshape(groups, 1, outer, 1)).reshape(weight.shape)
    return weight * factor.reshape(-1, *(1 for _ in weight.shape[1:]))


def _with_weights(layer: Node, norm: Node, new: list[Array], graph: Graph) -> Node:
    """Return ``layer`` with new weights and the result of ``norm``."""
    x, name = str(layer.inputs[0]), str(layer.inputs[1])
    bias_name = layer.inputs[2] if len(layer.inputs) > 2 else None
    suffix = f".times_{norm.inputs[1]}"
    inputs = (
        x,
        derive(graph, name, new[0], suffix),
        derive(graph, bias_name or str(norm.inputs[2]), new[1], suffix),
    )
    scope, classes = common_scope(layer, norm)
    scope, classes = (layer.scope, layer.classes) if layer.scope else (scope, classes)
    return replace(
        norm, op=layer.op, inputs=inputs, scope=scope, classes=classes, name=layer.name
    )
