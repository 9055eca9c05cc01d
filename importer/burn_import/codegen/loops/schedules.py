"""Statement orders in which calls of list members are equally spaced.

Graph files list nodes in one of many valid orders. Statements that belong to no step
may be between two steps; they are moved before the first step, or after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
