"""Which scopes of a graph become modules with a class."""

from collections.abc import Collection, Mapping, Sequence

from burn.dtypes import is_float, is_integer
from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import (
    is_dotted,
    is_parameter_of_paddle,
    original,
)
from burn_import.rewriting.arrays import same_view
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph, Node

#: Maximum results of a module without weights.
MOST_RESULTS = 4


class ModuleScopes:
    """The choice of scopes that become modules.

    ``layers`` are the paths of layers and ``scopes`` those of all nodes, by the node's
    identity; ``users`` are the readers of each value.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Mapping[int, Path],
        scopes: Mapping[int, Path],
        users: Mapping[str, Sequence[Node]],
    ) -> None:
        self.graph, self.layers = graph, layers
        self.scopes, self.users = scopes, users

    def with_classes(self) -> set[Path]:
        """Return the scopes with enough layers and operations for a class."""
        own: dict[Path, int] = {}
        weights: dict[Path, int] = {}
        for node in self.graph.nodes:
            scope = self.scopes[id(node)]
            for length in range(1, len(scope) + 1):
                own[scope[:length]] = own.get(scope[:length], 0) + 1
                if id(node) in self.layers or self._reads_quantized(node):
                    count = weights.get(scope[:length], 0) + 1
                    weights[scope[:length]] = count
        numbered = {
            scope
            for path in self.layers.values()
            for scope in (path[:-1],)
            if path[-1].isdigit()
        }
        single = {
            path[:-1] for path in self.layers.values()
        } | self._scopes_with_own_weights()
        single &= self._scopes_with_computed_inputs()
        around = {scope[:length] for scope in single for length in range(1, len(scope))}
        lists = self._lists()
        return (
            {
                scope
                for scope, count in own.items()
                if (count > 1 or scope in single)
                and scope not in numbered
                and (weights.get(scope) or count > 4 or scope in single | around)
                and all(
                    s.isdigit() or scope[:n] not in lists for n, s in enumerate(scope)
                )
            }
            - self._containers(own)
            - self._with_many_results(set(own) - set(weights))
        )

    def _reads_quantized(self, node: Node) -> bool:
        """Return whether a node reads a stored array of integers of 16 bits or less."""
        stored = (name for name in node.inputs if name in self.graph.constants)
        arrays = [self.graph.constants[str(name)] for name in stored]
        return any(
            is_integer(a.dtype) and a.dtype.itemsize < 4 and a.size > INLINE_LIMIT
            for a in arrays
        )

    def _with_many_results(self, scopes: Collection[Path]) -> set[Path]:
        """Return those of ``scopes`` with too many results for a function.

        A module without weights that is called again runs in one scope each
        time.
        """
        results: dict[Path, int] = {}
        for node in self.graph.nodes:
            path = self.scopes[id(node)]
            for length in range(1, len(path) + 1):
                if path[:length] in scopes and self._is_read_outside(
                    node, path[:length]
                ):
                    results[path[:length]] = results.get(path[:length], 0) + 1
        return {scope for scope, count in results.items() if count > MOST_RESULTS}

    def _is_read_outside(self, node: Node, scope: Path) -> bool:
        """Return whether a node outside of ``scope`` reads a result of ``node``."""
        readers = [
            one for name in node.outputs for one in self.users.get(name or "", ())
        ]
        return any(self.scopes[id(n)][: len(scope)] != scope for n in readers)

    def _lists(self) -> set[Path]:
        """Return the paths with numbered layers, or numbered modules with layers."""
        return {
            path[:length]
            for path in self.layers.values()
            for length, segment in enumerate(path)
            if segment.isdigit()
        }

    def _scopes_with_computed_inputs(self) -> set[Path]:
        """Return the scopes with a node that reads computed values."""
        constants = self.graph.constants
        return {
            self.scopes[id(node)]
            for node in self.graph.nodes
            if any(name is not None and name not in constants for name in node.inputs)
        }

    def _scopes_with_own_weights(self) -> set[Path]:
        """Return the scopes that read a weight whose key is in them."""
        scopes = set()
        constants = self.graph.constants
        for node in self.graph.nodes:
            scope = self.scopes[id(node)]
            for name in filter(None, node.inputs):
                if name not in constants or not is_float(constants[name].dtype):
                    continue
                key = original(self.graph, name)
                whole = same_view(constants[key], constants[name])
                home = clean(key.split("."))[:-1] if is_dotted(key) else None
                is_number = constants[key].size == 1 and is_parameter_of_paddle(key)
                if whole and (home == scope or is_number):
                    scopes.add(scope)
        return scopes

    def _containers(self, own: Mapping[Path, int]) -> set[Path]:
        """Return scopes with numbered children: lists, which run no code."""
        paths = {*own, *self.layers.values()}
        return {path[:-1] for path in paths if path[-1].isdigit()}
