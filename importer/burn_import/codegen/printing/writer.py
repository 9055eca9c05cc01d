"""Emission of a function's lines: inlining, naming and lifetimes of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from burn import Tensor
from burn_import.codegen.printing.consumer_words import uses
from burn_import.codegen.printing.expressions import Renderer
from burn_import.codegen.printing.long_lines import in_one_line, is_deep
from burn_import.codegen.printing.name_candidates import (
    STREAMS,
    name_candidates,
    noun_of,
    tuple_names,
)
from burn_import.codegen.printing.print_derivative import write_derivation
from burn_import.codegen.printing.print_if import WIDTH, is_always_tuple, write_choice
from burn_import.codegen.printing.print_loop import write_loop
from burn_import.codegen.printing.returned_calls import returns_call
from burn_import.codegen.trace.function import FunctionTrace, drop_unread
from burn_import.tracing.expression import Expression
from burn_import.tracing.extents import Extents
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import conditions, count_uses, operands, symbols_in
from burn_import.tracing.trace import (
    CHANGING,
    FIRST,
    Apply,
    Block,
    Choice,
    Derivation,
    ModuleCall,
    Repetition,
    Statement,
    Symbol,
)
from burn_ir.containers import python_type

#: Maximum width of an expression that is always inlined.
INLINE_WIDTH = 40
#: Maximum width of an expression that is inlined if its reader's line has room.
TRIAL_WIDTH = 72
#: Maximum width of a dimension in shape comments.
LONG_EXTENT = 24
#: Number of equal names after which free numbers are not searched one by one.
CROWD = 64


class FunctionWriter:
    """A writer of the body of one function, line by line."""

    def __init__(
        self,
        trace: FunctionTrace,
        parameters: Sequence[str],
        attribute: Callable[[str], str],
        access: Callable[[tuple[str, ...]], str],
        nouns: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        wrap: str = "",
        renderer: type[Renderer] = Renderer,
        submodules: Collection[tuple[str, ...]] | None = None,
    ) -> None:
        """``nouns`` are names of model values, ``outputs`` those of the results.

        ``wrap`` is the class that several results are returned as, ``renderer``
        writes the expressions. Long tuples of results that are returned as they are
        come from ``submodules``, which have a class for them; None if it has no class.
        """
        self.submodules = submodules
        self.nouns = nouns or {}
        self.outputs = _named_results(trace, outputs, bool(wrap))
        self.trace = trace
        self.wrap = wrap
        drop_unread(trace)
        self.remaining = count_uses(trace.body)
        self.uses = uses(trace.body)
        self.locals = Namespace([*parameters, wrap])
        self.extents = Extents(self.locals)
        self.render = renderer(self.extents, attribute, access)
        self.render.conditions = conditions(trace.body, self.remaining)
        #: Arguments of layers in other modules, whose access paths are long.
        self.far_arguments = set(
            symbols_in(list(map(_far_args, trace.body.statements)))
        )
        #: Deferred values that get a name if the line of their reader is too long.
        self.named_in_long_lines: set[Symbol] = set()
        self.deferred: dict[Symbol, tuple[Statement, Expression]] = {}
        self.begin()
        for symbol, name in zip(trace.parameters, parameters, strict=True):
            self.claim(symbol, name)

    def begin(self) -> None:
        """Reset all written lines and names."""
        self.lines: list[str] = []
        self.live: dict[str, Symbol | None] = {}
        self.numbers: dict[str, int] = {}  # the highest number used for a name
        #: The type that each name has in the whole function.
        self.kinds: dict[str, str] = {}
        #: The lengths of the lists that loops over modules collect, by name.
        self.lengths: dict[str, int] = {}
        self.tail: Expression | None = None
        #: The last call, if the body returns exactly its results.
        self.returned_call: Apply | ModuleCall | None = None
        self.early = {value.data for value in self.results_first()}
        self.forced: dict[Symbol, str] = {}  # required names of branch results
        #: Preferred names of values, if they are free.
        self.preferred: dict[Symbol, str] = {}
        #: Names derived only from a primitive or layer.
        self.plain: set[str] = set()

    def write(self) -> list[str]:
        """Return the lines of the body, indented by two levels."""
        self.extents.plan(self.trace.parameters, self.trace.body)
        self.live.update(dict.fromkeys(self.extents.locals.values()))
        for symbol in self.trace.parameters:
            self.read_extents(symbol, 2)
        self.lines += (f"{'    ' * 2}{line}" for line in self.extents.formulas)
        self.block(self.trace.body, 2)
        if self.trace.states:
            self.replace_states(2)
        self.finish(2)
        return self.lines

    def replace_states(self, indent: int) -> None:
        """Write the lines that set the states, after the last read of the old ones."""
        read = [value for value in self.results_first() if value.data.constant]
        for value in read:
            if value.data in self.trace.states and value.data not in self.render.names:
                text = self.result(value).text
                leaf = text.removesuffix(".value").rpartition(".")[2]
                name = self.free(leaf, value.data)
                self.claim(value.data, name)
                self.line(f"{name} = {text}", indent)
        for state, value in zip(
            self.trace.states, self.trace.replacements, strict=True
        ):
            attribute = self.render.attribute(state.constant)
            new = self.result(value).text
            self.line(self.render.replacement(f"self.{attribute}", new), indent)

    def results_first(self) -> list[Tensor]:
        """Return the results to evaluate before the first state is replaced."""
        are_states_dependent = len(self.trace.states) > 1
        later = self.trace.replacements if are_states_dependent else []
        return [*self.trace.returned, *later] if self.trace.states else []

    def passes_on(self, statement: Apply | ModuleCall) -> bool:
        """Return whether the results of ``statement`` are exactly those returned."""
        once = all(self.remaining.get(target) == 1 for target in statement.targets)
        is_free = once and not self.wrap
        return is_free and returns_call(self.trace, statement, self.submodules)

    def finish(self, indent: int) -> None:
        if self.tail is not None:
            self.line(f"return {self.tail.text}", indent)
            return
        results = [self.result(value) for value in self.trace.returned]
        text = ", ".join(result.text for result in results)
        is_long = 4 * indent + len(f"return {text}") > WIDTH
        if len(results) > 1 and is_long and not self.wrap:
            text = self.named_results(indent)
        if self.wrap:
            deep = [value for value in self.trace.returned if self.is_deep(value.data)]
            text = f"{self.wrap}({self.named_results(indent, deep) if deep else text})"
        assignment = f"{'    ' * indent}{text} = "
        if self.lines and text.isidentifier() and self.lines[-1].startswith(assignment):
            text = self.lines.pop().removeprefix(assignment)
        self.line(f"return {text}", indent)

    def is_deep(self, result: Symbol) -> bool:
        """Return whether an expression has no room for a call around it."""
        pending = self.render.pending.get(result)
        return pending is not None and is_deep(pending.text, 1)

    def named_results(self, indent: int, named: Sequence[Tensor] = ()) -> str:
        """Return several results, after those of ``named``, or all, got names."""
        for value in named or self.trace.returned:
            if value.data in self.render.pending and value.data in self.deferred:
                self.give_name(*self.deferred[value.data], indent)
        return ", ".join(self.result(value).text for value in self.trace.returned)

    def result(self, value: Tensor) -> Expression:
        """Return a value that leaves the function or a branch: never a parameter."""
        return self.render.value(value)

    def block(self, block: Block, indent: int) -> None:
        for statement in block.statements:
            if isinstance(statement, Choice):
                write_choice(self, statement, indent)
            elif isinstance(statement, Repetition):
                write_loop(self, statement, indent)
            elif isinstance(statement, Derivation):
                write_derivation(self, statement, indent)
            elif statement is block.statements[-1] and self.passes_on(statement):
                self.tail = self.render.statement(statement)
                self.returned_call = statement
            else:
                self.assign(statement, self.render.statement(statement), indent)

    def assign(self, statement: Statement, expression: Expression, indent: int) -> None:
        """Defer the expression for inlining in its reader, or assign it to a name."""
        expression = in_one_line(self, statement, expression, indent)
        if self.defer(statement, expression):
            return
        guess = self.guessed_name(statement, expression)
        short = in_one_line(self, statement, expression, indent, guess)
        if short is expression or not self.defer(statement, short):
            self.give_name(statement, short, indent)

    def defer(self, statement: Statement, expression: Expression) -> bool:
        """Keep an expression for its reader, and return whether it is inlined there."""
        if len(statement.targets) > 1 or is_always_tuple(statement):
            return False
        (target,) = statement.targets
        if self.inlines(target, expression):
            self.render.pending[target] = expression
            self.deferred[target] = statement, expression
        return target in self.render.pending

    def give_name(
        self, statement: Statement, expression: Expression, indent: int
    ) -> None:
        """Assign the results of a statement to names."""
        guess = self.guessed_name(statement, expression)
        expression = in_one_line(self, statement, expression, indent, guess)
        for target in statement.targets:
            self.render.pending.pop(target, None)
        self.spend(expression)
        names = [self.target(t, statement, expression) for t in statement.targets]
        comma = "," if len(names) == 1 and is_always_tuple(statement) else ""
        is_first = isinstance(statement, ModuleCall) and statement.is_first_result
        value = expression.text.removesuffix(FIRST if is_first else "")
        text = f"{', '.join(tuple_names(names, statement))}{comma} = {value}"
        read = [s for s in statement.targets if s in self.render.names]
        self.line(text, indent, self.comment(read or statement.targets, expression))
        for target in statement.targets:
            self.read_extents(target, indent)

    def inlines(self, target: Symbol, expression: Expression) -> bool:
        once = self.remaining.get(target, 0) == 1
        if target in self.early:
            return False
        if once and self.ends_with(target):
            return target not in self.extents.reads
        if expression.text == "[]":
            return True
        length = len(expression.text)
        whole = expression.precedence > 1 and target not in self.far_arguments
        fits = once and whole and target not in self.extents.reads
        if fits and INLINE_WIDTH < length <= TRIAL_WIDTH:
            self.named_in_long_lines.add(target)
        return fits and length <= TRIAL_WIDTH

    def ends_with(self, target: Symbol) -> bool:
        """Return whether the last statement computes ``target``, the only result."""
        body = self.trace.body
        only = len(body.results) == 1 and body.results[0].data is target
        return only and body.statements[-1].targets == [target]

    def spend(self, expression: Expression) -> None:
        """Count one more read of the names in ``expression``; free unused ones."""
        for symbol in expression.symbols:
            self.remaining[symbol] -= 1
            name = self.render.names[symbol]
            if self.remaining[symbol] == 0 and self.live.get(name) is symbol:
                del self.live[name]

    def target(
        self, symbol: Symbol, statement: Statement, expression: Expression
    ) -> str:
        """Return the name of a result: ``_`` if it is not read."""
        if not self.remaining.get(symbol) and symbol not in self.extents.reads:
            return "_"
        name = self.forced.get(symbol)
        if name is None:
            name = self.preferred.get(symbol)
        if name is None or (name in self.live and symbol not in self.forced):
            name = self.chosen(
                name_candidates(self, symbol, statement, expression), symbol
            )
            if not noun_of(self, symbol, statement):
                self.plain.add(name)
        self.claim(symbol, name)
        return name

    def is_last(self, statement: Statement) -> bool:
        return statement is self.trace.body.statements[-1]

    def guessed_name(self, statement: Statement, expression: Expression) -> str:
        """Return a name of about the length that the first result gets."""
        symbol = statement.targets[0]
        preferred = self.forced.get(symbol) or self.preferred.get(symbol)
        freed = [s for s in expression.symbols if self.remaining[s] == 1]
        live = self.live.keys() - {self.render.names[s] for s in freed}
        names = list(name_candidates(self, symbol, statement, expression))
        free = (name for name in names if name not in live)
        return preferred or next(free, f"{names[0]}2")

    def declared(self, name: str, symbol: Symbol, start: Expression) -> str:
        """Return ``name`` for an assignment, annotated where type checkers need it."""
        fresh = start.text in ("[]", "None") and name not in self.kinds
        return f"{name}: {python_type(symbol.type)}" if fresh else name

    def claim(self, symbol: Symbol, name: str) -> None:
        self.kinds.setdefault(name, python_type(symbol.type))
        self.live[name] = symbol
        self.render.names[symbol] = name

    def chosen(self, candidates: Iterator[str], symbol: Symbol) -> str:
        """Return the first free one of ``candidates``, else the first with a number."""
        kind, first = python_type(symbol.type), ""
        for name in candidates:
            if name not in self.live and self.kinds.get(name, kind) == kind:
                return name
            first = first or name
        return self.free(STREAMS[1] if first in STREAMS else first, symbol)

    def stream(self) -> str:
        """Return a generic name for a value without a noun."""
        return next((s for s in STREAMS if s not in self.live), STREAMS[1])

    def free(self, name: str, symbol: Symbol, kind: str = "") -> str:
        """Return ``name``, numbered if it is live or was used for another type."""
        base, number = name, 1
        kind = kind or python_type(symbol.type)
        while name in self.live or self.kinds.get(name, kind) != kind:
            number += 1
            if number == CROWD:  # many are live: continue after the highest number
                number = max(number, self.numbers.get(base, 0) + 1)
            name = f"{base}{'_' if base[-1].isdigit() else ''}{number}"
        self.numbers[base] = max(number, self.numbers.get(base, 0))
        return name

    def release(self, symbol: Symbol) -> None:
        """Count a loop as finished with a value; free the name if it has no readers."""
        self.remaining[symbol] -= 1
        name = self.render.names.get(symbol)
        if not self.remaining[symbol] and name and self.live.get(name) is symbol:
            del self.live[name]

    def read_extents(self, symbol: Symbol, indent: int) -> None:
        """Assign the dimensions that are read from ``symbol``."""
        reads = sorted(self.extents.reads.get(symbol, ()))
        if not reads:
            return
        source = self.render.names[symbol]
        axes = [axis for axis, _ in reads]
        names = ", ".join(name for _, name in reads)
        if len(axes) > 1 and axes == list(range(len(axes))):
            whole = symbol.type is not None and len(symbol.shape) == len(axes)
            piece = "" if whole else f"[:{len(axes)}]"
            self.line(f"{names} = {source}.shape{piece}", indent)
            return
        for axis, name in reads:
            self.line(f"{name} = {source}.shape[{axis}]", indent)

    def comment(self, targets: list[Symbol], expression: Expression) -> str:
        """Return the shape of the first result if it differs from the operand's."""
        shown = targets[0].type
        if shown is None or not shown.shape or CHANGING in shown.shape:
            return ""
        for symbol in expression.symbols:
            if symbol.type is not None and symbol.type.shape == shown.shape:
                return ""
            break
        dims = [str(dim) for dim in shown.shape]
        if any(len(dim) > LONG_EXTENT or "?" in dim for dim in dims):
            return ""
        return shown.name.partition("[")[2].join(("[", ""))

    def line(self, text: str, indent: int, comment: str = "") -> None:
        space = "    " * indent
        whole = f"{space}{text}  # {comment}"
        fits = comment and len(whole) <= WIDTH
        self.lines.append(whole if fits else space + text)


def _named_results(
    trace: FunctionTrace, outputs: Sequence[str], wrapped: bool
) -> dict[Symbol, str]:
    """Return the descriptive names of results."""
    return {
        value.data: name
        for value, name in zip(trace.returned, outputs, strict=False)
        if not re.search(r"_\d+$|^\d|output", name) or wrapped
    }


def _far_args(statement: Statement) -> tuple[Any, ...]:
    visit = isinstance(statement, ModuleCall) and statement.visit
    return operands(statement) if visit else ()
