"""Assignment of a module path to each node: its layer path or its scope."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from burn_import.provenance.layer_stems import common_stem
from burn_import.provenance.paired_weights import weights_of_biases
from burn_import.provenance.path_segments import (
    Path,
    ScopePaths,
    clean,
    common,
    scope_paths,
)
from burn_import.provenance.stored_layers import StoredLayers, first_dropouts
from burn_import.provenance.weight_owners import (
    SharedWeightPaths,
    are_same_weights,
    array_owner_paths,
    called_again,
    has_dotted_parameter,
    original,
)
from burn_import.rewriting.arrays import same_view
from burn_import.structure.layer_nouns import LayerNouns, operator_word
from burn_import.structure.listed_tensors import reader_of
from burn_import.structure.places import Places, with_names
from burn_import.structure.scopes.layer_paths import LayerPaths
from burn_import.structure.scopes.unscoped_nodes import UnscopedNodes
from burn_import.structure.scopes.weight_keys import WeightKeys
from burn_import.structure.scopes.weight_scopes import move_to_weights
from burn_import.structure.stem_paths import stem_paths
from burn_import.tracing.identifiers import identifier
from burn_ir.graph import ROOT_SCOPE, Graph, Node, nested_nodes
from burn_ir.ops.weight_quantized import QuantizeDequantize

#: PyTorch's names of nodes outside of all modules, in the ``forward`` of the model.
_IN_MODEL = re.compile(r"/[A-Z][A-Za-z]*(_\d+)?")


def assign_paths(graph: Graph, forks: Collection[int], is_body: bool = False) -> Places:
    """Assign a path to each node of ``graph``; ``forks`` are kept whole.

    Weight names have priority, then the exporter's scopes; a node with neither runs
    in the scope of its operands. Layers with the same weights get one path: they
    are one layer that is called twice.
    """
    run = _PathAssigner(graph, forks, is_body)
    for node in graph.nodes:
        run.assign(node)
    if run.unscoped is not None and not run.has_scopes:
        run.node_paths.scopes = run.unscoped.sunk(run.node_paths.scopes)
    elif run.has_scopes:
        move_to_weights(graph, run.node_paths, run.paths.module_scope)
    graph.constants.layer_weights.update(run.weights_of_other_dtypes())
    graph.constants.layer_weights.update(weights_of_biases(graph))
    return with_names(run.without_wrapper(), set(map(clean, array_owner_paths(graph))))


class _PathAssigner:
    """Assigns layer paths and scopes to the nodes of one graph, in their order."""

    def __init__(self, graph: Graph, forks: Collection[int], is_body: bool) -> None:
        self.graph = graph
        self.forks = forks
        self.node_paths = Places()
        self.again = called_again(graph)
        self.has_scopes = any(n.scope not in ((), ROOT_SCOPE) for n in graph.nodes)
        self.node_counts = Counter(node.scope for node in graph.nodes)
        self.dotted = has_dotted_parameter(graph)
        self.paths = LayerPaths(graph, self.node_paths.layers)
        self.scope_of: dict[str, Path] = {}
        stored = StoredLayers(graph, forks)
        self.weights = stored.weights
        self.keys = WeightKeys(graph, self.weights, stored.filled(), is_body)
        self.other_dtypes = stored.other_dtypes
        self._count_repeated_layers_once()
        self.modules = ScopePaths()
        self.modules = scope_paths(list(self._scoped_paths()))
        self.listed = self.keys.listed()
        self.homes = SharedWeightPaths(graph, self._layers(), self._exporter_scope)
        self.nouns = LayerNouns(graph)
        self._drop_functions()
        self.stem_paths = self._paths_of_stems()
        self._assign_known_paths()
        layers, scope_of = self.node_paths.layers, self._exporter_scope
        self.dataflow = UnscopedNodes(graph, layers, scope_of)
        # Without scopes, dots in keys are paths of all modules.
        self.unscoped = self.dataflow if self.has_scopes or not self.dotted else None

    def _count_repeated_layers_once(self) -> None:
        """Subtract repeated calls of a layer, and quantizers, from ``node_counts``."""
        met: dict[Path, list[tuple[str, ...]]] = defaultdict(list)
        self.first_calls = first_dropouts(self.graph.nodes)
        for node in self.graph.nodes:
            weights = tuple(self.weights.get(id(node), {}).values())
            others = met[node.scope] if weights else []
            is_again = any(are_same_weights(self.graph, weights, w) for w in others)
            if is_again or self.first_calls.get(id(node), node) is not node:
                self.node_counts[node.scope] -= 1
            elif isinstance(node.op, QuantizeDequantize):
                # It only has the scope of its operand.
                self.node_counts[node.scope] -= 1
            others += [] if is_again else [weights]

    def weights_of_other_dtypes(self) -> dict[str, Path]:
        """Return the paths of arrays of ``other_dtypes``, in single-layer scopes."""
        paths: dict[str, Path] = {}
        for node in self.graph.nodes:
            is_alone = self.node_counts[node.scope] == 1
            scope = self._exporter_scope(node) if is_alone else ()
            for parameter, name in self.other_dtypes.get(id(node), {}).items():
                paths.setdefault(name, (*scope, parameter))
        return paths

    def _inside(self, node: Node) -> Iterable[Node]:
        return [node] if id(node) in self.forks else nested_nodes(node)

    def _exporter_scope(self, node: Node) -> Path:
        """Return the exporter's scope of a node, without the subgraph's prefix."""
        scope = self.again.get(node.scope, node.scope)
        prefix = self.keys.prefix
        if prefix and scope and identifier(scope[0]) == identifier(prefix):
            scope = scope[1:]
        return self.modules.path(clean(scope))

    def _scoped_paths(self) -> Iterator[tuple[Path, Path]]:
        """Yield the scope of each layer, and the path in the names of its weights."""
        for node, _ in self._layers():
            if (path := self.keys.layer_path(node)) and (
                scope := self._exporter_scope(node)
            ):
                yield scope, path

    def _assign_known_paths(self) -> None:
        """Assign paths to the layers that weight names or scopes locate.

        Weight names go first, since other layers are placed relative to them.
        """
        layers = [node for node, _ in self._layers()]
        for find_path in (self._named_path, self._scope_path):
            for node in layers:
                path = None if id(node) in self.node_paths.layers else find_path(node)
                if path is not None:
                    self._assign_path(node, path)

    def _layers(self) -> list[tuple[Node, dict[str, str]]]:
        """Return the layer nodes, with their weights by parameter."""
        return [
            (inner, self.weights[id(inner)])
            for node in self.graph.nodes
            for inner in self._inside(node)
            if id(inner) in self.weights
        ]

    def _drop_functions(self) -> None:
        """Drop layer nodes that only apply a weight of another module.

        The owner is another layer, an author's module with submodules, or a layer
        whose other parameters the model reads by themselves. A node in the scope of
        another module, which has the weight as well, is that module's layer.
        """
        layers = [node for node, _ in self._layers()]
        containers = self.keys.modules_with_modules(layers)
        keys = self.keys.listed_by_module()
        for node in layers:
            named = self.keys.layer_path(node)
            if named is None:
                continue
            own = {original(self.graph, n) for n in self.weights[id(node)].values()}
            if (
                named in containers
                or keys.get(named, own) > own
                or self.homes.borrows(node, named)
            ):
                scope = self._tied_scope(node, named)
                if scope and scope not in containers:
                    self._assign_path(node, scope)
                else:
                    del self.weights[id(node)]

    def _tied_scope(self, node: Node, named: Path) -> Path:
        """Return the scope of a node if the file lists its arrays there, else ().

        The node reads other keys of the same arrays, as ``torch.export`` writes ties.
        """
        arrays, scope = self.graph.constants, self._exporter_scope(node)
        is_tied = scope != named[: len(scope)] and all(
            (key := self.listed.get((*scope, parameter))) is not None
            and same_view(arrays[key], arrays[origin])
            for parameter, origin in self.keys.origins(node).items()
        )
        return scope if is_tied else ()

    def _named_path(self, node: Node) -> Path | None:
        """Return the path in the dotted names of a layer's weights.

        A weight that another layer owns is tied: its path is where it runs.
        """
        named = self.keys.layer_path(node)
        if named is not None:
            self.dotted = True
            return self.homes.own(node, named) or named
        return None

    def _scope_path(self, node: Node) -> Path | None:
        """Return the path from the exporter's scope, or from a common name prefix."""
        if node.scope:
            scope = self._exporter_scope(node)
            if self.node_counts[node.scope] == 1 and scope:
                return scope
            return (*self.paths.module_scope(scope), operator_word(node.op.onnx))
        path = self.stem_paths.get(id(node))
        return None if path is None else (*self.paths.module_scope(path[:-1]), path[-1])

    def _paths_of_stems(self) -> dict[int, Path]:
        """Return the paths of layers without scopes, from names without dots."""
        nodes = [node for node, _ in self._layers() if not node.scope]
        stems = [common_stem(list(self.keys.origins(node).values())) for node in nodes]
        operators = [node.op.onnx for node in nodes]
        paths = stem_paths(list(zip(stems, operators, strict=True)))
        return {
            id(node): path
            for node, path in zip(nodes, paths, strict=True)
            if path is not None
        }

    def _assign_path(self, node: Node, path: Path) -> None:
        """Assign ``path`` to a layer, numbered if it is already in use."""
        # A layer without weights has its own state.
        first = self.first_calls.get(id(node), node)
        weights = tuple(self.weights[id(node)].values()) or (f"#{id(first)}",)
        self.paths.assign(node, path, weights)

    def assign(self, node: Node) -> None:
        """Assign a scope to a node of the main graph, and paths to its layers."""
        scope = self._scope(node)
        for inner in self._inside(node):
            if id(inner) in self.weights and id(inner) not in self.node_paths.layers:
                self._assign_path(inner, (*scope, self.nouns.noun(inner)))
        self.node_paths.scopes[id(node)] = scope
        self.scope_of.update(dict.fromkeys(filter(None, node.outputs), scope))

    def _scope(self, node: Node) -> Path:
        path = self.node_paths.layers.get(id(node))
        if path is not None:
            return path[:-1]
        inside = [self.node_paths.layers.get(id(inner)) for inner in self._inside(node)]
        paths = [path[:-1] for path in inside if path is not None]
        if paths:
            return common(paths)
        if self.has_scopes and node.scope:
            return self.paths.module_scope(self._exporter_scope(node))
        if self.has_scopes and _IN_MODEL.fullmatch(node.name):
            return self.paths.module_scope(
                () if self.modules.around else self.modules.above
            )
        sources = {n: self.scope_of[n] for n in node.inputs if n in self.scope_of}
        stored = [name for name in node.inputs if name in self.graph.constants]
        readers = [reader_of(self.graph, name) for name in stored if name is not None]
        homes = [home for home in readers if home is not None]
        if self.unscoped is not None and not homes:
            return self.paths.module_scope(self.unscoped.scope(node, sources))
        around = [*sources.values(), *homes]
        whole = common(around) if around else ()
        return self.paths.module_scope(self.dataflow.between(node, sources, whole))

    def without_wrapper(self) -> Places:
        """Return the paths without a scope around everything: the model itself.

        Dotted weight names are kept whole, since they are the keys that users
        know.
        """
        layers, scopes = self.node_paths.layers, self.node_paths.scopes
        if not layers or self.dotted:
            return self.node_paths
        depth = len(common([path[:-1] for path in layers.values()]))
        paths = [*layers.values(), *self.node_paths.scopes.values()]
        while any(path[depth:] and path[depth].isdigit() for path in paths):
            depth -= 1  # an attribute name is not a number
        return Places(
            {key: path[depth:] for key, path in layers.items()},
            {key: path[depth:] for key, path in scopes.items()},
        )
