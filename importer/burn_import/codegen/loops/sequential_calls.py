"""Conversion of consecutive calls of list members to an ``nn.Sequential`` call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from burn import Tensor
from burn_import.codegen.containers.containers import Containers
from burn_import.codegen.sequence_steps import fill_steps
from burn_import.provenance.path_segments import Path
from burn_import.tracing.statements import count_uses
from burn_import.tracing.trace import Apply, Block, ModuleCall
from burn_ir.containers import python_type

#: Free numbers of a list, and the functions that take their place, with positions.
Gap = tuple[list[Path], list[tuple[int, Apply]]]


@dataclass(frozen=True)
class Chain:
    """The calls of the members of a list, with their positions in a block.

    Each takes the result of the previous one, which nothing else reads. ``lists`` are
    the list and those in it; functions of one tensor between the calls are in ``gaps``.
    """

    calls: list[tuple[int, ModuleCall]]
    lists: list[Path]
    gaps: list[Gap]


def find_chain(block: Block, path: Path, containers: Containers) -> Chain | None:
    """Return the calls of all members of the list at ``path`` if they are a chain."""
    calls = [
        (at, one)
        for at, one in enumerate(block.statements)
        if isinstance(one, ModuleCall) and one.path[: len(path)] == path
    ]
    lists = [path]
    expected = list(_members(path, containers, lists))
    if [one.path for _, one in calls] != expected or not all(map(_is_unary, calls)):
        return None
    gaps = _gaps(block, [call for _, call in calls])
    return None if gaps is None else Chain(calls, lists, gaps)


def chain_calls(block: Block, chain: Chain, containers: Containers) -> None:
    """Merge the calls of a chain into one call of its list."""
    (_, first), (end, last) = chain.calls[0], chain.calls[-1]
    block.statements[end] = ModuleCall(chain.lists[0], first.args, last.targets)
    gone = {at for at, _ in chain.calls[:-1]}
    for slots, steps in chain.gaps:
        gone.update(at for at, _ in steps)
        texts = fill_steps([step.forms for _, step in steps], len(slots))
        for slot, text in zip(slots, texts, strict=True):
            containers.add(slot, text)
    remaining = [one for at, one in enumerate(block.statements) if at not in gone]
    block.statements = remaining
    containers.chains.update(chain.lists)


def _members(path: Path, containers: Containers, lists: list[Path]) -> Iterator[Path]:
    """Yield the modules of a list and of nested lists; add these to ``lists``."""
    for number in sorted(map(int, containers.children[path])):
        member = (*path, str(number))
        inner = member in containers.children and member not in containers.entries
        if inner and containers.is_list(member):
            lists.append(member)
            yield from _members(member, containers, lists)
        else:
            yield member


def _is_unary(numbered: tuple[int, ModuleCall]) -> bool:
    """Return whether a call has one tensor and one result."""
    _, call = numbered
    one = len(call.args) == 1 and len(call.targets) == 1
    if not one or not isinstance(call.args[0], Tensor):
        return False
    kinds = {python_type(s.type) for s in (call.args[0].data, *call.targets)}
    return kinds == {"Tensor"}


def _gaps(block: Block, calls: Sequence[ModuleCall]) -> list[Gap] | None:
    """Return what is between the calls of a chain; None if it is no chain.

    One tensor passes all calls and functions, and is only read at the end.
    """
    uses = count_uses(block)
    steps = {
        one.targets[0]: (at, one)
        for at, one in enumerate(block.statements)
        if isinstance(one, Apply) and one.forms and isinstance(one.args[0], Tensor)
    }
    gaps: list[Gap] = []
    for before, after in pairwise(calls):
        between: list[tuple[int, Apply]] = []
        value = after.args[0].data
        while value is not before.targets[0]:
            if value not in steps or uses[value] != 1:
                return None
            between.insert(0, steps[value])
            value = between[0][1].args[0].data
        slots = _free_slots(before.path, after.path) if between else []
        if uses[value] != 1 or len(slots) < len(between):
            return None
        gaps.append((slots, between))
    return gaps


def _free_slots(before: Path, after: Path) -> list[Path]:
    """Return the paths between two members of a list, or of nested lists."""
    pairs = enumerate(zip(before, after, strict=False))
    level = next(n for n, (one, other) in pairs if one != other)
    numbers = range(int(before[level]) + 1, int(after[level]))
    return [(*before[:level], str(number)) for number in numbers]
