"""Division of a module's nodes into calls of submodules, and their order.

A shared encoder, a head over several feature maps or a layer that is applied repeatedly
has one path, so its nodes are in one group. The nodes of each call follow each other;
if they are the same operators with the same weights, position by position, each call is
a group of its own.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_kept
from burn_import.structure.shared_classes import op_key
from burn_ir.graph import Graph, Node
from burn_ir.infer import KNOWN_LIMIT
from burn_ir.ops.shape import Reshape


@dataclass(eq=False)
class Group:
    """Nodes that run together: a submodule (``key`` is its path), or one node.

    ``graph`` has the types of a call whose sizes are those of one of several calls.
    """

    key: Path | None
    nodes: list[Node]
    graph: Graph | None = None


def arrange(
    groups: list[Group], order: Mapping[int, int], split: Callable[[Group], list[Group]]
) -> list[Group]:
    """Return ``groups`` in an executable order, close to that of the file.

    A submodule that cannot run as one call (a node outside of it is needed in
    between) is split into its nodes and its submodules, which the enclosing module
    then runs.
    """
    while True:
        done, stuck = _sort(groups, order)
        if not stuck:
            return done
        broken = _largest_module(stuck)
        groups = [g for g in groups if g is not broken]
        groups += split(broken)


def _largest_module(stuck: list[Group]) -> Group:
    return max((g for g in stuck if g.key is not None), key=lambda g: len(g.nodes))


def _sort(
    groups: list[Group], order: Mapping[int, int]
) -> tuple[list[Group], list[Group]]:
    """Return the groups in topological order, and those in cycles or between them."""
    maker = {
        name: index
        for index, group in enumerate(groups)
        for node in group.nodes
        for name in node.outputs
        if name is not None
    }
    needs = [
        {maker[n] for node in g.nodes for n in node.inputs if n in maker} - {index}
        for index, g in enumerate(groups)
    ]
    users: list[list[int]] = [[] for _ in groups]
    for index, sources in enumerate(needs):
        for source in sources:
            users[source].append(index)
    waiting = [len(sources) for sources in needs]
    first = [min(order[id(node)] for node in group.nodes) for group in groups]
    ready = [(first[i], i) for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, index = heapq.heappop(ready)
        done.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (first[user], user))
    stuck = _before_cycles(set(range(len(groups))) - set(done), needs, users)
    return [groups[index] for index in done], [groups[index] for index in stuck]


def _before_cycles(
    stuck: set[int], needs: Sequence[set[int]], users: Sequence[Sequence[int]]
) -> list[int]:
    """Return those of ``stuck`` that a cycle needs, without those that need one."""
    left = {index: sum(user in stuck for user in users[index]) for index in stuck}
    last = [index for index, count in left.items() if not count]
    while last:
        index = last.pop()
        del left[index]
        for source in needs[index] & left.keys():
            left[source] -= 1
            if not left[source]:
                last.append(source)
    return sorted(left)


class Invocations:
    """The calls in a group of nodes, by comparing nodes at a fixed distance."""

    def __init__(
        self,
        graph: Graph,
        layers: Mapping[int, Path],
        users: Mapping[str, Sequence[Node]],
    ) -> None:
        self.graph, self.layers, self.users = graph, layers, users
        self.results = set(graph.outputs)

    def possible(self, group: Group) -> Iterator[tuple[list[Group], list[Group]]]:
        """Yield divisions of a module's nodes into calls, that with most calls first.

        The calls have the same operators, of operands of the same ranks. With them come
        nodes that no call contains: what they compute from extents is known.
        """
        needed = [node for node in group.nodes if not self._is_known(node)]
        constant = [Group(None, [n]) for n in group.nodes if self._is_known(n)]
        for nodes, apart in ((group.nodes, []), (needed, constant))[
            : 1 + bool(constant)
        ]:
            for calls in self._divisions(nodes):
                if self._are_equal(calls):
                    yield [Group(group.key, call) for call in calls], apart

    def open_targets(self, group: Group) -> dict[int, list[int]]:
        """Return targets with -1, by node, for reshapes that differ in one extent.

        They alone tell the calls in the group from each other.
        """
        for calls in self._divisions(group.nodes):
            targets = [self._targets(call) for call in calls]
            columns = [_opened(column) for column in zip(*targets, strict=False)]
            is_new = any(
                -1 in set(c) - set(t) for c, t in zip(columns, targets[0], strict=False)
            )
            if self._are_equal(calls, are_open=True) and all(columns) and is_new:
                return {
                    id(node): target
                    for call in calls
                    for node, target in zip(
                        filter(is_reshape, call), columns, strict=True
                    )
                }
        return {}

    def _divisions(self, nodes: Sequence[Node]) -> Iterator[list[list[Node]]]:
        for count in self._counts(nodes):
            size = len(nodes) // count
            yield [list(nodes[k : k + size]) for k in range(0, len(nodes), size)]

    def _is_known(self, node: Node) -> bool:
        """Return whether the results of a node follow from extents of its operands."""
        types = [self.graph.types[name] for name in filter(None, node.outputs)]
        return all(value.known is not None for value in types)

    def _targets(self, call: Sequence[Node]) -> list[list[int]]:
        """Return the stored targets of a call's reshapes, [] for computed ones."""
        stored = self.graph.constants
        names = [str(node.inputs[1]) for node in call if is_reshape(node)]
        return [stored[n].tolist() if n in stored else [] for n in names]

    def _counts(self, nodes: Sequence[Node]) -> Iterator[int]:
        """Yield possible numbers of calls, the largest first."""
        uses: dict[Hashable, int] = {}
        for node in nodes:
            path: Hashable = self.layers.get(id(node))
            read = (
                () if path else filter(self.graph.constants.__contains__, node.inputs)
            )
            for key in (path,) if path else {n for n in read if self._is_kept(n)}:
                uses[key] = uses.get(key, 0) + 1
        most = min(uses.values(), default=1)
        for count in range(most, 1, -1):
            divides = all(number % count == 0 for number in uses.values())
            if divides and len(nodes) % count == 0:
                yield count

    def _is_kept(self, name: str | None) -> bool:
        return name is not None and is_kept(self.graph, name)

    def _are_equal(
        self, calls: Sequence[Sequence[Node]], are_open: bool = False
    ) -> bool:
        first = self._signature(calls[0], are_open)
        return all(self._signature(call, are_open) == first for call in calls[1:])

    def _signature(self, call: Sequence[Node], are_open: bool) -> Hashable:
        """Return the operators of a call, with operands by position or from outside.

        The targets of reshapes do not count if they ``are_open``.
        """
        inside: dict[str, int] = {}
        outside: dict[str, int] = {}
        rows: list[Hashable] = []
        for node in call:
            read = node.inputs[:1] if are_open and is_reshape(node) else node.inputs
            operands = tuple(self._operand(n, inside, outside) for n in read)
            rows.append((op_key(node.op), self.layers.get(id(node)), operands))
            for name in filter(None, node.outputs):
                inside[name] = len(inside)
        return tuple(rows), tuple(self._read_outside(call, inside))

    def _operand(
        self, name: str | None, inside: dict[str, int], outside: dict[str, int]
    ) -> Hashable:
        if name is None:
            return name
        if name in self.graph.constants:
            return self._constant_key(name)
        if name in inside:
            return inside[name]
        if self.graph.types[name].known is not None:
            return "known", self._type(name)
        number = outside.setdefault(name, len(outside))
        return "outside", number, self._type(name)

    def _constant_key(self, name: str) -> Hashable:
        """Return the contents of a small array that is no parameter, else its name."""
        array = self.graph.constants[name]
        is_named = array.size > KNOWN_LIMIT or array.dtype == object
        if is_named or is_kept(self.graph, name):
            return name
        return array.dtype.str, array.shape, array.tobytes()

    def _type(self, name: str) -> Hashable:
        value = self.graph.types[name]
        return value.dtype.name, None if value.shape is None else value.rank

    def _read_outside(
        self, call: Sequence[Node], inside: Mapping[str, int]
    ) -> Iterator[int]:
        """Yield the positions of results that other calls or modules read."""
        own = set(map(id, call))
        for name, position in inside.items():
            users = self.users.get(name, ())
            if name in self.results or any(id(user) not in own for user in users):
                yield position


def is_reshape(node: Node) -> bool:
    """Return whether a node is a reshape to extents that are an operand."""
    return isinstance(node.op, Reshape)


def _opened(targets: Sequence[list[int]]) -> list[int]:
    """Return the common target with -1 for the only extent that differs, else []."""
    first = targets[0]
    if all(target == first for target in targets):
        return first
    if not first or any(len(t) != len(first) or min(t) < 1 for t in targets):
        return []
    columns = list(zip(*targets, strict=True))
    differing = [axis for axis, column in enumerate(columns) if len(set(column)) > 1]
    if len(differing) > 1:
        return []
    return [-1 if axis in differing else extent for axis, extent in enumerate(first)]
