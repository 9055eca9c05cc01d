"""What one module computes for others belongs to the module around them all.

Exporters merge equal nodes: a mask that every layer of a model computes is computed by
the first one, in its scope. Left there, the first layer would hand it to the others,
and no two layers would be alike.
"""

from __future__ import annotations

from burn.dtypes import is_float
from burn_import.provenance.path_segments import Path, common
from burn_import.structure.module_paths import Places
from burn_ir.graph import Graph, Node


def hoisted(graph: Graph, found: Places) -> Places:
    """``found`` with nodes that serve several modules in the scope around these.

    A node leaves a module that owns layers if nothing that it reads comes from inside
    and somebody outside reads what it makes. A module without layers is there to
    compute for others: its nodes stay. A layer leaves its module if what it computes
    is the same for all inputs of a size, as the bias of relative positions is.
    """
    run = _Hoisting(graph, found)
    for node in reversed(graph.nodes):
        run.want(node)
    for node in graph.nodes:
        run.settle(node)
    for node in reversed(graph.nodes):
        run.bring_back(node, found.scopes[id(node)])
    moved = {i for i in found.layers if run.scopes.get(i) != found.scopes.get(i)}
    return Places(found.layers, run.scopes, moved)


def regular(graph: Graph) -> set[str]:
    """The values that depend on the extents of the inputs alone."""
    found: set[str] = set()
    for node in graph.nodes:
        read = [name for name in node.inputs if name is not None]
        stored = all(name in found or name in graph.constants for name in read)
        known = all(graph.types[n].known is not None for n in node.outputs if n)
        if not node.op.bodies() and (known or (stored and node.op.deterministic)):
            found.update(name for name in node.outputs if name is not None)
    return found


class _Hoisting:
    def __init__(self, graph: Graph, found: Places) -> None:
        self.layers = found.layers
        self.scopes = dict(found.scopes)
        self.users = graph.users
        self.constants = graph.constants
        self.wanted: dict[int, Path] = {}
        self.made: dict[str, Path] = {}
        self.regular = regular(graph)
        self.owning = {
            path[:length]
            for path in found.layers.values()
            for length in range(len(path))
        }

    def want(self, node: Node) -> None:
        """Note the scope around all who need ``node``."""
        own = self.scopes[id(node)]
        readers = [
            self.wanted[id(user)]
            for name in node.outputs
            if name is not None
            for user in self.users.get(name, ())
        ]
        fixed = bool(node.op.bodies()) or self.owns(node)
        if id(node) in self.layers:
            fixed = not self.regular.issuperset(filter(None, node.outputs))
        self.wanted[id(node)] = own if fixed else common([own, *readers])

    def owns(self, node: Node) -> bool:
        """Whether ``node`` reads a stored weight, whose key says where it belongs."""
        literals = self.constants.literals
        stored = [n for n in node.inputs if n in self.constants and n not in literals]
        return any(
            n is not None and is_float(self.constants[n].dtype) and "." in n
            for n in stored
        )

    def bring_back(self, node: Node, own: Path) -> None:
        """Undo a move if all who read ``node`` stayed inside."""
        moved = self.scopes[id(node)]
        if moved == own:
            return
        readers = [
            self.scopes[id(user)]
            for name in node.outputs
            if name is not None
            for user in self.users.get(name, ())
        ]
        home = common([own, *readers])
        while home and len(home) < len(own) and own[len(home)].isdigit():
            home = home[:-1]  # a list runs nothing
        self.scopes[id(node)] = max(moved, home, key=len)

    def settle(self, node: Node) -> None:
        """Move ``node`` as far out as what it reads, and modules around it, allow."""
        own = self.scopes[id(node)]
        length = len(own)
        sources = [self.made[name] for name in node.inputs if name in self.made]
        while length > len(self.wanted[id(node)]):
            leaving = own[:length]
            inside = any(source[:length] == leaving for source in sources)
            if inside or leaving not in self.owning:
                break
            length -= 1
        while length and length < len(own) and own[length].isdigit():
            length -= 1  # a list runs nothing
        self.scopes[id(node)] = own[:length]
        self.made.update(dict.fromkeys(filter(None, node.outputs), own[:length]))
