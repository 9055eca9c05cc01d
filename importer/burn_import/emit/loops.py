"""Calls of all members of a list, one after the other, become a loop."""

from __future__ import annotations

from burn import Tensor
from burn_import.emit.containers import Containers
from burn_import.source.trace import Block, Loop, ModuleCall, Statement, Symbol
from burn_import.source.walk import count_uses


def roll_up(block: Block, containers: Containers) -> None:
    """Replace runs of calls that pass one value through a whole list of equals."""
    uses = count_uses(block)
    rolled: list[Statement] = []
    statements = block.statements
    index = 0
    while index < len(statements):
        run = _run(statements, index, containers, uses)
        rolled.append(statements[index] if run is None else _loop(run))
        index += 1 if run is None else len(run)
    block.statements = rolled


def _run(
    statements: list[Statement],
    start: int,
    containers: Containers,
    uses: dict[Symbol, int],
) -> list[ModuleCall] | None:
    """The calls from ``start`` on that make up a loop, or None."""
    first = statements[start]
    if not isinstance(first, ModuleCall) or first.path[-1] != "0":
        return None
    path = first.path[:-1]
    if not containers.is_list(path) or not containers.is_uniform(path):
        return None
    length = len(containers.children[path])
    calls = statements[start : start + length]
    run = [call for call in calls if isinstance(call, ModuleCall)]
    if length < 2 or [c.path for c in run] != [(*path, str(i)) for i in range(length)]:
        return None
    carried = _carried(run[0], run[1])
    if carried is None:
        return None
    chained = all(
        _carried(a, b) == carried and uses.get(a.targets[0]) == 1
        for a, b in zip(run, run[1:], strict=False)
    )
    return run if chained else None


def _carried(before: ModuleCall, after: ModuleCall) -> int | None:
    """The place in ``after`` of the result of ``before``, if all else is equal."""
    if len(before.targets) != 1 or len(before.args) != len(after.args):
        return None
    places = []
    for place, (old, new) in enumerate(zip(before.args, after.args, strict=True)):
        if isinstance(new, Tensor) and new.data is before.targets[0]:
            places.append(place)
        elif old is not new:
            return None
    return places[0] if len(places) == 1 else None


def _loop(run: list[ModuleCall]) -> Loop:
    carried = _carried(run[0], run[1])
    assert carried is not None
    return Loop(run[0].path[:-1], run[0].args, carried, run[-1].targets)
