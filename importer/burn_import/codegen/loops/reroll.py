"""Loop rerolling: equal steps over the members of a list, or rounds, become a loop.

A step reaches from the call of one member to the call of the next. Values from the
previous step are carried; values from before the loop are invariant or one per step.
Values that are read after the loop are carried values, or are collected in a list.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from burn_import.codegen.containers.containers import Containers
from burn_import.codegen.loops.demand_order import order_by_demand
from burn_import.codegen.loops.equal_steps import Steps
from burn_import.codegen.loops.listed_parts import is_read_of_list, list_parts
from burn_import.codegen.loops.new_axes import join_new_axes
from burn_import.codegen.loops.periods import find_rounds, first_round, schedules
from burn_import.codegen.loops.rerolled_loop import Common, LoopRewrite, rerolled_forms
from burn_import.codegen.loops.sequential_calls import chain_calls, find_chain
from burn_import.codegen.trace.function import FunctionTrace, drop_unread
from burn_import.provenance.path_segments import Path
from burn_import.tracing.extents import Extents, MissingExtent
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import mentions
from burn_import.tracing.trace import Block, Members, ModuleCall, Repetition, Statement

#: Minimum statements of a block, and words that a loop saves, for rounds.
LEAST_STATEMENTS, LEAST_SAVING = 6, 12
#: The same where a round calls a module: the author called it in a loop.
LEAST_CALLS, LEAST_SAVING_OF_CALLS = 3, 3


def reroll_loops(
    trace: FunctionTrace, containers: Containers, nouns: dict[str, str]
) -> None:
    """Replace equal steps over lists of modules by loops, also inside loops.

    ``nouns`` are names of values; those of the loop bodies are added.
    """
    drop_unread(trace)
    rolls = _Rolls(trace, containers, Common(nouns))
    rolls.roll(trace.body)
    rolls.roll_rounds(trace.body)


class _Rolls:
    def __init__(
        self, trace: FunctionTrace, containers: Containers, common: Common
    ) -> None:
        self.trace = trace
        self.common = common
        self.containers = containers

    def roll(self, block: Block) -> None:
        """Reroll ``block`` and the bodies of the new loops."""
        join_new_axes(block)
        lists = [
            path
            for path in _lists(block)
            if path not in self.containers.growing and self.containers.is_list(path)
        ]
        if block is self.trace.body:
            for path in lists:
                self.chain(block, path)
        for path in lists:
            if path not in self.containers.chains:
                while self.rolls(block, path):
                    pass
        for statement in block.statements:
            if isinstance(statement, Repetition) and statement.members:
                self.roll(statement.body)
                for members in statement.members:
                    self.clear_inner_counts(statement.body, members)

    def chain(self, block: Block, path: Path) -> None:
        """Call a list as a whole if its members are a chain.

        Equal members are called in a loop. Lists in a list are chains together, so
        that a loop over the outer list has equal steps.
        """
        containers, parent = self.containers, path[:-1]
        if any(path[:length] in containers.chains for length in range(len(path) + 1)):
            return
        paths = [path]
        if parent in containers.children and containers.is_list(parent):
            members = [(*parent, name) for name in containers.children[parent]]
            paths = [one for one in members if len(containers.names(one)) > 1]
        if any(map(containers.is_uniform, paths)):
            return
        if all(find_chain(block, one, containers) for one in paths):
            for one in paths:
                chain = find_chain(block, one, containers)  # at its new position
                assert chain is not None
                chain_calls(block, chain, containers)

    def roll_rounds(self, block: Block) -> None:
        """Reroll the rounds of ``block`` and of the bodies of its loops over lists."""
        join_new_axes(block)
        while self.replace_best(block, self.rounds(block)):
            pass
        for statement in block.statements:
            if isinstance(statement, Repetition) and statement.members:
                self.roll_rounds(statement.body)

    def rounds(self, block: Block) -> list[LoopRewrite]:
        """Return loops over the rounds in ``block`` that are worth their lines."""
        statements = block.statements
        calls = sum(isinstance(one, ModuleCall) for one in statements)
        if len(statements) < LEAST_STATEMENTS and calls < LEAST_CALLS:
            return []
        loops = list(self.loops_over_rounds(statements, block.results))
        listed = list_parts(statements, block.results, self.common)
        if len(listed) > len(statements):
            loops += self.loops_over_rounds(listed, block.results)
        return [loop for loop in loops if loop.saving >= _least_saving(loop)]

    def loops_over_rounds(
        self, statements: Sequence[Statement], results: list[Any]
    ) -> Iterator[LoopRewrite]:
        """Yield loops over rounds of statements in their order, or that of demand."""
        steps = Steps(statements, self.containers)
        yield from self.round_loops(steps, results)
        first = first_round(steps.shapes)
        if first is not None:
            for ordered in order_by_demand(statements, results, steps.shapes, first):
                yield from self.round_loops(Steps(ordered, self.containers), results)

    def round_loops(self, steps: Steps, results: list[Any]) -> Iterator[LoopRewrite]:
        """Yield loops over rounds of statements in their order."""
        for run in find_rounds(steps):
            body = steps.statements[run.start : run.start + run.period]
            if all(map(is_read_of_list, body)):  # which the loop would list again
                continue
            context = (steps.shapes, self.containers, self.common)
            yield from rerolled_forms(steps.statements, results, run, *context)

    def clear_inner_counts(self, block: Block, outer: Members) -> None:
        """Clear the counts of inner lists that vary between members of ``outer``."""
        depth = len(outer.path) + 1
        for statement in block.statements:
            if not isinstance(statement, Repetition):
                continue
            self.clear_inner_counts(statement.body, outer)
            for at, inner in enumerate(statement.members):
                if inner.path[:depth] != (*outer.path, str(outer.start)):
                    continue
                lengths = {
                    self.containers.length(
                        (*outer.path, str(number), *inner.path[depth:])
                    )
                    for number in range(outer.start, outer.stop)
                }
                if len(lengths) > 1:
                    statement.members[at] = replace(inner, count=0)

    def rolls(self, block: Block, path: Path) -> bool:
        """Replace steps through the list by the best loop; return if any was."""
        return self.replace_best(block, list(self.candidates(block, path)))

    def replace_best(self, block: Block, loops: list[LoopRewrite]) -> bool:
        """Replace the statements by the first of the best loops that can be written."""
        before = block.statements
        for loop in sorted(loops, key=lambda loop: -loop.saving):
            block.statements = loop.statements
            if self.are_dimensions_readable():
                return True
            block.statements = before
        return False

    def candidates(self, block: Block, path: Path) -> Iterator[LoopRewrite]:
        """Yield loops over the list at ``path`` that are no longer than the steps."""
        for statements in schedules(block.statements, path):
            steps = Steps(statements, self.containers)
            for run in steps.runs(path):
                context = (steps.shapes, self.containers, self.common)
                loops = rerolled_forms(statements, block.results, run, *context)
                worth = (one for one in loops if one.saving >= 0)
                yield from filter(self.has_known_classes, worth)

    def has_known_classes(self, rolled: LoopRewrite) -> bool:
        """Return whether type checkers know the classes that the loops call.

        They are known of members of several classes, but not of ``zip`` with these.
        """
        for loop in (s for s in rolled.statements if isinstance(s, Repetition)):
            sources = len(loop.members) + len(loop.items) + len(loop.numbers)
            if sources + mentions(loop.body, loop.counter) < 2:
                continue
            if not all(
                self.containers.is_alike(one.path, one.start, one.stop)
                for one in loop.members
                if one.count
            ):
                return False
        return True

    def are_dimensions_readable(self) -> bool:
        """Return whether all dimensions can still be read from a value."""
        try:
            Extents(Namespace()).plan(self.trace.parameters, self.trace.body)
        except MissingExtent:
            return False
        return True


def _least_saving(loop: LoopRewrite) -> int:
    """Return the words that a loop over rounds has to save."""
    bodies = (
        one.body.statements
        for one in loop.statements
        if isinstance(one, Repetition) and not one.members
    )
    calls = any(isinstance(one, ModuleCall) for body in bodies for one in body)
    return LEAST_SAVING_OF_CALLS if calls else LEAST_SAVING


def _lists(block: Block) -> list[Path]:
    """Return the lists with several called members, outer lists first."""
    names_by_list: dict[Path, set[str]] = {}
    for statement in block.statements:
        if isinstance(statement, ModuleCall) and not statement.visit:
            for depth, name in enumerate(statement.path):
                if depth and name.isdigit():
                    names_by_list.setdefault(statement.path[:depth], set()).add(name)
    repeated = [path for path, names in names_by_list.items() if len(names) > 1]
    return sorted(repeated, key=len)
