"""Names for operands of statements that are too long for a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_import.codegen.printing.print_if import WIDTH
from burn_import.tracing.expression import Expression
from burn_import.tracing.statements import operands, symbols_in
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

if TYPE_CHECKING:
    from burn_import.codegen.printing.line_writer import LineWriter

#: The shortest operand that gets a name to shorten a line.
SHORTEST = 16
#: The length of a name, for an estimate.
NAME = 6
#: An element of a list has a name: the list's, with a number.
_ELEMENT = re.compile(r"[\w.]+\[-?\w+\]")


def in_one_line(
    writer: LineWriter,
    statement: Statement,
    expression: Expression,
    indent: int,
    name: str = "x",
) -> Expression:
    """Return the expression of ``statement``; name operands first if it is too long.

    Long operands that were deferred for this line are named all at once, others from
    the longest on, and only if the line fits then. ``name`` is about as long as that
    of the result.
    """
    start = "return " if writer.is_last(statement) else f"{name} = "
    room = WIDTH - 4 * indent - len(start)
    if len(expression.text) <= room or not isinstance(statement, Apply | ModuleCall):
        return expression
    symbols = list(dict.fromkeys(symbols_in(operands(statement))))
    tried = [symbol for symbol in symbols if symbol in writer.trial]
    if any([_is_shortened(writer, symbol, indent) for symbol in tried]):
        expression = writer.render.statement(statement)
    if tried and len(expression.text) > room:
        for symbol in tried:
            writer.trial.discard(symbol)
            writer.give_name(*writer.held[symbol], indent)
        expression = writer.render.statement(statement)
    for alike in _longest(writer, symbols, len(expression.text) - room):
        for symbol in alike:
            writer.give_name(*writer.held[symbol], indent)
        expression = writer.render.statement(statement)
        if len(expression.text) <= room:
            break
    return expression


def _is_shortened(writer: LineWriter, symbol: Symbol, indent: int) -> bool:
    """Shorten a deferred operand that has no room in a line of its own either."""
    statement, expression = writer.held[symbol]
    name = writer.guessed_name(statement, expression)
    short = in_one_line(writer, statement, expression, indent, name)
    writer.held[symbol] = statement, short
    writer.render.pending[symbol] = short
    return short is not expression


def _longest(
    writer: LineWriter, symbols: Sequence[Symbol], excess: int
) -> list[list[Symbol]]:
    """Return the deferred operands to name, the longest first, grouped by operator.

    There are none if names for all of them do not save ``excess`` characters.
    """
    pending = writer.render.pending
    texts = {s: pending[s].text for s in symbols if s in pending and s in writer.held}
    unnamed = {s: text for s, text in texts.items() if not _ELEMENT.fullmatch(text)}
    long = {s: len(text) for s, text in unnamed.items() if len(text) >= SHORTEST}
    if excess <= 0 or sum(long.values()) - NAME * len(long) < excess:
        return []
    groups: dict[Any, list[Symbol]] = {}
    for symbol in sorted(long, key=lambda symbol: -long[symbol]):
        statement = writer.held[symbol][0]
        kind = statement.primitive if isinstance(statement, Apply) else symbol
        groups.setdefault(kind, []).append(symbol)
    return [sorted(group, key=symbols.index) for group in groups.values()]
