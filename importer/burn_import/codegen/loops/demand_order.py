"""Statements in the order of demand: each right before its first reader.

Exporters list some nodes of all rounds before or after the others, such as the slices
of an input. In the order of demand, each round has its own.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, count
from operator import is_not
from typing import Any

from burn_import.codegen.loops.equal_statements import Shape
from burn_import.tracing.statements import operands, reads, symbols_in
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

#: Minimum reads of a value whose gradient depends on their order.
FEWEST_ORDERED_READS = 3


def order_by_demand(
    statements: Sequence[Statement],
    results: Any,
    shapes: Sequence[Shape | None],
    start: int,
) -> Iterator[list[Statement]]:
    """Yield the statements in other orders that do not change results.

    Statements without an equal one keep their order, except where rounds join their
    result to those of all earlier ones. Rounds begin at ``start``, or in part before
    it.
    """
    if not all(map(_is_movable, statements)):
        return
    keys = Counter((s.key, s.path) for s in shapes if s is not None)
    is_single = [s is not None and keys[s.key, s.path] == 1 for s in shapes]
    reads_before = _ordered_reads(statements)
    order = _Order(statements, is_single, start)
    outside = [*order.before_rounds(start), *compress(count(), is_single)]
    orders = [order.run(outside, results)]
    order.share_sources(shapes)
    orders.append(order.run(outside, results))
    order.visit_shortest_first()
    orders.append(order.run([], results))
    for ordered in orders:
        is_other = any(map(is_not, ordered, statements))
        if is_other and _ordered_reads(ordered) == reads_before:
            yield ordered


def _is_movable(statement: Statement) -> bool:
    """Return whether a statement reads nothing that another one changes."""
    if isinstance(statement, ModuleCall):
        return not statement.kept
    return isinstance(statement, Apply)


class _Order:
    """A depth-first traversal, from statements to those that they read."""

    def __init__(
        self, statements: Sequence[Statement], is_single: Sequence[bool], start: int
    ) -> None:
        self.statements = statements
        self.maker = {
            target: at
            for at, statement in enumerate(statements)
            for target in statement.targets
        }
        #: The length of the longest path to each statement through rounds.
        outside = [single or at < start for at, single in enumerate(is_single)]
        self.depths = self.longest_paths(outside)
        #: The order in which the operands of each statement are visited.
        self.operands = [self.rank(at) for at in range(len(statements))]
        self.is_shortest_first = False
        #: The visited statements, in order.
        self.visited: dict[int, None] = {}

    def run(self, first: Sequence[int], results: Any) -> list[Statement]:
        """Return the statements in order of demand, with those at ``first`` first."""
        self.visited = {}
        for at in first:
            self.visit(at)
        for symbol in symbols_in(results):
            if symbol in self.maker:
                self.visit(self.maker[symbol])
        for at in range(len(self.statements)):
            self.visit(at)
        return [self.statements[at] for at in self.visited]

    def longest_paths(self, is_outside: Sequence[bool]) -> list[int]:
        """Return the length of the longest path to each statement that is inside."""
        depths: list[int] = []
        for at, statement in enumerate(self.statements):
            makers = [self.maker[s] for s in reads(statement) if s in self.maker]
            longest = max((depths[maker] for maker in makers), default=0)
            depths.append(0 if is_outside[at] else longest + 1)
        return depths

    def visit_shortest_first(self) -> None:
        """Visit the operands with the shortest paths first, also in lists.

        This keeps loop iterations in order that concatenate all earlier results.
        """
        self.depths = self.longest_paths([False] * len(self.statements))
        self.is_shortest_first = True

    def share_sources(self, shapes: Sequence[Shape | None]) -> None:
        """Visit the operands of equal statements in the order of the last statement.

        The first iteration starts from other values, which have shorter paths.
        """
        last = {(s.key, s.path): at for at, s in enumerate(shapes) if s is not None}
        for at, shape in enumerate(shapes):
            if shape is not None:
                self.operands[at] = self.operands[last[shape.key, shape.path]]

    def before_rounds(self, start: int) -> list[int]:
        """Return the statements before ``start`` that are not part of a round.

        Those of a round have one reader, which is in the round.
        """
        readers: dict[int, list[int]] = {}
        outside: dict[int, None] = {}
        for at in range(len(self.statements) - 1, -1, -1):
            read_by = readers.get(at, [])
            if at < start and (len(read_by) != 1 or read_by[0] in outside):
                outside[at] = None
            for symbol in reads(self.statements[at]):
                if symbol in self.maker:
                    readers.setdefault(self.maker[symbol], []).append(at)
        return list(outside)[::-1]

    def visit(self, root: int) -> None:
        """Visit a statement after the statements that it reads."""
        stack = [(root, self.sources(root))]
        while stack:
            at, sources = stack[-1]
            following = next((s for s in sources if s not in self.visited), None)
            if following is None:
                self.visited[at] = None
                stack.pop()
            else:
                stack.append((following, self.sources(following)))

    def rank(self, at: int) -> list[int]:
        """Return the operands of a statement, that with the longest path first."""
        depths = [
            max((self.depths[source] for source in group), default=0)
            for group in self.groups(at)
        ]
        return sorted(range(len(depths)), key=lambda operand: -depths[operand])

    def groups(self, at: int) -> list[list[int]]:
        """Return the statements that each operand reads."""
        return [
            [self.maker[s] for s in symbols_in(operand) if s in self.maker]
            for operand in _operands(self.statements[at])
        ]

    def sources(self, at: int) -> Iterator[int]:
        """Return the statements that one reads; the elements of a list in order."""
        groups = self.groups(at)
        if self.is_shortest_first:
            return iter(sorted(chain(*groups), key=lambda source: self.depths[source]))
        return (source for operand in self.operands[at] for source in groups[operand])


def _operands(statement: Statement) -> Iterator[Any]:
    """Yield the operands of a statement, those in tuples one by one."""
    for operand in operands(statement):
        if isinstance(operand, tuple):
            yield from operand
        else:
            yield operand


def _ordered_reads(statements: Sequence[Statement]) -> dict[Symbol, list[int]]:
    """Return the identities of the statements that read values, where order matters.

    A gradient is the sum of those of all reads, which rounds in their order. That of
    a stored array flows into no other one.
    """
    readers: dict[Symbol, list[int]] = {}
    for statement in statements:
        for symbol in reads(statement):
            if not symbol.constant:
                readers.setdefault(symbol, []).append(id(statement))
    return {s: ids for s, ids in readers.items() if len(ids) >= FEWEST_ORDERED_READS}
