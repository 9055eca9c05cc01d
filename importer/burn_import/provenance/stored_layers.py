"""The layers of a graph, by the arrays in the file that are their weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from burn.dtypes import DType, float32, is_float
from burn_import.provenance.exporter_folding import is_module
from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import is_uniform, original
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.op import Layer
from burn_ir.ops.dropout import TrackedDropout
from burn_ir.ops.weight_quantized import QuantizeDequantize


class StoredLayers:
    """Names of the weights of each layer, by the identity of its node.

    Bodies are included, without those of ``forks``, which become modules.
    """

    def __init__(self, graph: Graph, forks: Collection[int]) -> None:
        self.graph = graph
        self.forks = forks
        self.weights: dict[int, dict[str, str]] = {}
        #: Like ``weights``, for layers whose weights have another dtype than the layer.
        self.other_dtypes: dict[int, dict[str, str]] = {}
        self.constructors: dict[tuple[str, ...], tuple[Any, ...]] = {}
        self._find_layers(graph)

    def _find_layers(self, graph: Graph) -> None:
        """Record the stored weights of every layer node, by parameter.

        Layers without weights have a state instead. Names of scales tell nothing of
        quantizers, which get their paths later.
        """
        for node in graph.nodes:
            is_quantizer = isinstance(node.op, QuantizeDequantize)
            layer = None if is_quantizer else layer_of(graph, node)
            if layer is not None:
                names = {p: node.inputs[i] or "" for p, i in layer.weights.items()}
                floats = {p: n for p, n in names.items() if p not in layer.tables}
                dtype = layer.options.get("dtype", float32)
                stored = {self._stored_dtype(name) for name in floats.values()}
                one = len(stored) <= 1 and None not in stored
                if one and is_module(graph, layer, floats):
                    self._add_layer(node, layer, names, fits=stored <= {dtype})
            if id(node) not in self.forks:
                for body in node.op.bodies().values():
                    self._find_layers(body)

    def _add_layer(
        self, node: Node, layer: Layer, names: dict[str, str], *, fits: bool
    ) -> None:
        """Record a layer; ``fits`` if its weights are stored in its dtype."""
        # A second layer of this operator and weights with other options is a function
        # of them.
        key = (node.op.onnx, *(names.values() or (f"#{id(node)}",)))
        call = (layer.name, layer.args, dict(layer.options))
        if self.constructors.setdefault(key, call) == call:
            (self.weights if fits else self.other_dtypes)[id(node)] = names

    def filled(self) -> set[str]:
        """Return the filled arrays of several layers, whose keys tell no layer.

        Exporters store equal arrays once, such as the zeros of new biases.
        """
        readers: dict[str, set[tuple[str, ...]]] = {}
        for weights in self.weights.values():
            for name in weights.values():
                readers.setdefault(name, set()).add(tuple(weights.values()))
        arrays = self.graph.constants
        shared = [name for name, layers in readers.items() if len(layers) > 1]
        return {original(self.graph, n) for n in shared if is_uniform(arrays[n])}

    def _stored_dtype(self, name: str) -> DType | None:
        """Return the dtype of a stored float array, else None."""
        array = self.graph.constants.get(name)
        return None if array is None or not is_float(array.dtype) else array.dtype


def first_dropouts(nodes: Iterable[Node]) -> dict[int, Node]:
    """Map each dropout to the first call of its module.

    Nothing else runs in the scope of such a module, and all calls are equal.
    """
    scopes: dict[Path, list[Node]] = {}
    for node in nodes:
        scopes.setdefault(node.scope, []).append(node)
    return {
        id(node): inside[0]
        for scope, inside in scopes.items()
        if scope and all(_are_equal_dropouts(node, inside[0]) for node in inside)
        for node in inside
    }


def _are_equal_dropouts(a: Node, b: Node) -> bool:
    is_dropout = isinstance(a.op, TrackedDropout) and isinstance(b.op, TrackedDropout)
    return is_dropout and a.op == b.op
