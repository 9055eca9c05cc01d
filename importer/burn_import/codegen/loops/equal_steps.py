"""Equal steps of a block through the members of a list.

Steps are compared by the exact way of their values: what a step reads is made in the
same place of the step, comes from the same place of the step before, or from outside.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from burn_import.codegen.containers.containers import Containers
from burn_import.codegen.loops.equal_statements import Shape, shape_of, varied
from burn_import.provenance.path_segments import Path
from burn_import.tracing.trace import Statement, Symbol
from burn_ir.containers import python_type

#: So many statements may stand before the call of a list's member in a step.
LONGEST_LEAD = 8
#: A loop over a part of a list has this many steps, or leaves out one.
FEWEST_OF_PART = 3


@dataclass(frozen=True)
class Run:
    """Equal steps: statements from ``start`` on, ``count`` times ``period``."""

    path: Path
    start: int
    period: int
    count: int


class Steps:
    """Statements, compared at the distance of a step."""

    def __init__(self, statements: Sequence[Statement], containers: Containers) -> None:
        self.statements = statements
        self.containers = containers
        self.shapes = [shape_of(statement) for statement in statements]
        self.maker = {
            target: (position, place)
            for position, statement in enumerate(statements)
            for place, target in enumerate(statement.targets)
        }

    def runs(self, path: Path) -> Iterator[Run]:
        """Runs of equal steps through the list at ``path``, the longest first."""
        found = []
        for first, period, count in self._even(path):
            for lead in range(min(period - 1, LONGEST_LEAD) + 1):
                found += self._equal(path, first - lead, period, count)
        found = [run for run in found if self._typed(run)]
        found.sort(key=lambda run: (-run.count * run.period, run.start))
        yield from found

    def _even(self, path: Path) -> list[tuple[int, int, int]]:
        """(first position, distance, count) of calls of members in equal distances."""
        places = list(self._calls(path))
        found: list[tuple[int, int, int]] = []
        for (at, number), (then, after) in zip(places, places[1:], strict=False):
            if after != number + 1:
                continue
            distance = then - at
            if found and found[-1][1] == distance and _end(found[-1]) == then:
                first, _, count = found[-1]
                found[-1] = (first, distance, count + 1)
            else:
                found.append((at, distance, 2))
        return found

    def _calls(self, path: Path) -> Iterator[tuple[int, int]]:
        """(position, number) of the first of each run of calls of one member."""
        last = -1
        for position, shape in enumerate(self.shapes):
            if shape is None or shape.path[: len(path)] != path:
                continue
            number = shape.path[len(path) : len(path) + 1]
            if number and number[0].isdigit() and int(number[0]) != last:
                last = int(number[0])
                yield position, last

    def _equal(self, path: Path, start: int, period: int, most: int) -> list[Run]:
        """The longest runs of steps from ``start`` on whose values flow alike."""
        if start < 0:
            return []
        found: list[Run] = []
        before: Hashable = None
        for step in range(most - 1):
            flow = self._flow(start + step * period, period)
            if flow is not None and flow == before:
                run = found.pop()
                found.append(Run(path, run.start, period, run.count + 1))
            elif flow is not None:
                found.append(Run(path, start + step * period, period, 2))
            before = flow
        return found

    def _flow(self, start: int, period: int) -> Hashable:
        """Where the step after the one at ``start`` has its values from."""
        if start + 2 * period > len(self.statements):
            return None
        flows = []
        for offset in range(period):
            one = self.shapes[start + offset]
            other = self.shapes[start + offset + period]
            if one is None or other is None or one.key != other.key:
                return None
            place = varied(one.path, other.path)
            kinds = [
                [python_type(t.type) for t in self.statements[at].targets]
                for at in (start + offset, start + offset + period)
            ]
            sources = self._sources(one, other, start, period)
            if place is None or sources is None or kinds[0] != kinds[1]:
                return None
            flows.append((place, sources))
        return tuple(flows)

    def _sources(
        self, one: Shape, other: Shape, start: int, period: int
    ) -> Hashable | None:
        """For each value of ``other`` which statement of which step it is made by."""
        sources: list[Hashable] = []
        middle = start + period
        for old, new in zip(one.leaves, other.leaves, strict=True):
            at, place = self.maker.get(new.data, (-1, 0))
            then, seat = self.maker.get(old.data, (-1, 0))
            if at >= middle:
                if (then, seat) != (at - period, place):
                    return None
                sources.append(("here", at - middle, place))
            elif then >= start or _differ(old.data, new.data):
                return None
            elif at >= start:
                sources.append(("before", at - start, place))
            else:
                sources.append("outside")
        return tuple(sources)

    def _typed(self, run: Run) -> bool:
        """Whether a type checker can follow the loop."""
        lists = members_of(run, self.shapes)
        if not all(self.containers.has(p, i, i + run.count) for p, i in lists):
            return False
        length = self.containers.length(run.path)
        few = run.count < min(FEWEST_OF_PART, length - 1)
        if few:
            return False
        alike = all(
            self.containers.is_alike(path, first, first + run.count)
            for path, first in lists
        )
        return alike or len(lists) == 1


def _end(even: tuple[int, int, int]) -> int:
    first, distance, count = even
    return first + distance * count


def _differ(one: Symbol, other: Symbol) -> bool:
    """Whether two values have no type in common, or are written in different ways."""
    if one is other:
        return False
    if one.known is not None or other.known is not None:
        return True
    if one.type is None or other.type is None:
        return one.type is not other.type
    kinds = python_type(one.type) == python_type(other.type)
    return not kinds or one.type.dtype != other.type.dtype


def members_of(run: Run, shapes: Sequence[Shape | None]) -> list[tuple[Path, int]]:
    """The lists that the steps go through, each with the number of its first member."""
    found: dict[tuple[Path, int], None] = {}
    for at in range(run.start, run.start + run.period):
        one, other = shapes[at], shapes[at + run.period]
        assert one is not None and other is not None
        place = varied(one.path, other.path)
        if place is not None and place >= 0:
            found[one.path[:place], int(one.path[place])] = None
    return list(found)
