"""Detection of statements that repeat at a fixed distance: the rounds of an author.

A round is one iteration of an author's loop, which the exporter has unrolled.
Candidates are found by the keys of statements alone, in time linear in their number;
:class:`Steps` compares their data flow.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from burn_import.codegen.loops.equal_statements import Shape
from burn_import.codegen.loops.equal_steps import FEWEST_ROUNDS, Run, Steps
from burn_import.provenance.path_segments import Path
from burn_import.tracing.statements import reads
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol


def schedules(
    statements: Sequence[Statement], path: Path
) -> Iterator[Sequence[Statement]]:
    """Yield ``statements`` as given, then with independent statements moved out."""
    yield statements
    calls = [at for at, one in enumerate(statements) if _is_call(one, path)]
    if len(calls) < 2:
        return
    first, last = calls[0], calls[-1]
    window = statements[first : last + 1]
    before, inside = _hoisted(window, path)
    if before:
        yield [*statements[:first], *before, *inside, *statements[last + 1 :]]
    inside, after = _sunk(inside, path)
    if after:
        rest = [*after, *statements[last + 1 :]]
        yield [*statements[:first], *before, *inside, *rest]


def _is_call(statement: Statement, path: Path) -> bool:
    """Return whether the statement calls a member of the list, or inside one."""
    own = isinstance(statement, ModuleCall) and not statement.visit
    called = statement.path if isinstance(statement, ModuleCall) and own else ()
    return called[: len(path)] == path and called[len(path) : len(path) + 1] != ()


def _moves(statement: Statement) -> bool:
    """Return whether a statement may be moved: it calls no other module."""
    if isinstance(statement, ModuleCall):
        return statement.visit
    return isinstance(statement, Apply)


def _hoisted(
    window: Sequence[Statement], path: Path
) -> tuple[list[Statement], list[Statement]]:
    """Split statements into those that depend on no step, and the others."""
    defined: set[Symbol] = set()
    before: list[Statement] = []
    inside: list[Statement] = []
    for statement in window:
        own = _is_call(statement, path) or not _moves(statement)
        if own or any(symbol in defined for symbol in reads(statement)):
            defined.update(statement.targets)
            inside.append(statement)
        else:
            before.append(statement)
    return before, inside


def _sunk(
    window: Sequence[Statement], path: Path
) -> tuple[list[Statement], list[Statement]]:
    """Split statements into those that member calls depend on, and the others."""
    needed: set[Symbol] = set()
    inside: list[Statement] = []
    after: list[Statement] = []
    for statement in reversed(window):
        own = _is_call(statement, path) or not _moves(statement)
        if own or any(target in needed for target in statement.targets):
            needed.update(reads(statement))
            inside.append(statement)
        else:
            after.append(statement)
    return inside[::-1], after[::-1]


#: Maximum occurrences of a key in a round whose distance is a candidate period.
MOST_OCCURRENCES = 6
#: Maximum candidate periods, regions and first statements that are compared.
MOST_PERIODS, MOST_REGIONS, MOST_STARTS = 24, 8, 3
#: Maximum number of statements in a round.
LONGEST_ROUND = 400

Keys = np.ndarray[tuple[int], np.dtype[np.int64]]


class Region(NamedTuple):
    """Statements from ``start`` to before ``stop``, equal at a distance."""

    start: int
    stop: int
    period: int


def find_rounds(steps: Steps) -> Iterator[Run]:
    """Yield runs of equal rounds, those of the longest regions first."""
    keys = _number_keys(steps.shapes)
    for region in _regions(keys)[:MOST_REGIONS]:
        for start in _starts(steps, region)[:MOST_STARTS]:
            most = (region.stop - start) // region.period
            yield from steps.rounds(start, region.period, most)


def first_round(shapes: Sequence[Shape | None]) -> int | None:
    """Return where statements begin to repeat, or None if they do not."""
    return min((one.start for one in _regions(_number_keys(shapes))), default=None)


def _number_keys(shapes: Sequence[Shape | None]) -> Keys:
    """Return a number for each statement, equal for those with equal keys."""
    numbers: dict[object, int] = {}
    keys = [
        -1 - at if shape is None else numbers.setdefault((shape.key, shape.path), at)
        for at, shape in enumerate(shapes)
    ]
    return np.array(keys, np.int64)


def _regions(keys: Keys) -> list[Region]:
    """Return the regions with at least the fewest rounds, the longest first."""
    regions = []
    for period in _periods(keys):
        equal = keys[period:] == keys[:-period]
        borders = np.flatnonzero(np.diff(equal, prepend=False, append=False))
        for start, stop in borders.reshape(-1, 2).tolist():
            if stop - start >= (FEWEST_ROUNDS - 1) * period:
                regions.append(Region(start, stop + period, period))
    # Multiples of a period have the same region.
    return sorted(regions, key=lambda one: (one.start - one.stop, one.period))


def _periods(keys: Keys) -> list[int]:
    """Return the most frequent distances between statements with equal keys."""
    order = np.argsort(keys, kind="stable")
    longest = min(LONGEST_ROUND, len(keys) // FEWEST_ROUNDS)
    frequencies: Counter[int] = Counter()
    for apart in range(1, MOST_OCCURRENCES + 1):
        first, second = order[:-apart], order[apart:]
        distances = (second - first)[keys[first] == keys[second]]
        distances = distances[distances <= longest]
        frequencies.update(dict(enumerate(np.bincount(distances).tolist())))
    common = frequencies.most_common(MOST_PERIODS)
    return [period for period, count in common if count and period]


def _starts(steps: Steps, region: Region) -> list[int]:
    """Return the first statements of rounds that pass the fewest values on."""
    period = region.period
    linked = _first_linked(steps, region)
    crossing = _crossing_values(steps, min(linked, region.stop - 2 * period), period)
    earliest = max(region.start, linked - period)
    # Rounds that only read values of their own are linked nowhere.
    starts = {region.start, *range(earliest, min(linked, earliest + period - 1) + 1)}
    return sorted(starts, key=lambda start: (crossing[start % period], start))


def _first_linked(steps: Steps, region: Region) -> int:
    """Return the statement after the first round that starts from other values."""
    start, stop, period = region
    for at in range(min(stop - period, start + 2 * period) - 1, start - 1, -1):
        if not _is_linked(steps, at, period):
            return at + 1
    return start


def _is_linked(steps: Steps, at: int, period: int) -> bool:
    """Return whether a statement reads the same values as its match, a round later."""
    one, other = steps.shapes[at], steps.shapes[at + period]
    assert one is not None and other is not None
    for old, new in zip(one.leaves, other.leaves, strict=True):
        if old.data is not new.data:
            then, seat = _source(steps, old.data)
            if _source(steps, new.data) != (then + period, seat) or then < 0:
                return False
    return True


def _source(steps: Steps, symbol: Symbol) -> tuple[int, int]:
    return steps.maker.get(symbol, (-1, 0))


def _crossing_values(steps: Steps, start: int, period: int) -> list[int]:
    """Return how many values pass on to the next round, by its first statement."""
    last_reads: dict[tuple[int, int], int] = {}
    for at in range(start, min(start + 2 * period, len(steps.shapes))):
        shape = steps.shapes[at]
        for leaf in shape.leaves if shape is not None else ():
            producer, index = _source(steps, leaf.data)
            if start <= producer < start + period:
                last_reads[producer, index] = at
    changes = [0] * (3 * period + 1)
    for (producer, _), at in last_reads.items():
        changes[producer - start + 1] += 1
        changes[min(at, producer + period) - start + 1] -= 1
    totals = list(accumulate(changes))
    counts = [0] * period
    for offset, total in enumerate(totals):
        counts[(start + offset) % period] += total
    return counts
