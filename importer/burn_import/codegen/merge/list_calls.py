"""Calls of all members of a list, one after another, as several classes write them.

A list of one member is called by its number, one of equal members by a loop, and one
of others as an ``nn.Sequential``. Classes that differ in the length of a list are one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from burn import Tensor
from burn_import.provenance.path_segments import Path
from burn_import.tracing.statements import common_type
from burn_import.tracing.trace import (
    Block,
    Members,
    ModuleCall,
    Repetition,
    Statement,
    Symbol,
)
from burn_ir.dim import symbol

#: How a list of one member is called.
ONLY = "0"


@dataclass(frozen=True)
class ListCall:
    """What goes through the members of a list: ``args``, the one at ``carried`` on."""

    form: str
    path: Path
    args: tuple[Any, ...]
    target: Symbol
    carried: int = 0

    def by_number(self) -> ModuleCall:
        """Return the call of the only member."""
        return ModuleCall((*self.path, ONLY), self.args, [self.target])

    def as_module(self) -> ModuleCall:
        """Return the call of the list, an ``nn.Sequential``."""
        return ModuleCall(self.path, self.args, [self.target])

    def as_loop(self, carried: int) -> Repetition:
        """Return the loop through the list, whose rounds carry an argument."""
        start = self.args[carried]
        kind = common_type([start.data, self.target])
        state, result = Symbol(kind), Symbol(kind)
        args = list(self.args)
        args[carried] = Tensor(state, start.backend)
        call = ModuleCall((*self.path, ONLY), tuple(args), [result])
        body = Block([call], [Tensor(result, start.backend)])
        members = [Members(self.path, 0, 1, 1)]
        step = symbol("?step")
        targets = [self.target]
        return Repetition(None, step, [start], [state], body, "", targets, [], members)


def list_call(statement: Statement) -> ListCall | None:
    """Return what a statement calls if that may be the members of a list."""
    if isinstance(statement, Repetition):
        return _looped(statement)
    if not isinstance(statement, ModuleCall) or statement.results is not None:
        return None
    is_plain = not (statement.visit or statement.kept) and len(statement.targets) == 1
    if not is_plain or not all(isinstance(arg, Tensor) for arg in statement.args[:1]):
        return None
    form, path = "module", statement.path
    if path[-1] == ONLY:
        form, path = "number", path[:-1]
    return ListCall(form, path, statement.args, statement.targets[0])


def _looped(loop: Repetition) -> ListCall | None:
    """Return the call of a loop that does nothing else in a round."""
    if loop.items or len(loop.members) != 1 or not loop.members[0].whole:
        return None
    if len(loop.body.statements) != 1 or len(loop.targets) != 1:
        return None
    (call,), (state,), (start,) = loop.body.statements, loop.state, loop.initial
    if not isinstance(call, ModuleCall) or call.results is not None:
        return None
    carried = [at for at, arg in enumerate(call.args) if _is(arg, state)]
    is_chain = [target.data for target in loop.body.results] == call.targets
    if len(carried) != 1 or not is_chain or call.path[:-1] != loop.members[0].path:
        return None
    args = tuple(start if _is(arg, state) else arg for arg in call.args)
    return ListCall("loop", call.path[:-1], args, loop.targets[0], carried[0])


def _is(operand: Any, value: Symbol) -> bool:
    return isinstance(operand, Tensor) and operand.data is value


def alike(statements: Sequence[Statement]) -> tuple[list[Statement], bool]:
    """Return statements in the form of the first, if all call one list.

    The flag tells that the first calls the only member of a list which has more in
    others: it has to be a loop.
    """
    calls = [call for one in statements if (call := list_call(one)) is not None]
    forms = {call.form for call in calls}
    if len(calls) < len(statements) or len(forms) == 1:
        return list(statements), False
    if len({(call.path, len(call.args)) for call in calls}) > 1:
        return list(statements), False
    first = calls[0]
    if first.form == "loop":
        kept: list[Statement] = [statements[0]]
        return kept + [call.as_loop(first.carried) for call in calls[1:]], False
    if first.form == "module":
        single = all(len(call.args) == 1 for call in calls)
        return (
            [call.as_module() for call in calls] if single else list(statements)
        ), False
    return [call.by_number() for call in calls], True


def make_loops(statements: list[Statement], numbers: Collection[int]) -> None:
    """Let loops call the lists of which statements call the only member."""
    for number in numbers:
        call = list_call(statements[number])
        assert call is not None
        statements[number] = call.as_loop(0)
