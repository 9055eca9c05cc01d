"""Modules for simulated quantization: a quantizer and the dequantizer that follows.

Calibrated models round a value to the numbers of a quantized integer after most
operators. With a module for each such pair, a layer calls
``self.softmax_quantizer(x)``, and its scale and zero point are in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import original
from burn_import.structure.places import Places
from burn_import.tracing.identifiers import Namespace, attribute, snake
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph, Node, nested_nodes

#: The class of these modules, and the last word of their attributes.
QUANTIZER = "Quantizer"
_SCALE = re.compile(r"(\w+?)_output_\d+_scale")


def with_quantizers(graph: Graph, node_paths: Places) -> tuple[Places, set[Path]]:
    """Return ``node_paths`` with a scope for each pair, and those scopes."""
    scopes = dict(node_paths.scopes)
    names = _names(node_paths)
    owning = _owning(graph, node_paths)
    lists = {path[:-1] for path in owning if path and path[-1].isdigit()}
    added: set[Path] = set()
    for quantize, dequantize in _quantizer_pairs(graph):
        own = scopes[id(quantize)]
        if own != scopes[id(dequantize)]:
            continue
        while own and (own not in owning or own in lists):
            own = own[:-1]  # an activation, which holds nothing, or a list
        word = _word(graph, quantize)
        scope = (*own, names.setdefault(own, Namespace()).unique(word))
        scopes[id(quantize)] = scopes[id(dequantize)] = scope
        added.add(scope)
    return Places(node_paths.layers, scopes, node_paths.moved), added


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


def _quantizer_pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Yield each quantizer with its only reader, a dequantizer of the same numbers."""
    counts = _reads(graph)
    for node in graph.nodes:
        if node.op.onnx != "QuantizeLinear" or node.inputs[0] in graph.constants:
            continue
        (result,) = node.outputs
        readers = graph.users.get(result or "", ())
        if len(readers) != 1 or result in graph.results:
            continue
        reader = readers[0]
        is_inverse = reader.op.onnx == "DequantizeLinear"
        if is_inverse and reader.inputs[1:] == node.inputs[1:]:
            numbers = [n for n in node.inputs[1:] if n in graph.constants.measured]
            if numbers and all(counts[name] == 2 for name in numbers):
                yield node, reader


def _reads(graph: Graph) -> dict[str, int]:
    """Return how many operands each value is."""
    counts: dict[str, int] = {}
    for node in graph.nodes:
        for inner in nested_nodes(node):
            for name in filter(None, inner.inputs):
                counts[name] = counts.get(name, 0) + 1
    return counts


def _word(graph: Graph, quantize: Node) -> str:
    """Return an attribute name for a quantizer: ``softmax_quantizer``.

    It has the name of the operator whose result is quantized, as the file calls it, or
    of the node itself: the scale of an output of the graph has the output's name.
    """
    scale, source = quantize.inputs[1] or "", quantize.inputs[0] or ""
    match = _SCALE.fullmatch(re.split(r"[./:]", original(graph, scale))[-1])
    producer = graph.producers.get(source)
    if match is not None:
        name = match[1]
    elif producer is not None:
        name = producer.op.onnx
    else:
        return QUANTIZER.lower()
    word = re.sub(r"_\d+$", "", snake(name).replace("mat_mul", "matmul"))
    return attribute(f"{word}_{QUANTIZER.lower()}")
