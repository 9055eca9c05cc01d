"""Recovers the weight and bias of batch norms that are stored as separate layers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from burn_import.passes.cleanup.identities import is_weight
from burn_import.passes.norms.plain_norms import is_neutral
from burn_import.provenance.layer_stems import common_stem
from burn_import.provenance.weight_owners import original
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.norm import BatchNormalization
from burn_ir.types import Array


@dataclass(frozen=True)
class _Affine:
    """``norm(x) * weight + bias``, with the stored ``weight`` and ``bias``."""

    norm: Node
    product: Node
    weight: str
    bias: str


def batch_norm_affine(graph: Graph) -> Graph:
    """Return ``graph`` with a product and a sum per channel inside of batch norms.

    Caffe stores the affine part of a batch norm as a layer of its own, and its
    exporter gives the norm a weight of ones and a bias of zeros. A norm with other
    numbers is changed only if the names of all arrays begin with that of the norm.
    Results may differ by rounding.
    """
    if not {"BatchNormalization", "Mul", "Add"} <= graph.operators:
        return graph
    flow = Dataflow(graph)
    nodes = []
    for node in graph.nodes:
        match = _affine(node, flow)
        inputs = None if match is None else _operands(match, flow)
        if match is not None and inputs is not None:
            node = _with_affine(match, node, inputs)
        nodes.append(node)
    return with_nodes(graph, nodes)


def _affine(node: Node, flow: Dataflow) -> _Affine | None:
    """Return the match that ends with the sum ``node``."""
    for scaled, bias in _sides(node, "Add"):
        product = flow.made_by(scaled, "Mul")
        for normalized, weight in () if product is None else _sides(product, "Mul"):
            norm = flow.producers.get(normalized)
            if product is None or norm is None or not _is_inference_norm(norm):
                continue
            if norm.scope == node.scope and flow.are_inside((norm, product), node):
                return _Affine(norm, product, weight, bias)
    return None


def _sides(node: Node, operator: str) -> Iterator[tuple[str, str]]:
    """Yield the two operands of a node of ``operator``, in both orders."""
    if not node.op.domain and node.op.onnx == operator:
        a, b = node.inputs
        if a is not None and b is not None:
            yield from ((a, b), (b, a))


def _is_inference_norm(node: Node) -> bool:
    """Return whether a node is a batch norm by stored statistics."""
    return isinstance(node.op, BatchNormalization) and not node.op.training_mode


def _operands(match: _Affine, flow: Dataflow) -> tuple[str | None, ...] | None:
    """Return the operands of the new norm; None if it would have other results."""
    x, scale, shift, *statistics = match.norm.inputs
    extents = flow.extents(x)
    mean = flow.stored(statistics[0])
    if mean is None or mean.ndim != 1 or len(extents) < 2:
        return None
    weight = _vector(match.weight, mean, len(extents), flow)
    bias = _vector(match.bias, mean, len(extents), flow)
    if weight is None or bias is None:
        return None
    if is_neutral(scale, 1, flow.graph) and is_neutral(shift, 0, flow.graph):
        names = [
            derive(flow.graph, name, array, ".vector")
            for name, array in ((match.weight, weight), (match.bias, bias))
        ]
        return (x, *names, *statistics)
    merged = _merged_arrays(match, weight, bias, flow)
    return None if merged is None else (x, *merged, *statistics)


def _merged_arrays(
    match: _Affine, weight: Array, bias: Array, flow: Dataflow
) -> tuple[str, str] | None:
    """Return the names of the products; None if there are two affine layers."""
    scale_name, shift_name = match.norm.inputs[1:3]
    scale, shift = flow.stored(scale_name), flow.stored(shift_name)
    if scale is None or shift is None or not _are_one_layer(match, flow.graph):
        return None
    if not scale.shape == shift.shape == weight.shape:
        return None
    if not scale.dtype == shift.dtype == weight.dtype:
        return None
    with np.errstate(all="ignore"):
        new_weight, new_bias = scale * weight, shift * weight + bias
    if not all(np.isfinite(a.astype(np.float64)).all() for a in (new_weight, new_bias)):
        return None
    times = f".times_{scale_name}"
    plus = f".plus_{shift_name}_times_{match.weight}"
    return (
        derive(flow.graph, match.weight, new_weight, times),
        derive(flow.graph, match.bias, new_bias, plus),
    )


def _vector(name: str, like: Array, rank: int, flow: Dataflow) -> Array | None:
    """Return a stored array with one element per channel as a vector."""
    array = flow.stored(name)
    if array is None or array.dtype != like.dtype or array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    is_per_channel = shape == (1, like.size, *(1 for _ in range(rank - 2)))
    return array.reshape(-1) if is_per_channel else None


def _are_one_layer(match: _Affine, graph: Graph) -> bool:
    """Return whether the names of all arrays begin with the name of the norm."""
    names = [str(name) for name in match.norm.inputs[1:]]
    if any(is_weight(name, graph) for name in names):
        return False
    stem = common_stem([original(graph, name) for name in names])
    others = [original(graph, name) for name in (match.weight, match.bias)]
    return len(stem) > 1 and all(
        name.startswith(stem) and not name[len(stem) :][:1].isalnum() for name in others
    )


def _with_affine(match: _Affine, node: Node, inputs: tuple[str | None, ...]) -> Node:
    """Return the norm with ``inputs`` that has the result of the sum ``node``."""
    return replace(node, op=match.norm.op, inputs=inputs)
