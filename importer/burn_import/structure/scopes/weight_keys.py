"""The keys of stored arrays, of layers and of others, as paths of modules."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import is_dotted, original
from burn_ir.graph import Graph, Node, nested_nodes


class WeightKeys:
    """Keys of the arrays of a graph; ``weights`` has those of layers, by parameter.

    ``filled`` are the keys of filled arrays of several layers, which tell no layer.
    """

    def __init__(
        self,
        graph: Graph,
        weights: Mapping[int, Mapping[str, str]],
        filled: Collection[str],
        is_body: bool,
    ) -> None:
        self.graph = graph
        self.weights, self.filled = weights, set(filled)
        #: What inlining added in front of all keys in a body.
        self.prefix = self._inlined_prefix() if is_body else ""

    def path(self, key: str) -> Path:
        """Return the path that a key is, without the prefix of a body."""
        return clean(key.removeprefix(self.prefix).split("."))

    def origins(self, node: Node) -> dict[str, str]:
        """Return the file's names of a layer's weights, by parameter."""
        weights = self.weights[id(node)]
        return {name: original(self.graph, weight) for name, weight in weights.items()}

    def layer_path(self, node: Node) -> Path | None:
        """Return the path in the dotted names of a layer's weights, else None."""
        origins = self.origins(node)
        keys = {name: key for name, key in origins.items() if is_dotted(key)}
        if len(keys) < len(origins) and self.filled.issuperset(keys.values()):
            return None
        for name, origin in keys.items():
            whole = self.path(origin)
            leaf = whole[-1]
            if "scale" in origins:  # quantizers append to names: weight_quantized
                leaf = leaf.partition("_")[0]
            parameter = tuple(name.split("."))
            is_named = (*whole[:-1], leaf)[-len(parameter) :] == parameter
            return whole[: -len(parameter)] if is_named else whole
        return None

    def listed(self) -> dict[Path, str]:
        """Return the keys of all stored arrays that the file lists, by path."""
        keys = filter(self.graph.constants.__contains__, self.graph.constants.trained)
        return {self.path(key): key for key in keys}

    def listed_by_module(self) -> dict[Path, set[str]]:
        """Return the keys of listed tensors that nodes read, by the module's path."""
        constants, keys = self.graph.constants, dict[Path, set[str]]()
        for node in chain.from_iterable(map(nested_nodes, self.graph.nodes)):
            for name in filter(constants.__contains__, map(str, node.inputs)):
                key = original(self.graph, name)
                if key in constants.trained:
                    keys.setdefault(self.path(key)[:-1], set()).add(key)
        return keys

    def modules_with_modules(self, layers: Iterable[Node]) -> set[Path]:
        """Return the paths of modules with parameters in submodules.

        A key below an array does not count: ``conv.weight.scale`` is another
        array. Nor do parameters that ``layers`` have in modules of their own.
        """
        nested = {
            self.path(key)
            for node in layers
            for name, key in self.origins(node).items()
            if "." in name
        }
        inner = (one for node in self.graph.nodes for one in nested_nodes(node))
        names = {n for node in inner for n in node.inputs if n in self.graph.constants}
        origins = {original(self.graph, n or "") for n in names}
        keys = {self.path(name) for name in origins if is_dotted(name)} - nested
        parts = {(k[:n], k[: n + 1]) for k in keys for n in range(1, len(k) - 1)}
        return {path for path, below in parts if below not in keys}

    def _inlined_prefix(self) -> str:
        names = [
            original(self.graph, weight)
            for weights in self.weights.values()
            for weight in weights.values()
        ]
        prefix = os.path.commonprefix(names)
        return prefix[: prefix.rfind("__") + 2] if "__" in prefix else ""
