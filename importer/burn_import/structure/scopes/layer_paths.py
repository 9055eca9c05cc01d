"""Distinct paths of the layers of a graph."""

from __future__ import annotations

from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import are_same_weights
from burn_import.structure.layer_nouns import operator_word
from burn_import.structure.numeric_segments import join_segments
from burn_ir.graph import Graph, Node


class LayerPaths:
    """The path of each layer, by the identity of its node.

    Layers with the same weights have one path. No layer is inside of another one.
    """

    def __init__(self, graph: Graph, paths: dict[int, Path]) -> None:
        self.graph = graph
        self.paths = paths
        #: The weights of the layer at each path, and its operator.
        self.owners: dict[Path, tuple[str, ...]] = {}
        self.operators: dict[Path, str] = {}
        self.lists: set[Path] = set()

    def assign(self, node: Node, path: Path, weights: tuple[str, ...]) -> None:
        """Assign ``path`` to ``node``, numbered if it is already in use."""
        for n in range(1, len(path)):
            if path[:n] in self.owners:  # a layer has no submodules
                path = join_segments(path, n - 1)
                break
        kind = node.op.onnx
        if self.operators.get(path, kind) != kind:
            path = (*path[:-1], operator_word(kind))
        unique = self._unique(path, weights, kind)
        self.owners[unique] = weights
        self.operators[unique] = kind
        self.lists |= {
            unique[:n] for n, segment in enumerate(unique) if segment.isdigit()
        }
        self.paths[id(node)] = unique

    def module_scope(self, scope: Path) -> Path:
        """Return the innermost enclosing scope that is neither a layer nor a list."""
        while self._enclosing_layer_length((*scope, "")) or scope in self.lists:
            scope = scope[:-1]
        return scope

    def _unique(self, path: Path, weights: tuple[str, ...], kind: str) -> Path:
        number, unique = 1, path
        while not self._is_free(unique, weights, kind):
            number += 1
            # If a layer's path is a prefix, that segment is renamed.
            at = self._enclosing_layer_length(path) or len(path)
            *around, name = join_segments(path[:at], at - 1)
            unique = (*around, f"{name}_{number}", *path[at:])
        return unique

    def _is_free(self, path: Path, weights: tuple[str, ...], kind: str) -> bool:
        """Return whether a layer with these weights can have ``path``.

        It can if the path is free or has the same layer. Layers of two
        operators with tied weights are two layers.
        """
        owned, operator = self.owners.get(path, weights), self.operators.get(path, kind)
        same = operator == kind and are_same_weights(self.graph, owned, weights)
        return same and not self._clashes(path)

    def _clashes(self, path: Path) -> bool:
        if path in self.owners:
            return False
        shorter = self._enclosing_layer_length(path) > 0
        return shorter or any(other[: len(path)] == path for other in self.owners)

    def _enclosing_layer_length(self, path: Path) -> int:
        """Return the length of the layer path that encloses ``path``, else 0."""
        return next((n for n in range(1, len(path)) if path[:n] in self.owners), 0)
