"""Emission of derivatives that a model computes: a function and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import identifier
from burn_import.tracing.statements import outer_symbols
from burn_import.tracing.trace import Derivation

if TYPE_CHECKING:
    from burn_import.codegen.printing.line_writer import LineWriter


def write_derivation(writer: LineWriter, statement: Derivation, indent: int) -> None:
    """Write the function and the call, through ``writer``."""
    outside = outer_symbols(statement)
    args = [writer.render.data(arg) for arg in statement.args]
    live = dict(writer.live)
    candidate = identifier(statement.name, "function")
    name = writer.free(candidate, statement.targets[0], "function")
    writer.kinds[name] = "function"
    writer.live[name] = None
    parameters = []
    for symbol in statement.state:
        parameter = writer.free(identifier(symbol.name, "x"), symbol)
        writer.claim(symbol, parameter)
        parameters.append(parameter)
    shown = ", ".join(f"{parameter}: Tensor" for parameter in parameters)
    writer.line("", 0)
    writer.line(f"def {name}({shown}) -> Tensor:", indent)
    _body(writer, statement, indent + 1)
    writer.line("", 0)
    for symbol in outside:
        writer.release(symbol)
    writer.live = live
    _call(writer, statement, name, args, indent)


def _body(writer: LineWriter, statement: Derivation, indent: int) -> None:
    for symbol in statement.state:
        writer.read_extents(symbol, indent)
    writer.block(statement.body, indent)
    result = writer.result(statement.body.results[0])
    writer.spend(result)
    writer.line(f"return {result.text}", indent)


def _call(
    writer: LineWriter,
    statement: Derivation,
    name: str,
    args: list[Expression],
    indent: int,
) -> None:
    for arg in args:
        writer.spend(arg)
    texts = [arg.text for arg in args]
    count = len(statement.targets)
    inputs, others = ", ".join(texts[:count]), ", ".join(texts[count:])
    expression = Expression(writer.render.gradient(name, inputs, others))
    targets = [writer.target(t, statement, expression) for t in statement.targets]
    comma = "," if count == 1 else ""
    writer.line(f"{', '.join(targets)}{comma} = {expression.text}", indent)
    for symbol in statement.targets:
        writer.read_extents(symbol, indent)
