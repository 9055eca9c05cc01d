"""Scopes of Keras layers without the model's own scope and TensorFlow's counters.

Keras traces ``conv2d`` and ``conv2d_1`` in the scopes ``functional_1/conv2d_1`` and
``functional_1/conv2d_1_2``: TensorFlow appends a counter to every scope that was opened
before. tf2onnx drops the scope of nodes that it rewrote.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import original
from burn_ir.graph import ROOT_SCOPE, Graph, Node, nested_nodes
from burn_ir.layers import layer_of

_COUNTER = re.compile(r"_\d+$")
#: The norm that tf2onnx folded into a convolution, which has its name.
_NORM = re.compile(r"^(bn|batch_norm(alization)?)(?=_|\d|$)")
#: TensorFlow's calls of traced functions, and the scope of the body of a while loop.
_CALL = re.compile(r"(Stateful)?PartitionedCall(_\d+)?")
_LOOP_BODY = re.compile(r"while(_\d+)?")

Rename = Callable[[Path], Path]


def with_keras_scopes(graph: Graph) -> Graph:
    """Return a graph of tf2onnx with the scopes of Keras's names.

    A layer without a scope gets that of its first weight. The scope around all layers
    is the model and is dropped. Counters are dropped in scopes below which all layers
    have one and names differ without it.
    """
    graph = _with_scopes_of_weights(_with_scopes_of_loops(graph))
    nodes = [inner for node in graph.nodes for inner in nested_nodes(node)]
    scopes = list(dict.fromkeys(node.scope for node in nodes))
    layers = {node.scope for node in graph.nodes if layer_weights(graph, node)}
    roots = {scope[:1] for scope in layers}
    root = roots.pop() if len(roots) == 1 else ()
    if not root or len(layers) == 1 and root in layers:
        return graph
    inside = [scope[1:] for scope in scopes if scope[:1] == root]
    own = {scope[1:] for scope in layers}
    names = _names_without_counters(inside, own) if _COUNTER.search(root[0]) else {}

    def rename(scope: Path) -> Path:
        if scope[:1] != root:
            return scope
        scope = scope[1:]
        path = (names.get(scope[: n + 1], name) for n, name in enumerate(scope))
        return tuple(path) or ROOT_SCOPE

    return with_scopes(graph, rename)


def layer_weights(graph: Graph, node: Node) -> Path:
    """Return the names of the stored weights of a layer, () for other nodes."""
    layer = layer_of(graph, node)
    if layer is None or not layer.weights:
        return ()
    names = tuple(node.inputs[index] or "" for index in layer.weights.values())
    return names if all(name in graph.constants for name in names) else ()


def _with_scopes_of_loops(graph: Graph, outer: Path = ()) -> Graph:
    """Return the graph without scopes of calls and loops, which are no layers.

    The body of a while loop is a function with a scope of its own; its nodes get the
    scope ``outer`` of their loop.
    """
    nodes = []
    for node in graph.nodes:
        scope = tuple(s for s in node.scope if not _CALL.fullmatch(s))
        if outer and scope and _LOOP_BODY.fullmatch(scope[0]):
            scope = (*outer, *scope[1:])
        scope = tuple(s for s in scope if not _LOOP_BODY.fullmatch(s))
        bodies = {
            n: _with_scopes_of_loops(b, scope) for n, b in node.op.bodies().items()
        }
        op = node.op.with_attrs(**bodies) if bodies else node.op
        nodes.append(replace(node, op=op, scope=scope))
    return graph.with_nodes(nodes)


def _with_scopes_of_weights(graph: Graph) -> Graph:
    """Return the graph with scopes for layers without one.

    They are in the names of their weights, or of the norm that tf2onnx folded into
    them.
    """
    nodes = []
    for node in graph.nodes:
        weights = () if node.scope else layer_weights(graph, node)
        names = (original(graph, weights[0]), node.output) if weights else ()
        scope = next((n.split("/")[:-1] for n in names if "/" in n), [])
        scope[-1:] = (_NORM.sub("conv", name) for name in scope[-1:])
        nodes.append(replace(node, scope=tuple(scope)) if scope else node)
    return graph.with_nodes(nodes)


def _names_without_counters(
    scopes: Iterable[Path], layers: Collection[Path]
) -> dict[Path, str]:
    """Return the last segments without counters, by scope.

    Among the scopes in one scope, all with layers have a counter; others may be those
    of functions.
    """
    with_layers = {layer[:n] for layer in layers for n in range(1, len(layer) + 1)}
    children: dict[Path, set[str]] = defaultdict(set)
    for scope in scopes:
        for length, segment in enumerate(scope):
            children[scope[:length]].add(segment)
    names: dict[Path, str] = {}
    for parent, segments in children.items():
        counted = {s for s in segments if _COUNTER.search(s)}
        plain = {_COUNTER.sub("", s) for s in counted}
        others = segments - counted
        if len(plain) < len(counted) or plain & others:
            continue
        if all((*parent, s) not in with_layers for s in others):
            names |= {(*parent, s): _COUNTER.sub("", s) for s in counted}
    return names


def with_scopes(graph: Graph, rename: Rename) -> Graph:
    """Return the graph with other scopes, also in bodies."""
    return graph.with_nodes([_renamed_node(node, rename) for node in graph.nodes])


def _renamed_node(node: Node, rename: Rename) -> Node:
    bodies = {
        name: with_scopes(body, rename) for name, body in node.op.bodies().items()
    }
    op = node.op.with_attrs(**bodies) if bodies else node.op
    return replace(node, op=op, scope=rename(node.scope))
