"""Detection of equal steps in a block: over list members, or iterations (rounds).

A round calls the same modules as the one before it; its indices may depend on its
number. Steps are compared by their exact data flow: each operand must come from the
same position in the step, from the same position in the previous step, or from outside.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen.containers.containers import Containers
from burn_import.codegen.loops.equal_statements import Shape, shape_of, varied
from burn_import.provenance.path_segments import Path
from burn_import.tracing.trace import Statement, Symbol
from burn_ir.containers import python_type

#: Maximum number of statements before the member's call in a step.
LONGEST_LEAD = 8
#: Minimum steps of a loop over part of a list, unless it leaves out only one.
FEWEST_OF_PART = 3
#: Minimum rounds of a loop without a list.
FEWEST_ROUNDS = 3


#: For each statement of a step: the axis of its list that steps, the sources of its
#: operands, and the differences of its integers from those of the step before.
_Flow = tuple[tuple[int, Hashable, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Run:
    """Equal steps: statements from ``start`` on, ``count`` times ``period``.

    ``path`` is that of the list; the steps without one are rounds.
    """

    path: Path
    start: int
    period: int
    count: int


class Steps:
    """Statements for comparison at a fixed distance."""

    def __init__(self, statements: Sequence[Statement], containers: Containers) -> None:
        self.statements = statements
        self.containers = containers
        self.shapes = [shape_of(statement) for statement in statements]
        self.maker = {
            target: (position, index)
            for position, statement in enumerate(statements)
            for index, target in enumerate(statement.targets)
        }

    def runs(self, path: Path) -> Iterator[Run]:
        """Yield runs of equal steps through the list at ``path``, the longest first."""
        runs = []
        for first, period, count in self._evenly_spaced_calls(path):
            for lead in range(min(period - 1, LONGEST_LEAD) + 1):
                start = first - lead
                flows = self._flows(path, start, period, count)
                runs += _equal_runs(Run(path, start, period, 2), flows)
        runs = [run for run in runs if self._is_accepted(run)]
        runs.sort(key=lambda run: (-run.count * run.period, run.start))
        yield from runs

    def rounds(self, start: int, period: int, most: int) -> list[Run]:
        """Return the runs of rounds from ``start`` on, at a distance of ``period``.

        First those whose integers differ by the same from round to round, then those
        with other integers, of which the loop needs a list.
        """
        flows = self._flows((), start, period, most)
        uneven = [None if f is None else tuple(one[:2] for one in f) for f in flows]
        runs = dict.fromkeys(
            run
            for keys in (flows, uneven)
            for run in _equal_runs(Run((), start, period, 2), keys)
        )
        return [run for run in runs if run.count >= FEWEST_ROUNDS]

    def _evenly_spaced_calls(self, path: Path) -> list[tuple[int, int, int]]:
        """Return (first index, distance, count) of equally spaced member calls."""
        places = list(self._calls(path))
        series: list[tuple[int, int, int]] = []
        for (at, number), (then, after) in zip(places, places[1:], strict=False):
            if after != number + 1:
                continue
            distance = then - at
            if series and series[-1][1] == distance and _run_end(series[-1]) == then:
                first, _, count = series[-1]
                series[-1] = (first, distance, count + 1)
            else:
                series.append((at, distance, 2))
        return series

    def _calls(self, path: Path) -> Iterator[tuple[int, int]]:
        """Yield (index, member number) of the first call in each run on one member."""
        last = -1
        for position, shape in enumerate(self.shapes):
            if shape is None or shape.path[: len(path)] != path:
                continue
            number = shape.path[len(path) : len(path) + 1]
            if number and number[0].isdigit() and int(number[0]) != last:
                last = int(number[0])
                yield position, last

    def _flows(
        self, path: Path, start: int, period: int, most: int
    ) -> list[_Flow | None]:
        """Return the data flows of the steps after the one at ``start``."""
        if start < 0:
            return []
        starts = range(start, start + (most - 1) * period, period)
        return [self._flow(at, period, bool(path)) for at in starts]

    def _flow(self, start: int, period: int, over_list: bool) -> _Flow | None:
        """Return the data-flow key of the step after the one at ``start``, or None.

        Integers are equal in the steps over a list. In rounds, their differences
        are part of the key.
        """
        if start + 2 * period > len(self.statements):
            return None
        flows = []
        for offset in range(period):
            one = self.shapes[start + offset]
            other = self.shapes[start + offset + period]
            if one is None or other is None or one.key != other.key:
                return None
            axis = varied(one.path, other.path)
            kinds = [
                [python_type(t.type) for t in self.statements[at].targets]
                for at in (start + offset, start + offset + period)
            ]
            sources = self._sources(one, other, start, period)
            if axis is None or sources is None or kinds[0] != kinds[1]:
                return None
            if one.numbers != other.numbers if over_list else axis >= 0:
                return None
            pairs = zip(one.numbers, other.numbers, strict=True)
            differences = tuple(new - old for old, new in pairs)
            flows.append((axis, sources, differences))
        return tuple(flows)

    def _sources(
        self, one: Shape, other: Shape, start: int, period: int
    ) -> Hashable | None:
        """Return the statement and step of each producer of operands of ``other``."""
        sources: list[Hashable] = []
        middle = start + period
        for old, new in zip(one.leaves, other.leaves, strict=True):
            at, index = self.maker.get(new.data, (-1, 0))
            then, seat = self.maker.get(old.data, (-1, 0))
            if at >= middle:
                if (then, seat) != (at - period, index):
                    return None
                sources.append(("here", at - middle, index))
            elif then >= start or _differ(old.data, new.data):
                return None
            elif at >= start:
                sources.append(("before", at - start, index))
            else:
                sources.append("outside")
        return tuple(sources)

    def _is_accepted(self, run: Run) -> bool:
        """Return whether type checkers accept the loop and it has enough steps."""
        lists = members_of(run, self.shapes)
        if not all(self.containers.has(p, i, i + run.count) for p, i in lists):
            return False
        length = self.containers.length(run.path)
        few = run.count < min(FEWEST_OF_PART, length - 1)
        if few:
            return False
        are_equal = all(
            self.containers.is_alike(path, first, first + run.count)
            for path, first in lists
        )
        return are_equal or len(lists) == 1


def _equal_runs(first: Run, flows: Sequence[Hashable]) -> list[Run]:
    """Return the longest runs of steps with equal ``flows``, ``first`` on."""
    runs: list[Run] = []
    before: Hashable = None
    for step, flow in enumerate(flows):
        if flow is not None and flow == before:
            run = runs.pop()
            runs.append(replace(run, count=run.count + 1))
        elif flow is not None:
            runs.append(replace(first, start=first.start + step * first.period))
        before = flow
    return runs


def _run_end(even: tuple[int, int, int]) -> int:
    first, distance, count = even
    return first + distance * count


def _differ(one: Symbol, other: Symbol) -> bool:
    """Return whether two values differ in type or in literal contents."""
    if one is other:
        return False
    if one.known is not None or other.known is not None:
        return True
    if one.type is None or other.type is None:
        return one.type is not other.type
    kinds = python_type(one.type) == python_type(other.type)
    return not kinds or one.type.dtype != other.type.dtype


def members_of(run: Run, shapes: Sequence[Shape | None]) -> list[tuple[Path, int]]:
    """Return the lists that the steps go through, each with its first index."""
    members: dict[tuple[Path, int], None] = {}
    for at in range(run.start, run.start + run.period):
        one, other = shapes[at], shapes[at + run.period]
        assert one is not None and other is not None
        axis = varied(one.path, other.path)
        if axis is not None and axis >= 0:
            members[one.path[:axis], int(one.path[axis])] = None
    return list(members)
