"""Scopes of nodes that read tensors of a module, where the file records others.

PyTorch records no scope for the nodes of a scripted function, and the scope of the
caller for hooks in front of ``forward``, which compute the weights of weight norm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from burn_import.provenance.path_segments import Path, clean, common
from burn_import.provenance.weight_owners import is_dotted, original
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node


def move_to_weights(
    graph: Graph, node_paths: Places, module_of: Callable[[Path], Path]
) -> None:
    """Change the scopes of functions of one module's tensors to this module.

    ``module_of`` returns the innermost module around a path. Nodes without a scope that
    are connected are one function. Computations of weights alone move into the module
    that has these weights if nothing else reads the result, as do computations of two
    tensors of a parametrization.
    """
    scopes = node_paths.scopes
    functions = (node for node in graph.nodes if _is_function(node, node_paths))
    # PyTorch's names of nodes in the ``forward`` of the model begin with a slash.
    unscoped = [n for n in functions if not n.scope and not n.name.startswith("/")]
    for nodes in _connected(graph, unscoped):
        homes = set(_tensors(graph, nodes).values())
        scope = module_of(homes.pop()) if len(homes) == 1 else ()
        if scope:
            scopes.update((id(node), scope) for node in nodes)
    for nodes in _connected(graph, _weight_computations(graph, node_paths)):
        tensors = _tensors(graph, nodes)
        inner = _reading_module(graph, nodes, scopes)
        own = common([scopes[id(node)] for node in nodes])
        if len(tensors) > 1 and len(set(tensors.values())) == 1:
            home = module_of(next(iter(tensors.values())))
            own, inner = (inner, home) if _is_below(home, inner) else (own, inner)
        has_all = inner == common([inner, *tensors.values()])
        if tensors and has_all and _is_below(inner, own):
            scopes.update((id(node), inner) for node in nodes)


def _reading_module(
    graph: Graph, nodes: list[Node], scopes: Mapping[int, Path]
) -> Path:
    """Return the innermost module with all readers of the results of ``nodes``."""
    members = set(map(id, nodes))
    users = (user for node in nodes for user in _users(graph, node))
    readers = [scopes[id(user)] for user in users if id(user) not in members]
    return common(readers) if readers else ()


def _is_below(inner: Path, outer: Path) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _is_function(node: Node, node_paths: Places) -> bool:
    """Return whether a node is no layer and runs no body."""
    return id(node) not in node_paths.layers and not node.op.bodies()


def _tensors(graph: Graph, nodes: Iterable[Node]) -> dict[str, Path]:
    """Return the modules of the tensors that nodes read, by the keys of the file."""
    tensors: dict[str, Path] = {}
    for name in (str(name) for node in nodes for name in node.inputs):
        key = original(graph, name) if name in graph.constants else ""
        if is_dotted(key):
            *home, leaf = clean(key.split("."))
            tensors[key] = tuple(home[:-1] if leaf.isdigit() else home)
    return tensors


def _connected(graph: Graph, nodes: Iterable[Node]) -> list[list[Node]]:
    """Return ``nodes`` in groups that are connected by values."""
    own, seen = {id(node): node for node in nodes}, set[int]()
    producers, groups = graph.producers, []
    for start in own.values():
        group, waiting = [], [start]
        while waiting:
            node = waiting.pop()
            if id(node) in seen or id(node) not in own:
                continue
            seen.add(id(node))
            group.append(node)
            before = (producers.get(name or "") for name in node.inputs)
            waiting += [*filter(None, before), *_users(graph, node)]
        groups += [group] * bool(group)
    return groups


def _users(graph: Graph, node: Node) -> list[Node]:
    return [user for name in node.outputs for user in graph.users.get(name or "", ())]


def _weight_computations(graph: Graph, node_paths: Places) -> Iterator[Node]:
    """Yield the functions of stored tensors alone whose results are no outputs."""
    computed: set[str] = set()
    for node in graph.nodes:
        names = list(filter(None, node.inputs))
        if not names or not _is_function(node, node_paths):
            continue
        is_stored = all(name in graph.constants or name in computed for name in names)
        if is_stored and set(graph.outputs).isdisjoint(node.outputs):
            computed.update(filter(None, node.outputs))
            yield node
