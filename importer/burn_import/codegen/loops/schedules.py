"""Orders of statements in which the calls of a list's members may stand in equal steps.

A file has its nodes in one of many orders. What belongs to no step may stand between
two of them, and is then computed before the first step, or after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burn_import.provenance.path_segments import Path
from burn_import.tracing.statements import reads
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol


def schedules(
    statements: Sequence[Statement], path: Path
) -> Iterator[Sequence[Statement]]:
    """``statements`` as they are, then with those between steps moved out of them."""
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
    """Whether a member of the list at ``path``, or something in one, is called."""
    own = isinstance(statement, ModuleCall) and not statement.visit
    called = statement.path if isinstance(statement, ModuleCall) and own else ()
    return called[: len(path)] == path and called[len(path) : len(path) + 1] != ()


def _moves(statement: Statement) -> bool:
    """Whether a statement may stand elsewhere: no other module is called by it."""
    if isinstance(statement, ModuleCall):
        return statement.visit
    return isinstance(statement, Apply)


def _hoisted(
    window: Sequence[Statement], path: Path
) -> tuple[list[Statement], list[Statement]]:
    """Statements that nothing of a step flows into, and the others."""
    made: set[Symbol] = set()
    before: list[Statement] = []
    inside: list[Statement] = []
    for statement in window:
        own = _is_call(statement, path) or not _moves(statement)
        if own or any(symbol in made for symbol in reads(statement)):
            made.update(statement.targets)
            inside.append(statement)
        else:
            before.append(statement)
    return before, inside


def _sunk(
    window: Sequence[Statement], path: Path
) -> tuple[list[Statement], list[Statement]]:
    """The statements that a call of a member needs, and the others."""
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
