"""Conversion of consecutive calls of list members to an ``nn.Sequential`` call."""

from __future__ import annotations

from collections.abc import Iterator

from burn import Tensor
from burn_import.codegen.containers.containers import Containers
from burn_import.provenance.path_segments import Path
from burn_import.tracing.statements import count_uses
from burn_import.tracing.trace import Block, ModuleCall
from burn_ir.containers import python_type


def chain_calls(block: Block, path: Path, containers: Containers) -> bool:
    """Merge the calls of all members of a list into one call; return if possible.

    Each member must take the result of the previous one, which nothing else reads.
    Members that are lists must be chains, too.
    """
    calls = [
        (at, one)
        for at, one in enumerate(block.statements)
        if isinstance(one, ModuleCall) and one.path[: len(path)] == path
    ]
    lists = [path]
    expected = list(_members(path, containers, lists))
    if [one.path for _, one in calls] != expected or not _is_chain(block, calls):
        return False
    (_, first), (end, last) = calls[0], calls[-1]
    block.statements[end] = ModuleCall(path, first.args, last.targets)
    gone = {at for at, _ in calls[:-1]}
    remaining = [one for at, one in enumerate(block.statements) if at not in gone]
    block.statements = remaining
    containers.chains.update(lists)
    return True


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


def _is_chain(block: Block, calls: list[tuple[int, ModuleCall]]) -> bool:
    """Return whether one tensor passes all calls and is only read at the end."""
    for _, call in calls:
        one = len(call.args) == 1 and len(call.targets) == 1
        if not one or not isinstance(call.args[0], Tensor):
            return False
        kinds = {python_type(s.type) for s in (call.args[0].data, *call.targets)}
        if kinds != {"Tensor"}:
            return False
    uses = count_uses(block)
    return all(
        after.args[0].data is before.targets[0] and uses[before.targets[0]] == 1
        for (_, before), (_, after) in zip(calls, calls[1:], strict=False)
    )
