"""Hoisting of values that equal modules compute, where others of them take them.

A mask that several layers share is computed around them, and one that a single layer
reads, inside it: then that layer would need a class of its own.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace

from burn_import.provenance.path_segments import Path, common
from burn_import.structure.hoisting import owns_weight, without_numbers
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node

#: Maximum number of elements of constants that are compared.
_FEW = 16


def hoist_like_siblings(graph: Graph, before: Places, after: Places) -> Places:
    """Return ``after`` with values hoisted out of modules like those of their siblings.

    ``before`` has the scopes before shared values were hoisted to ``after``. Modules
    are siblings if their paths differ in numbers. A value is hoisted if siblings
    read a hoisted value at the same operand, of the same operator with the same
    constants, and if it reads nothing from inside its module.
    """
    return _SiblingHoisting(graph, before, after).places()


class _SiblingHoisting:
    def __init__(self, graph: Graph, before: Places, after: Places) -> None:
        self.graph = graph
        self.before, self.after = before, after
        self.scopes = dict(after.scopes)
        #: The nodes that read a value, with the positions of the operands.
        self.reads: dict[str, list[tuple[Node, int]]] = {}
        for node in graph.nodes:
            for index, name in enumerate(node.inputs):
                if name is not None:
                    self.reads.setdefault(name, []).append((node, index))
        #: The module that a hoisted value has left, by its uses.
        self.left: dict[Hashable, Path] = {}
        for node in graph.nodes:
            own = before.scopes[id(node)]
            if len(after.scopes[id(node)]) < len(own):
                for use in filter(None, self.uses(node)):
                    self.left.setdefault(use, own)

    def places(self) -> Places:
        if not self.left:
            return self.after
        proposed = {id(node): self.target(node) for node in reversed(self.graph.nodes)}
        made_in: dict[str, Path] = {}
        for node in self.graph.nodes:
            target = proposed[id(node)]
            sources = [made_in[name] for name in node.inputs if name in made_in]
            if target is not None and all(
                len(common([source, self.scopes[id(node)]])) <= len(target)
                for source in sources
            ):
                self.scopes[id(node)] = target
            own = self.scopes[id(node)]
            made_in.update((name, own) for name in node.outputs if name is not None)
        return replace(self.after, scopes=self.scopes)

    def target(self, node: Node) -> Path | None:
        """Return the scope that a node may be hoisted to, None if it stays."""
        own = self.scopes[id(node)]
        if own != self.before.scopes[id(node)] or id(node) in self.before.layers:
            return None
        modules = [self.left.get(use) for use in self.uses(node)]
        if not modules or None in modules or node.op.bodies():
            return None
        if owns_weight(self.graph.constants, node):
            return None
        length = min(len(common([own, path])) for path in filter(None, modules))
        while 0 < length < len(own) and own[length].isdigit():
            length -= 1  # lists run no code
        return own[:length] if length < len(own) else None

    def uses(self, node: Node) -> Iterator[Hashable]:
        """Yield a key of each operand that reads a result of ``node``.

        None for a reader that is in no sibling of the node's module.
        """
        own = without_numbers(self.before.scopes[id(node)])
        for name in filter(None, node.outputs):
            if name in self.graph.results:
                yield None
            for user, index in self.reads.get(name, ()):
                is_sibling = without_numbers(self.before.scopes[id(user)]) == own
                key = (own, type(user.op), index, node.op, self.literals(node))
                yield key if is_sibling else None

    def literals(self, node: Node) -> tuple[Hashable, ...]:
        """Return the constants that a node reads: small ones by their contents."""
        return tuple(map(self.literal, node.inputs))

    def literal(self, name: str | None) -> Hashable:
        if name is None or name not in self.graph.constants:
            return None
        array = self.graph.constants[name]
        few = array.size <= _FEW
        return (str(array.dtype), array.shape, array.tobytes()) if few else name
