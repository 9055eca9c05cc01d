"""Emission of ``if`` statements whose branches assign the same names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from burn import Tensor
from burn_import.codegen.printing.name_candidates import noun_of
from burn_import.tracing.expression import CONDITIONAL, Expression, merge
from burn_import.tracing.statements import block_reads
from burn_import.tracing.trace import (
    Apply,
    Block,
    Choice,
    ModuleCall,
    Statement,
    Symbol,
)
from burn_ir.containers import python_type

if TYPE_CHECKING:
    from burn_import.codegen.printing.line_writer import LineWriter

#: Maximum width of a line.
WIDTH = 88
#: Maximum width of a condition with both values in one expression.
SHORT = 68


def write_choice(writer: LineWriter, choice: Choice, indent: int) -> None:
    """Write an ``if`` whose branches assign the same names."""
    short = _ternary(writer, choice)
    if short is not None:
        writer.assign(choice, short, indent)
        return
    condition = writer.render.data(choice.condition)
    writer.spend(condition)
    if _reassigns(writer, choice):
        _write_reassignment(writer, choice, condition, indent)
        return
    begin, names = len(writer.lines), []
    for target in choice.targets:
        name = writer.free(noun_of(writer, target, choice) or "y", target)
        names.append(name)
        writer.claim(target, name)
    for head, block in (
        (f"if {condition.text}:", choice.then),
        ("else:", choice.orelse),
    ):
        writer.line(head, indent)
        _write_branch(writer, block, names, indent + 1)
    _collapse(writer, begin, indent)
    for target in choice.targets:
        writer.read_extents(target, indent)


def _write_branch(
    writer: LineWriter, block: Block, names: list[str], indent: int
) -> None:
    """Write one side, which assigns ``names``; its own names are free after it."""
    live, start = dict(writer.live), len(writer.lines)
    writer.forced.update(_made_here(writer, block, names))
    writer.block(block, indent)
    for name, value in zip(names, block.results, strict=True):
        result = writer.result(value)
        writer.spend(result)
        if result.text != name:
            target_text = writer.declared(name, value.data, result)
            writer.line(f"{target_text} = {result.text}", indent)
    if len(writer.lines) == start:
        writer.line("pass", indent)
    writer.live = {
        name: symbol
        for name, symbol in live.items()
        if symbol is None or writer.remaining.get(symbol, 0) > 0
    }


def _reassigns(writer: LineWriter, choice: Choice) -> bool:
    """Return whether ``else`` keeps a value that nothing else reads afterwards."""
    if choice.orelse.statements or not choice.then.statements:
        return False
    if len(choice.targets) != 1 or isinstance(choice.condition, Tensor):
        return False
    symbol = choice.orelse.results[0].data
    (target,) = choice.targets
    reads = 1 + sum(read is symbol for read in block_reads(choice.then))
    name = writer.render.names.get(symbol, "")
    is_local = writer.live.get(name) is symbol
    same = python_type(symbol.type) == python_type(target.type)
    return is_local and same and writer.remaining.get(symbol) == reads


def _write_reassignment(
    writer: LineWriter, choice: Choice, condition: Expression, indent: int
) -> None:
    """Write an ``if`` without ``else``, which assigns a new value to a name."""
    before = writer.result(choice.orelse.results[0])
    name = before.text
    writer.line(f"if {condition.text}:", indent)
    live, start = dict(writer.live), len(writer.lines)
    writer.forced.update(_made_here(writer, choice.then, [name]))
    writer.block(choice.then, indent + 1)
    value = writer.result(choice.then.results[0])
    writer.spend(value)
    if value.text != name or len(writer.lines) == start:
        writer.line(f"{name} = {value.text}", indent + 1)
    writer.spend(before)
    writer.live = {
        each: symbol
        for each, symbol in live.items()
        if symbol is None or writer.remaining.get(symbol, 0) > 0
    }
    (target,) = choice.targets
    writer.claim(target, name)
    writer.read_extents(target, indent)


def _collapse(writer: LineWriter, begin: int, indent: int) -> None:
    """Replace an ``if`` that assigns one short value by a conditional expression."""
    if len(writer.lines) - begin != 4:
        return
    head, then, _, orelse = (line.strip() for line in writer.lines[begin:])
    name, _, value = then.partition(" = ")
    other, _, default = orelse.partition(" = ")
    condition = head.removeprefix("if ").removesuffix(":")
    text = f"{name} = {value} if {condition} else {default}"
    is_short = len(text) + 4 * indent <= WIDTH and "#" not in text
    if not value or name != other or not is_short:
        return
    if not any(map(_is_conditional, (value, condition))):  # it would need parentheses
        del writer.lines[begin:]
        writer.line(text, indent)


def _is_conditional(text: str) -> bool:
    """Return whether an expression contains ``if`` and ``else``."""
    return isinstance(ast.parse(text, mode="eval").body, ast.IfExp)


def _made_here(writer: LineWriter, block: Block, names: list[str]) -> dict[Symbol, str]:
    """Return the results that a branch computes itself, with their names."""
    computed = {t for statement in block.statements for t in statement.targets}
    return {
        value.data: name
        for name, value in zip(names, block.results, strict=True)
        if value.data in computed and writer.remaining.get(value.data) == 1
    }


def _ternary(writer: LineWriter, choice: Choice) -> Expression | None:
    """Return ``a if condition else b`` if both sides are short, else None."""
    if len(choice.targets) != 1:
        return None
    sides = [_side(writer, block) for block in (choice.then, choice.orelse)]
    condition = writer.render.data(choice.condition)
    if sides[0] is None or sides[1] is None:
        return None
    then, orelse = sides[0], sides[1]
    head = f"{then.inside(CONDITIONAL + 1)} if {condition.inside(CONDITIONAL + 1)}"
    text = f"{head} else {orelse.inside(CONDITIONAL)}"
    if len(text) > SHORT:
        return None
    return Expression(text, CONDITIONAL, merge([then, condition, orelse]))


def _side(writer: LineWriter, block: Block) -> Expression | None:
    """Return the value of a branch with at most one call, else None."""
    (result,) = block.results
    if not block.statements:
        return writer.result(result)
    first, *rest = block.statements
    if rest or not isinstance(first, Apply | ModuleCall):
        return None
    if len(first.targets) != 1 or first.targets[0] is not result.data:
        return None
    return None if is_always_tuple(first) else writer.render.statement(first)


def is_always_tuple(statement: Statement) -> bool:
    """Return whether the right-hand side is a tuple that is unpacked, of any length."""
    primitive = getattr(statement, "primitive", None)
    if primitive is None or primitive.outputs == 1:
        return False
    return python_type(statement.targets[0].type) == "Tensor"
