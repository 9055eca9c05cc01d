"""Paths of the layers that simulate quantization.

Calibrated models round a value to the numbers of a quantized integer after most
operators. Quantization tools name the scales after values of their own, so these layers
are named after the operator or the layer whose result they round.
"""

from __future__ import annotations

from burn_import.provenance.path_segments import Path
from burn_import.structure.layer_nouns import operator_word
from burn_import.structure.places import Places
from burn_import.structure.quantizers.inputs import input_scopes, outer_scopes
from burn_import.tracing.identifiers import Namespace, attribute, snake
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.ops.shape import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from burn_ir.ops.weight_quantized import QuantizeDequantize

#: Operators that move elements: their results are named after their operand.
_MOVEMENTS = (Flatten, Reshape, Squeeze, Transpose, Unsqueeze)


def with_quantizers(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with a layer for each ``QuantizeDequantize``.

    Calls with the same scale in one module are calls of one layer.
    """
    quantizers = [
        node
        for node in graph.nodes
        if isinstance(node.op, QuantizeDequantize) and layer_of(graph, node) is not None
    ]
    if not quantizers:
        return node_paths
    layers, scopes = dict(node_paths.layers), dict(node_paths.scopes)
    names = _names(node_paths)
    owning = _owning(graph, node_paths)
    modules = {*owning, *layers.values()}
    lists = {path[:-1] for path in modules if path and path[-1].isdigit()}
    for moves in (input_scopes, outer_scopes):
        scopes |= moves(graph, quantizers, scopes, lists)
    paths: dict[tuple[Path, tuple[str | None, ...]], Path] = {}
    for node in quantizers:
        own = scopes[id(node)]
        while own and (own not in owning or own in lists):
            own = own[:-1]  # an activation, which holds nothing, a layer, or a list
        key = own, node.inputs[1:]
        if key not in paths:
            word = attribute(f"{_word(graph, node, own, node_paths)}_quantizer")
            unique = names.setdefault(own, Namespace()).unique(word)
            paths[key] = (*own, unique)
        layers[id(node)], scopes[id(node)] = paths[key], own
    return Places(layers, scopes, node_paths.moved)


def _owning(graph: Graph, node_paths: Places) -> set[Path]:
    """Return the scopes with layers, or with nodes that read stored arrays."""
    scopes = {path[:-1] for path in node_paths.layers.values()}
    for node in graph.nodes:
        read = [name for name in node.inputs if name is not None]
        stored = [graph.constants[n] for n in read if n in graph.constants]
        if any(array.size > INLINE_LIMIT for array in stored):
            scopes.add(node_paths.scopes[id(node)])
    return {path[:length] for path in scopes for length in range(len(path) + 1)}


def _names(node_paths: Places) -> dict[Path, Namespace]:
    """Return the names of the layers and modules inside each scope."""
    names: dict[Path, Namespace] = {}
    for path in (*node_paths.layers.values(), *node_paths.scopes.values()):
        for length, segment in enumerate(path):
            names.setdefault(path[:length], Namespace()).add(segment)
    return names


def _word(graph: Graph, node: Node, own: Path, node_paths: Places) -> str:
    """Return what a quantizer in the module ``own`` rounds: ``query`` or ``softmax``.

    It is the result of a layer or a submodule, of an operator, or an input.
    """
    name = node.inputs[0] or ""
    producer = graph.producers.get(name)
    source = producer
    while source is not None and isinstance(source.op, _MOVEMENTS):
        source = graph.producers.get(source.inputs[0] or "")
    if source is not None:
        scope = node_paths.scopes[id(source)]
        path = node_paths.layers.get(id(source), scope)
        inner = path[len(own) :] if path[: len(own)] == own else ()
        words = [segment for segment in inner[:1] if not segment.isdigit()]
        if words:
            return snake(words[0])
        if scope[: len(own)] != own:
            return "input"
    if producer is None:
        return snake(name) if name in graph.inputs else "input"
    return operator_word(producer.op.onnx).replace("mat_mul", "matmul")
