"""Views at the border of one of several equal modules, moved around it.

Optimizers of exporters join the view at the end of a layer with the one at the start of
the next layer. Only the first layer then starts with a view, and only the last one ends
with one, and both would need a class of their own.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from burn_import.provenance.path_segments import Path
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Reshape, Squeeze, Transpose, Unsqueeze

_VIEWS = (Reshape, Squeeze, Transpose, Unsqueeze)
#: The least number of modules of a list of which one alone has a view.
_FEWEST = 3


def move_border_views(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with views in the scope around their module.

    A view moves if no other module of the list has one at that border: in front of the
    first module if it reads a value from outside, behind the last one if only nodes
    outside read its result.
    """
    return _Borders(graph, node_paths).moved()


class _Borders:
    def __init__(self, graph: Graph, node_paths: Places) -> None:
        self.graph, self.places = graph, node_paths
        self.scopes, self.users = node_paths.scopes, graph.users
        self.made_in = {
            name: self.scopes[id(node)]
            for node in graph.nodes
            for name in filter(None, node.outputs)
        }

    def moved(self) -> Places:
        """Return the paths with views moved out of their modules."""
        members = self.members()
        starts = self.lonely(self.starts(), members, is_last=False)
        ends = self.lonely(self.ends(), members, is_last=True)
        scopes = dict(self.scopes)
        for node in (*starts, *ends):
            own = self.scopes[id(node)]
            scopes[id(node)] = own[:-2]  # the list runs no code
        return replace(self.places, scopes=scopes)

    def members(self) -> dict[Path, set[Path]]:
        """Return the scopes of the modules of each list."""
        members: dict[Path, set[Path]] = defaultdict(set)
        for scope in self.scopes.values():
            for length in range(2, len(scope) + 1):
                if scope[length - 1].isdigit():
                    members[scope[: length - 1]].add(scope[:length])
        return members

    def lonely(
        self, views: Iterator[Node], members: dict[Path, set[Path]], *, is_last: bool
    ) -> list[Node]:
        """Return the views that only the first or last module of a list has."""
        lists: dict[Path, list[Node]] = defaultdict(list)
        for node in views:
            own = self.scopes[id(node)]
            if len(own) > 1 and own[-1].isdigit():
                lists[own[:-1]].append(node)
        chosen: list[Node] = []
        for path, nodes in lists.items():
            indices = sorted(int(member[-1]) for member in members[path])
            own = self.scopes[id(nodes[0])]
            is_at_end = int(own[-1]) == indices[-1 if is_last else 0]
            if len(nodes) == 1 and len(indices) >= _FEWEST and is_at_end:
                chosen += nodes
        return chosen

    def starts(self) -> Iterator[Node]:
        """Yield the views of values from outside that their module alone reads."""
        for node in self.views():
            given = node.inputs[0] or ""
            is_inside = self.has_made(node, given) or given in self.graph.constants
            if not is_inside and all(self.are_read_inside(node)):
                yield node

    def ends(self) -> Iterator[Node]:
        """Yield the views in a module that only nodes outside of it read."""
        for node in self.views():
            is_inside = self.has_made(node, node.inputs[0] or "")
            if is_inside and not any(self.are_read_inside(node)):
                yield node

    def has_made(self, node: Node, name: str) -> bool:
        """Return whether the module of a node has made a value."""
        return self.is_within(self.made_in.get(name, ()), node)

    def are_read_inside(self, node: Node) -> list[bool]:
        """Return for each reader of the result whether it is in the same module."""
        users = self.users.get(node.output, ())
        return [self.is_within(self.scopes[id(user)], node) for user in users]

    def is_within(self, scope: Path, node: Node) -> bool:
        """Return whether a scope is in the module of a node."""
        own = self.scopes[id(node)]
        return scope[: len(own)] == own

    def views(self) -> Iterator[Node]:
        """Yield views whose other operands are constants."""
        constants = self.graph.constants
        for node in self.graph.nodes:
            others = filter(None, node.inputs[1:])
            if isinstance(node.op, _VIEWS) and all(
                name in constants for name in others
            ):
                yield node
