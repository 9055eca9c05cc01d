"""Names for operands of statements that are too long or too deeply nested."""

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

#: The most calls inside of each other's parentheses in a statement, and the most of
#: operations among them: ``self.fc2(ops.gelu(self.fc1(x)))`` reads like a chain, three
#: operations do not.
MOST_NESTED = 3
MOST_OPERATIONS = 2
#: The shortest operand that gets a name to shorten a line.
SHORTEST = 16
#: The length of a name, for an estimate.
NAME = 6
#: A parenthesis, with what precedes the one of a call.
_PARENTHESIS = re.compile(r"(ops\.\w+|[\w\])]?)\(|\)")
#: A string, as ``repr`` writes it.
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
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

    Operands that nest too many calls are named in any case. Long operands that were
    deferred for this line are named all at once, others from the longest on, and only
    if the line fits then. ``name`` is about as long as that of the result.
    """
    if not isinstance(statement, Apply | ModuleCall):
        return expression
    symbols = list(dict.fromkeys(symbols_in(operands(statement))))
    if is_deep(expression.text):
        deep = _nested_operands(writer, symbols)
        expression = _name_operands(writer, statement, deep, indent)
    start = "return " if writer.is_last(statement) else f"{name} = "
    room = WIDTH - 4 * indent - len(start)
    if len(expression.text) <= room:
        return expression
    tried = [symbol for symbol in symbols if symbol in writer.named_in_long_lines]
    if any([_is_shortened(writer, symbol, indent) for symbol in tried]):
        expression = writer.render.statement(statement)
    if tried and len(expression.text) > room:
        expression = _name_operands(writer, statement, tried, indent)
    for alike in _longest(writer, symbols, len(expression.text) - room):
        expression = _name_operands(writer, statement, alike, indent)
        if len(expression.text) <= room:
            break
    return expression


def _name_operands(
    writer: LineWriter,
    statement: Apply | ModuleCall,
    symbols: Sequence[Symbol],
    indent: int,
) -> Expression:
    """Return the expression of ``statement`` after deferred operands got names."""
    for symbol in symbols:
        writer.named_in_long_lines.discard(symbol)
        writer.give_name(*writer.deferred[symbol], indent)
    return writer.render.statement(statement)


def _nested_operands(writer: LineWriter, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Return the deferred operands that have no room for a call around them."""
    pending = writer.render.pending
    deferred = (symbol for symbol in symbols if symbol in pending)
    return [
        symbol
        for symbol in deferred
        if symbol in writer.deferred and is_deep(pending[symbol].text, 1)
    ]


def _is_shortened(writer: LineWriter, symbol: Symbol, indent: int) -> bool:
    """Shorten a deferred operand that has no room in a line of its own either."""
    statement, expression = writer.deferred[symbol]
    name = writer.guessed_name(statement, expression)
    short = in_one_line(writer, statement, expression, indent, name)
    writer.deferred[symbol] = statement, short
    writer.render.pending[symbol] = short
    return short is not expression


def _longest(
    writer: LineWriter, symbols: Sequence[Symbol], excess: int
) -> list[list[Symbol]]:
    """Return the deferred operands to name, the longest first, grouped by operator.

    There are none if names for all of them do not save ``excess`` characters.
    """
    pending = writer.render.pending
    texts = {
        s: pending[s].text for s in symbols if s in pending and s in writer.deferred
    }
    unnamed = {s: text for s, text in texts.items() if not _ELEMENT.fullmatch(text)}
    long = {s: len(text) for s, text in unnamed.items() if len(text) >= SHORTEST}
    if excess <= 0 or sum(long.values()) - NAME * len(long) < excess:
        return []
    groups: dict[Any, list[Symbol]] = {}
    for symbol in sorted(long, key=lambda symbol: -long[symbol]):
        statement = writer.deferred[symbol][0]
        kind = statement.primitive if isinstance(statement, Apply) else symbol
        groups.setdefault(kind, []).append(symbol)
    return [sorted(group, key=symbols.index) for group in groups.values()]


def is_deep(text: str, more: int = 0) -> bool:
    """Return whether ``text`` nests too deeply with that many calls around it."""
    calls, operations = nesting(text)
    return calls + more > MOST_NESTED or operations + more > MOST_OPERATIONS


def nesting(text: str) -> tuple[int, int]:
    """Return how many calls, and operations, are inside of each other at most."""
    calls: list[tuple[bool, bool]] = []
    deepest = operations = 0
    for match in _PARENTHESIS.finditer(_STRING.sub("''", text)):
        if match[0] == ")":
            calls.pop()
            continue
        calls.append((bool(match[1]), match[1].startswith("ops.")))
        deepest = max(deepest, sum(call for call, _ in calls))
        operations = max(operations, sum(own for _, own in calls))
    return deepest, operations
