"""Construction of a loop from equal steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from burn import Tensor, ops
from burn.dtypes import is_float
from burn.primitive import recording
from burn_import.codegen.containers.containers import Containers
from burn_import.codegen.loops.equal_statements import Shape, rebuilt
from burn_import.codegen.loops.equal_steps import Run, members_of
from burn_import.codegen.loops.round_numbers import RoundNumbers
from burn_import.codegen.naming.function_names import common_noun
from burn_import.tracing.identifiers import plural
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_import.tracing.statements import common_type, reads, symbols_in
from burn_import.tracing.trace import (
    CHANGING,
    Apply,
    Block,
    Members,
    ModuleCall,
    Repetition,
    Statement,
    Symbol,
    Tracer,
)
from burn_ir.containers import sequence_of
from burn_ir.dim import Dim, Poly, symbol

#: Noun of collected values without a name.
UNNAMED = "state"
#: A slot in a step: the statement's index, and the result's.
Place = tuple[int, int]


@dataclass(frozen=True)
class Common:
    """Names of loop variables, from the ``nouns`` of the values in all steps.

    New symbols get a unique name, whose noun is added.
    """

    nouns: dict[str, str]
    _counters: Iterator[int] = field(default_factory=count)

    def dim(self, noun: str) -> Poly:
        """Return a new symbol for an integer of a loop."""
        return symbol(f"?{noun}_of_{next(self._counters)}")

    def noun(self, symbols: Sequence[Symbol]) -> str:
        """Return the noun of all symbols, without numbers; "" if they differ."""
        return common_noun([self.nouns.get(one.name, "") for one in symbols])

    def name(self, symbols: Sequence[Symbol]) -> str:
        """Return the name of the loop variable for ``symbols``."""
        noun = self.noun(symbols)
        return self.key(noun) if noun else ""

    def key(self, noun: str) -> str:
        """Return the name of a new value with this noun, and record it."""
        self.nouns[f"each {noun}"] = noun
        return f"each {noun}"


@dataclass(frozen=True)
class LoopRewrite:
    """Statements with a loop, and the estimated reduction in source."""

    statements: list[Statement]
    saving: int


def rerolled_forms(
    statements: Sequence[Statement],
    results: Sequence[Any],
    run: Run,
    shapes: Sequence[Shape | None],
    containers: Containers,
    common: Common,
) -> Iterator[LoopRewrite]:
    """Yield ``statements`` with a loop for ``run``, or for parts of it."""
    waiting = [run]
    while waiting:
        run = waiting.pop()
        rolling = _Rolling(statements, results, run, shapes, containers, common)
        parts = rolling.parts()
        if parts == [run]:
            loop = rolling.as_loop()
            if loop is not None:
                yield loop
        else:
            waiting += [part for part in parts if part.count > 1]


class _Rolling:
    def __init__(
        self,
        statements: Sequence[Statement],
        results: Sequence[Any],
        run: Run,
        shapes: Sequence[Shape | None],
        containers: Containers,
        common: Common,
    ) -> None:
        self.statements = statements
        self.results = results
        self.common = common
        self.run = run
        #: The number of the round, from 0 on.
        self.counter = common.dim("round") if not run.path else CHANGING
        #: The integers that differ from round to round.
        self.rows = RoundNumbers(self.counter, common.dim)
        self.shapes = shapes
        self.containers = containers
        self.tracer = Tracer()
        self.end = run.start + run.period * run.count
        self.maker = {
            target: (position - run.start, index)
            for position in range(run.start, self.end)
            for index, target in enumerate(statements[position].targets)
        }
        #: The slots that the next step reads.
        self.carried = set(self.sources())
        #: The steps whose result is read after the loop, by slot.
        self.read = self.read_outside()
        #: The body's symbol for each slot.
        self.inside: dict[Place, Symbol] = {}
        #: Carried values and their initial values, by slot and initial symbol.
        self.state: dict[tuple[Place, Symbol], tuple[Symbol, Tensor]] = {}
        self.items: dict[tuple[Symbol, ...], tuple[Symbol, tuple[Tensor, ...]]] = {}

    def leaves(self, offset: int) -> list[tuple[Tensor, ...]]:
        """Return the operands of a statement in every step, one tuple per operand."""
        per_step = []
        for at in range(self.run.start + offset, self.end, self.run.period):
            shape = self.shapes[at]
            assert shape is not None
            per_step.append(shape.leaves)
        return list(zip(*per_step, strict=True))

    def sources(self) -> list[Place]:
        """Return the slots whose values the next step reads."""
        carried = []
        for offset in range(self.run.period):
            for _, new, *_ in self.leaves(offset):
                at, index = self.maker.get(new.data, (self.run.period, 0))
                if at < self.run.period:
                    carried.append((at, index))
        return carried

    def read_outside(self) -> dict[Place, list[int]]:
        """Return the steps whose result is read after the loop, by slot."""
        after = {s for one in self.statements[self.end :] for s in reads(one)}
        after.update(symbols_in(list(self.results)))
        steps_read: dict[Place, list[int]] = {}
        for target, (at, index) in self.maker.items():
            if target in after:
                step, offset = divmod(at, self.run.period)
                steps_read.setdefault((offset, index), []).append(step)
        return steps_read

    def parts(self) -> list[Run]:
        """Return the run, or the parts to split it into.

        A carried value that is read after one step splits the run after that
        step; a result that is only read of the last step leaves that step out
        of the loop.
        """
        run, last = self.run, self.run.count - 1
        for slot, steps in self.read.items():
            if slot not in self.carried:
                if steps == [last]:
                    return [replace(run, count=last)]
                continue
            taps = [step for step in steps if step != last]
            if len(taps) == 1 and last > 1:
                done = taps[0] + 1
                start = run.start + run.period * done
                rest = replace(run, start=start, count=run.count - done)
                return [replace(run, count=done), rest]
        return [run]

    def as_loop(self) -> LoopRewrite | None:
        """Return the statements with the loop, or None if it is impossible."""
        if self.calls_fixed_member():
            return None
        body = Block()
        for offset in range(self.run.period):
            statement = self.statement(offset)
            if statement is None:
                return None
            body.statements.append(statement)
        lists = self.lists()
        rest = [self.read_collected(s, lists) for s in self.statements[self.end :]]
        if not self.run.path and self.items and not self.maps_items():
            return None
        loop = self.loop(body, lists)
        later = {symbol for one in rest for symbol in reads(one)}
        later.update(symbols_in(list(self.results)))
        items = [one for slot in lists for one in self.item_reads(slot, lists[slot])]
        items = [one for one in items if later.intersection(one.targets)]
        statements = [*self.statements[: self.run.start], loop, *items, *rest]
        return LoopRewrite(statements, self.saving(loop, len(items)))

    def maps_items(self) -> bool:
        """Return whether each round only applies modules to one item of its own."""
        is_map = len(self.items) == 1 and not self.state
        first = self.statements[self.run.start]
        return is_map and isinstance(first, ModuleCall)

    def saving(self, loop: Repetition, reads: int) -> int:
        """Estimate how many words of source the loop saves."""
        words = 0
        for at in range(self.run.start, self.run.start + self.run.period):
            shape, targets = self.shapes[at], self.statements[at].targets
            words += len(targets) + len(shape.leaves if shape else ())
        head = 1 + len(loop.members) + sum(not one.whole for one in loop.members)
        state = len(loop.state) - 1
        lists = loop.targets[len(loop.state) :]
        named = all(one.name != self.common.key(plural(UNNAMED)) for one in lists)
        items = sum(1 if one.name else 1 + self.run.count for one, _ in loop.items)
        items += sum(1 + len(row.values) for row in loop.numbers)
        collected = len(lists) + (0 if named else reads // 2)
        return words * (self.run.count - 1) - head - state - items - collected

    def calls_fixed_member(self) -> bool:
        """Return whether a step also calls one fixed member of a stepped list."""
        stepping = {
            (*path, str(first)) for path, first in members_of(self.run, self.shapes)
        }
        for at in range(self.run.start, self.run.start + self.run.period):
            one, other = self.shapes[at], self.shapes[at + self.run.period]
            assert one is not None and other is not None
            fixed = one.path if one.path == other.path else ()
            if any(fixed[: len(path)] == path for path in stepping):
                return True
        return False

    def statement(self, offset: int) -> Statement | None:
        """Return a statement of the body; None if it reads values from elsewhere."""
        leaves = []
        for values in self.leaves(offset):
            leaf = self.leaf(values)
            if leaf is None:
                return None
            leaves.append(leaf)
        first = self.statements[self.run.start + offset]
        assert isinstance(first, Apply | ModuleCall)
        targets = [Symbol() for _ in first.targets]
        for index, target in enumerate(targets):
            results = self.symbols_at((offset, index))
            target.type = common_type(results)
            target.name = self.common.name(results)
            self.inside[offset, index] = target
        return rebuilt(first, leaves, targets, self.numbers(offset))

    def numbers(self, offset: int) -> list[Dim]:
        """Return the integers of a statement in terms of those of the loop."""
        positions = range(self.run.start + offset, self.end, self.run.period)
        shapes = [shape for at in positions if (shape := self.shapes[at]) is not None]
        return self.rows.dims(shapes)

    def symbols_at(self, slot: Place) -> list[Symbol]:
        """Return the symbols at one slot in all steps."""
        positions = range(self.run.start + slot[0], self.end, self.run.period)
        return [self.statements[at].targets[slot[1]] for at in positions]

    def leaf(self, values: tuple[Tensor, ...]) -> Tensor | None:
        """Return the value that the loop body reads for ``values``, one per step."""
        symbols = tuple(value.data for value in values)
        at, index = self.maker.get(symbols[1], (-1, 0))
        if at >= self.run.period:
            inner = self.inside[at - self.run.period, index]
            return Tensor(inner, self.tracer)
        if at >= 0:
            key = ((at, index), symbols[0])
            if key not in self.state:
                results = [symbols[0], *self.symbols_at((at, index))]
                # The first one is the main data flow through the modules.
                name = self.common.name(results[1:]) if self.state else ""
                self.state[key] = (Symbol(common_type(results), name), values[0])
            return Tensor(self.state[key][0], self.tracer)
        if any(one in self.maker for one in symbols):
            return None
        if all(one is symbols[0] for one in symbols):
            return values[0]
        if any(one.constant and not _is_weight(one) for one in symbols):
            return None
        if symbols not in self.items:
            item = Symbol(common_type(symbols), self.common.name(symbols))
            self.items[symbols] = (item, values)
        return Tensor(self.items[symbols][0], self.tracer)

    def lists(self) -> dict[Place, Symbol]:
        """Return the collected lists of results read after the loop, by slot."""
        symbols: dict[Place, Symbol] = {}
        last = self.run.count - 1
        for slot, steps in self.read.items():
            if slot in self.carried and steps == [last]:
                continue
            results = self.symbols_at(slot)
            value_type = common_type(results)
            word = self.common.noun(results)
            if not word and slot not in self.carried:
                word = UNNAMED
                self.inside[slot].name = self.common.key(word)
            name = self.common.key(plural(word) if word else "hidden_states")
            symbols[slot] = Symbol(
                sequence_of(value_type) if value_type else None, name
            )
        return symbols

    def loop(self, body: Block, lists: Mapping[Place, Symbol]) -> Repetition:
        """Return the loop with its initial and final values."""
        targets: list[Symbol] = []
        for slot, _ in self.state:
            last = self.symbols_at(slot)[-1]
            targets.append(Symbol(last.type) if last in targets else last)
        following = [*(slot for slot, _ in self.state), *lists]
        body.results = [Tensor(self.inside[p], self.tracer) for p in following]
        members = []
        for path, first in members_of(self.run, self.shapes):
            length = self.containers.length(path)
            members.append(Members(path, first, first + self.run.count, length))
        return Repetition(
            None if members else self.run.count,
            self.counter,
            [start for _, start in self.state.values()],
            [state for state, _ in self.state.values()],
            body,
            "",
            [*targets, *lists.values()],
            list(self.items.values()),
            members,
            self.rows.rows,
        )

    def item_reads(self, slot: Place, collected: Symbol) -> list[Statement]:
        """Return statements that read single items of a collected list."""
        block = Block()
        self.tracer.blocks.append(block)
        results = self.symbols_at(slot)
        for step in self.read[slot]:
            if slot in self.carried and step == self.run.count - 1:
                continue
            with recording(self.tracer):
                ops.sequence_at(Tensor(collected, self.tracer), step)
            block.statements[-1].targets[:] = [results[step]]
        self.tracer.blocks.pop()
        return block.statements

    def read_collected(self, of: Statement, lists: Mapping[Place, Symbol]) -> Statement:
        """Return a statement that reads collected lists for equal list operands."""
        if not isinstance(of, Apply) or not lists:
            return of
        args = []
        for arg in of.args:
            is_plain = isinstance(arg, list) and all(
                isinstance(one, Tensor) for one in arg
            )
            args.append(self.read_collected_list(arg, lists) if is_plain else arg)
        return Apply(of.primitive, tuple(args), of.static, of.targets, of.origin)

    def read_collected_list(
        self, values: list[Tensor], lists: Mapping[Place, Symbol]
    ) -> Any:
        """Return a list operand that is, or contains, a collected list.

        Rounds alone become part of a longer list: ``[first, *rounds]``.
        """
        symbols = [value.data for value in values]
        for slot, collected in lists.items():
            steps = self.symbols_at(slot)
            if symbols == steps:
                return Tensor(collected, self.tracer)
            if steps[0] not in symbols:
                continue
            first = symbols.index(steps[0])
            end = first + len(steps)
            if symbols[first:end] == steps:
                rounds = Tensor(collected, self.tracer)
                return [*values[:first], rounds, *values[end:]]
        return values


def _is_weight(value: Symbol) -> bool:
    """Return whether a stored array is read from the record wherever it is used."""
    contents = value.known
    return (
        contents is not None
        and is_float(contents.dtype)
        and contents.size > INLINE_LIMIT
    )
