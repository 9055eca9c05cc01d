"""Calls of all members of a list in sequence, in the forms that classes use.

A list with one member is called by index, one with equal members by a loop, and others
as an ``nn.Sequential``. The forms are unified, so that classes may differ in list
length.
"""

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

#: The index of a list's only member.
ONLY = "0"


@dataclass(frozen=True)
class ListCall:
    """A call of a list's members with ``args``; ``carried`` is the changing one."""

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
        """Return a loop over the list that carries one argument."""
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
    """Return a statement as a possible call of a list's members, or None."""
    if isinstance(statement, Repetition):
        return _call_in_loop(statement)
    if not isinstance(statement, ModuleCall) or statement.results is not None:
        return None
    is_plain = not (statement.visit or statement.kept) and len(statement.targets) == 1
    if not is_plain or not all(isinstance(arg, Tensor) for arg in statement.args[:1]):
        return None
    form, path = "module", statement.path
    if path[-1] == ONLY:
        form, path = "number", path[:-1]
    return ListCall(form, path, statement.args, statement.targets[0])


def _call_in_loop(loop: Repetition) -> ListCall | None:
    """Return the list call of a loop whose body is a single call, or None."""
    if loop.items or len(loop.members) != 1 or not loop.members[0].whole:
        return None
    if len(loop.body.statements) != 1 or len(loop.targets) != 1:
        return None
    if len(loop.state) != 1 or len(loop.initial) != 1:  # it only appends to a list
        return None
    (call,), (state,), (start,) = loop.body.statements, loop.state, loop.initial
    if not isinstance(call, ModuleCall) or call.results is not None:
        return None
    carried = [at for at, arg in enumerate(call.args) if _is_value(arg, state)]
    is_chain = [target.data for target in loop.body.results] == call.targets
    if len(carried) != 1 or not is_chain or call.path[:-1] != loop.members[0].path:
        return None
    args = tuple(start if _is_value(arg, state) else arg for arg in call.args)
    return ListCall("loop", call.path[:-1], args, loop.targets[0], carried[0])


def _is_value(operand: Any, value: Symbol) -> bool:
    return isinstance(operand, Tensor) and operand.data is value


def unify_list_calls(statements: Sequence[Statement]) -> tuple[list[Statement], bool]:
    """Return statements in the form of the first, if all call one list.

    The flag is set if the first calls the only member of a list that is longer in
    other bodies: it must become a loop.
    """
    calls = [call for one in statements if (call := list_call(one)) is not None]
    forms = {call.form for call in calls}
    if len(calls) < len(statements) or len(forms) == 1:
        return list(statements), False
    if len({(call.path, len(call.args)) for call in calls}) > 1:
        return list(statements), False
    first = calls[0]
    if first.form == "loop":
        first_calls: list[Statement] = [statements[0]]
        return first_calls + [call.as_loop(first.carried) for call in calls[1:]], False
    if first.form == "module":
        single = all(len(call.args) == 1 for call in calls)
        return (
            [call.as_module() for call in calls] if single else list(statements)
        ), False
    return [call.by_number() for call in calls], True


def make_loops(statements: list[Statement], numbers: Collection[int]) -> None:
    """Replace statements that call a list's only member by loops."""
    for number in numbers:
        call = list_call(statements[number])
        assert call is not None
        statements[number] = call.as_loop(0)
