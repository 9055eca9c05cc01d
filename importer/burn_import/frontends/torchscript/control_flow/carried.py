"""What a loop carries from round to round: names, changed tensors, items of lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.complex_as_real import viewed_as
from burn_import.frontends.torchscript.control_flow.joining import (
    Container,
    Side,
    are_numbers,
    fill,
    is_plain,
    refuse,
)
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.values import (
    AppendedItems,
    Module,
    PyValue,
    TensorRef,
    rebuilt,
)
from burn_ir import UnsupportedModel


def plain_parts(thing: PyValue) -> list[PyValue] | None:
    """The tensors and numbers in lists and tuples; None if there is something else."""
    if is_plain(thing):
        return [thing]
    if not isinstance(thing, list | tuple):
        return None
    parts = [plain_parts(item) for item in thing]
    return None if None in parts else [x for part in parts for x in part or ()]


def same_form(a: PyValue, b: PyValue) -> bool:
    """Return whether lists and tuples are nested in the same way."""
    if not isinstance(a, list | tuple) or not isinstance(b, list | tuple):
        return is_plain(a) and is_plain(b)
    same = type(a) is type(b) and len(a) == len(b)
    return same and all(map(same_form, a, b))


def filled(thing: PyValue, parts: Iterator[PyValue]) -> PyValue:
    """A thing with others in place of its tensors and numbers."""
    if isinstance(thing, list | tuple):
        return rebuilt(thing, (filled(item, parts) for item in thing))
    return next(parts)


def is_same(a: PyValue, b: PyValue) -> bool:
    """Whether what is carried by no value is one thing before and after a round."""
    if isinstance(a, Module) and isinstance(b, Module):
        return a.instance is b.instance
    return a is b or (type(a) is type(b) and isinstance(a, str) and a == b)


@dataclass(eq=False)
class Cell:
    """Tensors of one value, from before the loop, that its rounds change in place."""

    holders: list[TensorRef]
    first: Value


@dataclass(eq=False)
class Replaced:
    """A list or dict whose items rounds replace, and those before the loop."""

    container: Container
    first: tuple[PyValue, ...]
    entered: tuple[PyValue, ...] = ()

    def put(self, items: Iterable[PyValue]) -> None:
        """Give the list or dict other items, as many as it had."""
        contents = tuple(items)
        container = self.container
        is_dict = isinstance(container, dict)
        new: Any = dict(zip(container, contents, strict=True)) if is_dict else contents
        fill(container, new)


@dataclass(eq=False)
class Growth:
    """A list that gets ``each`` more tensors in each round.

    ``first`` is what is in it before the loop. ``carries_last`` says whether a round
    gets what was appended last.
    """

    items: list[PyValue]
    first: list[PyValue]
    each: int = 1
    carries_last: bool = False
    marker: AppendedItems | None = None
    holds_numbers: bool = False


class Carried:
    """What flows into a round, and out of it into the next one.

    Rounds may show that something else flows as well: ``learn`` says so, and the round
    has to be followed again.
    """

    def __init__(self, before: Mapping[str, PyValue], names: Sequence[str]) -> None:
        self.before = before
        #: Names that rounds set, with their tensors and numbers, None for other things.
        self.parts = {name: plain_parts(before[name]) for name in names}
        #: Names of one tensor or list in all rounds, which change in place.
        self.constant: list[str] = []
        self.cells: list[Cell] = []
        self.replaced: list[Replaced] = []
        self.growths: list[Growth] = []
        #: Tensors that cannot be read any more after a round.
        self.stale: set[TensorRef] = set()
        self.entered: dict[str, PyValue] = {}

    def expect_growth(self, names: Iterable[str]) -> None:
        """Assume that rounds append to the lists of these names."""
        for name in names:
            items = self.before.get(name)
            if isinstance(items, list) and self.parts.get(name) is None:
                self._grow(items, 1)

    def _grow(self, items: list[PyValue], each: int) -> None:
        if all(growth.items is not items for growth in self.growths):
            carries_last = bool(items) and is_plain(items[-1])
            self.growths.append(Growth(items, items.copy(), each, carries_last))

    def first(self) -> list[PyValue]:
        """What flows into the first round."""
        things = self.named(self.before)
        things += [cell.holders[0] for cell in self.cells]
        for item in self.replaced:
            things += plain_parts(item.first) or ()
        return things + [x.first[-1] for x in self.growths if x.carries_last]

    def hints(self) -> list[str]:
        """A name for each of these."""
        names = [name for name, parts in self.parts.items() for _ in parts or ()]
        names += [self._name_of(cell.holders, "state") for cell in self.cells]
        for item in self.replaced:
            name = self._name_of([item.container], "state")
            names += [name for _ in plain_parts(item.first) or ()]
        return names + ["last" for x in self.growths if x.carries_last]

    def _name_of(self, things: Sequence[PyValue], other: str) -> str:
        names = (name for name, x in self.before.items() if any(x is y for y in things))
        return next((x.rstrip("0123456789") for x in names if x[0] != "_"), other)

    def named(self, names: Mapping[str, PyValue]) -> list[PyValue]:
        """The tensors and numbers of carried names.

        Raises:
            UnsupportedModel: a list or tuple has other parts than before the loop.
        """
        things: list[PyValue] = []
        for name, before in self.parts.items():
            if before is None:
                continue
            parts = plain_parts(names[name])
            if parts is None or not same_form(names[name], self.before[name]):
                raise UnsupportedModel(f"a loop that changes what is in {name!r}")
            things += parts
        return things

    def fill(self, names: dict[str, PyValue], things: Iterator[PyValue]) -> None:
        """Put what flows into a round, or out of the last one, in its places."""
        for name, parts in self.parts.items():
            if parts is not None:
                names[name] = filled(self.before[name], things)
        for cell in self.cells:
            value = next(things).value
            for held in cell.holders:
                held.current = viewed_as(value, held.current)
        for item in self.replaced:
            item.entered = filled(item.first, things)
            item.put(item.entered)

    def enter(
        self, names: dict[str, PyValue], things: Iterator[PyValue], number: Value
    ) -> None:
        """Begin round ``number``."""
        self.fill(names, things)
        for growth in self.growths:
            last = next(things) if growth.carries_last else None
            growth.marker = AppendedItems(number, growth.each, last)
            fill(growth.items, [*growth.first, growth.marker])
        self.entered = dict(names)

    def leave(self) -> None:
        """Put back what was there before the loop."""
        for cell in self.cells:
            for held in cell.holders:
                held.current = viewed_as(cell.first, held.current)
        for item in self.replaced:
            item.put(item.first)
        for growth in self.growths:
            fill(growth.items, growth.first)

    def after(self, side: Side) -> tuple[list[PyValue], list[list[PyValue]]]:
        """What flows out of a round, and what each list gets."""
        contents = {id(container): after for container, after in side.contents}
        things = self.named(side.names)
        for cell in self.cells:
            held = cell.holders[0]
            things.append(side.changed.get(held, held.current))
        for item in self.replaced:
            after = contents.get(id(item.container), item.container)
            things += plain_parts(_items(after)) or ()
        added = [list(contents[id(x.items)])[-x.each :] for x in self.growths]
        for growth, new in zip(self.growths, added, strict=True):
            growth.holds_numbers = are_numbers(new[0], 0)
        lasts = zip(self.growths, added, strict=True)
        things += [new[-1] for growth, new in lasts if growth.carries_last]
        return things, added

    def learn(self, side: Side, outer: NodeWriter) -> bool:
        """Return whether a round did what was not expected, and expect that.

        Raises:
            UnsupportedModel: no loop can be written for what it did.
        """
        is_expected = self._learn_names(side)
        is_expected = self._learn_cells(side, outer) and is_expected
        for container, after in side.contents:
            is_expected = self._learn_list(container, after) and is_expected
        changed = {id(container) for container, _ in side.contents}
        for growth in list(self.growths):
            if id(growth.items) not in changed:
                self.growths.remove(growth)
                is_expected = False
            elif growth.carries_last and not (growth.marker and growth.marker.is_read):
                growth.carries_last = is_expected = False
        return not is_expected

    def check(self, things: Iterable[PyValue]) -> None:
        """Refuse a loop that keeps a tensor which its next rounds change in place.

        Raises:
            UnsupportedModel: it does.
        """
        memories = {id(held.memory) for cell in self.cells for held in cell.holders}
        if any(isinstance(x, TensorRef) and id(x.memory) in memories for x in things):
            raise UnsupportedModel(
                "a loop that keeps a tensor which later rounds change in place"
            )

    def _learn_names(self, side: Side) -> bool:
        """Names whose tensor or list changes in place keep that tensor or list."""
        changed = {id(held.memory) for held in side.changed}
        changed |= {id(container) for container, _ in side.contents}
        is_expected = True
        for name, parts in list(self.parts.items()):
            inside = [] if parts is None else identities(self.entered[name])
            if changed.isdisjoint(inside):
                continue
            if side.names[name] is not self.entered[name]:
                raise UnsupportedModel(
                    f"a loop that changes {name!r} in place and gives it another value"
                )
            del self.parts[name]
            self.constant.append(name)
            is_expected = False
        for name in self.constant:
            if is_expected and side.names[name] is not self.before[name]:
                raise UnsupportedModel(
                    f"a loop that changes {name!r} in place and gives it another value"
                )
        return is_expected

    def _learn_cells(self, side: Side, outer: NodeWriter) -> bool:
        carried = {held for cell in self.cells for held in cell.holders}
        items = {x for item in self.replaced for x in identities(item.entered)}
        is_expected = True
        for held in side.changed:
            if id(held.memory) in items:
                raise UnsupportedModel(
                    "a loop that changes an item of a list in place and in the list"
                )
            for other in held.memory.holders:
                if other.stale and other not in self.stale and outer.has(other.current):
                    self.stale.add(other)
                    is_expected = False
            if held not in carried and outer.has(held.current):
                is_expected = False
                self._carry(held)
        return is_expected

    def _carry(self, held: TensorRef) -> None:
        for cell in self.cells:
            if cell.first.name == held.current.name:
                cell.holders.append(held)
                return
        self.cells.append(Cell([held], held.current))

    def _learn_list(self, container: Container, after: Container) -> bool:
        before = _items(container)
        items = _items(after)
        growth = next((x for x in self.growths if x.items is container), None)
        is_expected = any(item.container is container for item in self.replaced)
        if growth is None and self._is_replaced(container, after):
            return is_expected
        added = items[len(before) :]
        is_grown = bool(added) and items[: len(before)] == before
        if isinstance(container, dict) or not is_grown or not all(map(is_plain, added)):
            raise refuse(container)
        if growth is None:
            self._grow(container, len(added))
            return False
        is_expected = growth.each == len(added)
        growth.each = len(added)
        return is_expected

    def _is_replaced(self, container: Container, after: Container) -> bool:
        """Return whether a round replaces items, which are carried from now on."""
        before, items = _items(container), _items(after)
        is_dict = isinstance(container, dict)
        if is_dict and list(container) != list(after):
            return False
        if not all(map(_is_carried_item, before)) or not same_form(before, items):
            return False
        if all(item.container is not container for item in self.replaced):
            self.replaced.append(Replaced(container, tuple(before)))
        return True


def identities(thing: PyValue) -> set[int]:
    """The ids of the lists in a thing, and of the memory of its tensors."""
    if isinstance(thing, TensorRef):
        return {id(thing.memory)}
    if not isinstance(thing, list | tuple):
        return set()
    return {id(thing)}.union(*map(identities, thing))


def _is_carried_item(thing: PyValue) -> bool:
    is_tuple = isinstance(thing, tuple) and plain_parts(thing) is not None
    return is_plain(thing) or is_tuple


def _items(container: Container) -> list[PyValue]:
    values = container.values() if isinstance(container, dict) else container
    return list(values)
