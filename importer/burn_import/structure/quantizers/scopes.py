"""The modules that quantize: those that read the integers.

Quantization tools name inserted nodes after the quantized value, so a module would
return floats together with their integers, scale and zero point. A module that
quantizes its own input gets floats alone, and equal layers stay equal: the last one has
no reader of integers.
"""

from burn_import.provenance.path_segments import Path, common
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node

QUANTIZERS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})


def move_quantizers(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with quantizers in the common scope of their readers.

    One with a reader in its own module stays, as does one whose readers also
    dequantize: that one simulates the precision of a float.
    """
    scopes = dict(node_paths.scopes)
    for node in reversed(graph.nodes):
        if node.op.onnx in QUANTIZERS and id(node) not in node_paths.layers:
            scopes[id(node)] = _reader_scope(graph, node, scopes)
    return Places(node_paths.layers, scopes, node_paths.moved)


def _reader_scope(graph: Graph, node: Node, scopes: dict[int, Path]) -> Path:
    """Return the scope that a quantizer runs in."""
    own = scopes[id(node)]
    readers = [
        user for name in node.outputs for user in graph.users.get(name or "", ())
    ]
    returned = set(filter(None, node.outputs)) & set(graph.results)
    if not readers or returned or any(r.op.onnx == "DequantizeLinear" for r in readers):
        return own
    shared = common([scopes[id(reader)] for reader in readers])
    deepest = max((scopes[id(reader)] for reader in readers), key=len)
    while shared and len(shared) < len(deepest) and deepest[len(shared)].isdigit():
        shared = shared[:-1]  # lists run no code
    return own if shared == own[: len(shared)] else shared
