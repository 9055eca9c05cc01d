"""Module scopes of files whose node names are paths of TensorFlow operators.

TensorFlow opens a name scope for every Keras layer, and nested ones for functions
inside of it: ``block_1/bn/batchnorm/mul``. A Keras layer contains one layer with the
transposes, pads and activations around it, so a scope with a single layer is that
layer, and not a module with a layer in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from burn.dtypes import is_float
from burn_import.provenance.keras_blocks import block_scopes
from burn_import.provenance.keras_scopes import (
    layer_weights,
    with_keras_scopes,
    with_scopes,
)
from burn_import.provenance.path_segments import Path
from burn_ir.graph import Graph, Node

#: With more nodes than this beside its layer, a scope is a module.
_MOST_BESIDE = 8
#: The operators of activation layers.
_ACTIVATIONS = frozenset(
    {"Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"}
    | {"Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh"}
)


def with_layer_scopes(graph: Graph) -> Graph:
    """Return ``graph`` with the scopes of Keras layers in place of operator scopes.

    Graphs of other producers are returned as they are.
    """
    if not graph.producer.startswith("tf2onnx"):
        return graph
    graph = with_keras_scopes(graph)
    scopes = _without_only_children([node.scope for node in graph.nodes])
    nodes = [replace(node, scope=scopes[node.scope]) for node in graph.nodes]
    weights = [layer_weights(graph, node) for node in nodes]
    layers = _single_layer_scopes(graph, nodes, weights)
    nodes = [
        _in_layer_scope(node, names, layers)
        for node, names in zip(nodes, weights, strict=True)
    ]
    own = [n.scope for n, names in zip(nodes, weights, strict=True) if names]
    graph = with_scopes(graph.with_nodes(nodes), block_scopes(own))
    return _without_activations(graph)


def _without_activations(graph: Graph) -> Graph:
    """Return the graph without the scopes of Keras's activation layers.

    An activation between two layers of a block then runs in the block.
    """
    others = {node.scope for node in graph.nodes if node.op.onnx not in _ACTIVATIONS}
    nodes = [
        (
            node
            if len(node.scope) != 1 or node.scope in others
            else replace(node, scope=())
        )
        for node in graph.nodes
    ]
    return graph.with_nodes(nodes)


def _in_layer_scope(node: Node, weights: Path, layers: Mapping[Path, Path]) -> Node:
    """Return ``node`` in the scope of its layer, or in the one around a layer."""
    at = next((n for n in range(1, len(node.scope) + 1) if node.scope[:n] in layers), 0)
    if not at:
        return node
    return replace(
        node, scope=layers[node.scope[:at]] if weights else node.scope[: at - 1]
    )


def _without_only_children(scopes: list[Path]) -> dict[Path, Path]:
    """Map each scope to its path without scopes that only contain one other."""
    children: dict[Path, set[str]] = defaultdict(set)
    for scope in scopes:
        for length, segment in enumerate(scope):
            children[scope[:length]].add(segment)
    own = set(scopes)
    return {
        scope: tuple(
            segment
            for length, segment in enumerate(scope)
            if length == 0 or scope[:length] in own or len(children[scope[:length]]) > 1
        )
        for scope in own
    }


def _single_layer_scopes(
    graph: Graph, nodes: list[Node], weights: list[Path]
) -> dict[Path, Path]:
    """Map the outermost scopes with one layer to the path of that layer.

    Layers of one scope that have the same weights are one layer, at the first path.
    """
    inside: dict[Path, set[Path]] = defaultdict(set)
    beside: Counter[Path] = Counter()
    for node, names in zip(nodes, weights, strict=True):
        for length in range(1, len(node.scope) + 1):
            scope = node.scope[:length]
            if names:
                inside[scope].add(names)
            else:
                beside[scope] += 1 + _MOST_BESIDE * _reads_weight(graph, node)
    first: dict[tuple[Path, Path], Path] = {}
    return {
        scope: first.setdefault((scope[:-1], next(iter(layers))), scope)
        for scope, layers in inside.items()
        if len(layers) == 1 and beside[scope] <= _MOST_BESIDE
    }


def _reads_weight(graph: Graph, node: Node) -> bool:
    """Return whether ``node`` reads a stored array of floats with several elements."""
    arrays = [graph.constants[n] for n in node.inputs if n and n in graph.constants]
    return any(is_float(array.dtype) and array.size > 1 for array in arrays)
