"""Loops that end when the model runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from burn.dtypes import DType
from burn_import.frontends.torch_export.builder import BOOL, INT64, Value
from burn_import.frontends.torch_export.complex_as_real import stored_type
from burn_import.frontends.torchscript.control import (
    Container,
    are_numbers,
    as_thing,
    given,
    is_plain,
    refuse,
    side_of,
)
from burn_import.frontends.torchscript.expressions import Expressions, Frame
from burn_import.frontends.torchscript.node_writer import Writer
from burn_import.frontends.torchscript.scopes import left_by, local_names
from burn_import.frontends.torchscript.values import (
    Held,
    Module,
    Rows,
    Thing,
    rebuilt,
)
from burn_ir import UnsupportedModel
from burn_ir.containers import widen
from burn_ir.types import Type


def repeated(
    machine: Expressions,
    node: ast.For | ast.While,
    frame: Frame,
    count: Value | int | None,
) -> None:
    """Write a loop of ``count`` rounds, or as long as the condition holds."""
    _Loop(machine, node, frame, count).write()


def plain_parts(thing: Thing) -> list[Thing] | None:
    """The tensors and numbers in lists and tuples; None if there is something else."""
    if is_plain(thing):
        return [thing]
    if not isinstance(thing, list | tuple):
        return None
    parts = [plain_parts(item) for item in thing]
    return None if None in parts else [x for part in parts for x in part or ()]


def same_form(a: Thing, b: Thing) -> bool:
    """Return whether lists and tuples are nested in the same way."""
    if not isinstance(a, list | tuple) or not isinstance(b, list | tuple):
        return is_plain(a) and is_plain(b)
    same = type(a) is type(b) and len(a) == len(b)
    return same and all(map(same_form, a, b))


def filled(thing: Thing, parts: Iterator[Thing]) -> Thing:
    """A thing with others in place of its tensors and numbers."""
    if isinstance(thing, list | tuple):
        return rebuilt(thing, (filled(item, parts) for item in thing))
    return next(parts)


def appended(container: Container, after: Container) -> tuple[list[Thing], Thing]:
    """A list, and the one tensor or number that a round has put behind its items.

    Raises:
        UnsupportedModel: the round has done something else with it.
    """
    before = container.copy()
    if not isinstance(container, list) or not isinstance(after, list):
        raise refuse(container)
    if len(after) != len(before) + 1 or after[:-1] != before or not is_plain(after[-1]):
        raise refuse(container)
    return container, after[-1]


def _is_same(a: Thing, b: Thing) -> bool:
    """Whether what is carried by no value is one thing before and after a round."""
    if isinstance(a, Module) and isinstance(b, Module):
        return a.instance is b.instance
    return a is b or (type(a) is type(b) and isinstance(a, str) and a == b)


class _Loop:
    """A loop: what it carries from round to round, and its body."""

    def __init__(
        self,
        machine: Expressions,
        node: ast.For | ast.While,
        frame: Frame,
        count: Value | int | None,
    ) -> None:
        self.machine = machine
        self.node = node
        self.frame = frame
        self.count = count
        self.origin = frame.origin("loop")
        #: Lists that get one more tensor in each round.
        self.grown: list[list[Thing]] = []
        #: What each round gives is of these, after the condition.
        self.dtypes: list[DType] = []
        #: What is called by the number of the round.
        self.target = ""
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self.target = node.target.id
        skipped = {self.target, *local_names(node, frame)}
        stored = (name for name in left_by(node, frame) if name not in skipped)
        names = [name for name in stored if name in frame.names]
        #: What is carried: tensors and numbers, each by the name that it is part of.
        self.parts = {name: plain_parts(frame.names[name]) for name in names}
        self.carried = [name for name in names for _ in self.parts[name] or ()]
        self.rest = [name for name in names if self.parts[name] is None]
        self.numbers = [are_numbers(x, 0) for x in self.flat(frame.names)]

    def write(self) -> None:
        """Write the loop, and give the names what they are after it."""
        writer = self.machine.writer
        first = [
            given(writer, thing, self.origin, inside=False)
            for thing in self.flat(self.frame.names)
        ]
        condition = self.condition(self.frame, writer)
        types = [Type(value.dtype, value.dims) for value in first]
        body, inputs, outputs = self.settled(types)
        begin = len(writer.nodes.nodes)
        builder = writer.builder(self.origin, first or [condition])
        trips = None if self.count is None else builder.ints(self.count)
        if trips is not None:
            trips = builder.op("Reshape", trips, builder.constant([]))
        values = builder.many(
            "Loop",
            len(first) + len(self.grown),
            trips,
            condition,
            *first,
            body=body.body(inputs, outputs),
        )
        writer.finish(begin)
        results = [
            writer.typed(replace(value, dtype=dtype))
            for value, dtype in zip(values, self.dtypes, strict=True)
        ]
        self.fill(self.frame.names, results[: len(first)])
        for items, rows in zip(self.grown, results[len(first) :], strict=True):
            items.append(Rows(Held(rows)))

    def flat(self, names: Mapping[str, Thing]) -> list[Thing]:
        """Return the carried values as one list.

        Raises:
            UnsupportedModel: a list or tuple has other parts than before the loop.
        """
        things: list[Thing] = []
        for name, before in self.parts.items():
            if before is None:
                continue
            parts = plain_parts(names[name])
            if parts is None or not same_form(names[name], self.frame.names[name]):
                raise UnsupportedModel(f"a loop that changes what is in {name!r}")
            things += parts
        return things

    def fill(self, names: dict[str, Thing], values: Iterable[Value]) -> None:
        """Give the names of what is carried these values."""
        things = map(as_thing, values, self.numbers)
        for name, parts in self.parts.items():
            if parts is not None:
                names[name] = filled(self.frame.names[name], things)

    def condition(self, frame: Frame, writer: Writer) -> Value:
        """Return whether there is another round."""
        if isinstance(self.node, ast.For):
            return given(writer, True, self.origin)
        test = self.machine.evaluate(self.node.test, frame)
        if isinstance(test, Held):
            test = self.machine.converted(bool, test, self.origin)
        if not isinstance(test, Value | bool):
            raise UnsupportedModel("a loop whose condition is no bool")
        return given(writer, test, self.origin)

    def settled(self, types: list[Type]) -> tuple[Writer, dict[str, Type], list[str]]:
        """The body, typed so that what flows back fits what flowed in."""
        while True:
            writer, inputs, results = self.round(types)
            wider = [
                widen(type_, Type(value.dtype, value.dims))
                for type_, value in zip(types, results[1:], strict=False)
            ]
            if all(new is old for new, old in zip(wider, types, strict=True)):
                self.dtypes = [value.dtype for value in results[1:]]
                return writer, inputs, [value.name for value in results]
            types = wider

    def round(
        self, types: Sequence[Type]
    ) -> tuple[Writer, dict[str, Type], list[Value]]:
        """One round of the body: its inputs, and what it gives."""
        machine, outer = self.machine, self.machine.writer
        machine.writer = outer.inner()
        try:
            number = machine.writer.input("round", Type(INT64, ()))
            going = machine.writer.input("going", Type(BOOL, ()))
            inputs = {number.name: Type(INT64, ()), going.name: Type(BOOL, ())}
            names = dict(self.frame.names)
            if self.target:
                names[self.target] = as_thing(number, True)
            values = [
                machine.writer.input(name, type_)
                for name, type_ in zip(self.carried, types, strict=True)
            ]
            inputs |= {
                value.name: stored_type(type_.dtype, type_.shape)
                for value, type_ in zip(values, types, strict=True)
            }
            self.fill(names, values)
            frame = Frame(self.frame.function, self.frame.module, names)
            return machine.writer, inputs, self.followed(frame)
        finally:
            machine.writer = outer

    def followed(self, frame: Frame) -> list[Value]:
        """Return the results of an iteration: the condition, then carried values."""
        writer = self.machine.writer
        side = side_of(self.machine, self.node.body, frame, writer)
        if side is None:
            raise UnsupportedModel("a loop that raises an error")
        if side.changed:
            raise UnsupportedModel("a change in place within a loop")
        for name in self.rest:
            if not _is_same(side.names[name], self.frame.names[name]):
                raise UnsupportedModel(f"a loop that changes {name!r}, no tensor")
        grown = [appended(*pair) for pair in side.contents]
        self.grown = [items for items, _ in grown]
        frame.names.update(side.names)
        condition = self.condition(frame, writer)
        flowing = self.flat(side.names) + [item for _, item in grown]
        return [condition, *(given(writer, thing, self.origin) for thing in flowing)]
