"""Loop-carried values: names, tensors changed in place, list items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.complex_as_real import viewed_as
from burn_import.frontends.torchscript.control_flow.branch_results import (
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
    UnknownText,
    rebuilt,
)
from burn_ir import UnsupportedModel


def plain_parts(obj: PyValue) -> list[PyValue] | None:
    """Return the tensors and numbers in nested lists and tuples; None for others."""
    if is_plain(obj):
        return [obj]
    if not isinstance(obj, list | tuple):
        return None
    parts = [plain_parts(item) for item in obj]
    return None if None in parts else [x for part in parts for x in part or ()]


def same_form(a: PyValue, b: PyValue) -> bool:
    """Return whether lists and tuples are nested in the same way."""
    if not isinstance(a, list | tuple) or not isinstance(b, list | tuple):
        return is_plain(a) and is_plain(b)
    same = type(a) is type(b) and len(a) == len(b)
    return same and all(map(same_form, a, b))


def with_parts(obj: PyValue, parts: Iterator[PyValue]) -> PyValue:
    """Return ``obj`` with its tensors and numbers replaced by ``parts``."""
    if isinstance(obj, list | tuple):
        return rebuilt(obj, (with_parts(item, parts) for item in obj))
    return next(parts)


def is_same(a: PyValue, b: PyValue) -> bool:
    """Return whether two objects without tensors are equal (modules, strings)."""
    if isinstance(a, Module) and isinstance(b, Module):
        return a.instance is b.instance
    if isinstance(a, UnknownText) and isinstance(b, UnknownText):
        return True
    return a is b or (type(a) is type(b) and isinstance(a, str) and a == b)


@dataclass(eq=False)
class Cell:
    """Aliases of one tensor from before the loop that iterations change in place."""

    holders: list[TensorRef]
    first: Value


@dataclass(eq=False)
class Replaced:
    """A list or dict whose items iterations replace, with the original items."""

    container: Container
    first: tuple[PyValue, ...]
    entered: tuple[PyValue, ...] = ()

    def put(self, items: Iterable[PyValue]) -> None:
        """Replace the items of the list or dict by equally many others."""
        contents = tuple(items)
        container = self.container
        is_dict = isinstance(container, dict)
        new: Any = dict(zip(container, contents, strict=True)) if is_dict else contents
        fill(container, new)


@dataclass(eq=False)
class Growth:
    """A list to which each iteration appends ``each`` tensors.

    ``first`` are its items before the loop. ``carries_last`` is whether an iteration
    receives the item appended last.
    """

    items: list[PyValue]
    first: list[PyValue]
    each: int = 1
    carries_last: bool = False
    marker: AppendedItems | None = None
    holds_numbers: bool = False


class Carried:
    """The values that flow into an iteration, and out of it into the next one.

    An iteration may turn out to carry more than assumed: ``learn`` extends the carried
    values, and the iteration must be interpreted again.
    """

    def __init__(self, before: Mapping[str, PyValue], names: Sequence[str]) -> None:
        self.before = before
        #: Names that iterations assign, with their tensors and numbers; None for other
        #: objects.
        self.parts = {name: plain_parts(before[name]) for name in names}
        #: Names bound to one tensor or list in all iterations, which is changed in
        #: place.
        self.constant: list[str] = []
        self.cells: list[Cell] = []
        self.replaced: list[Replaced] = []
        self.growths: list[Growth] = []
        #: Tensors that cannot be read after an iteration, since a view was changed in
        #: place.
        self.stale: set[TensorRef] = set()
        self.entered: dict[str, PyValue] = {}

    def expect_growth(self, names: Iterable[str]) -> None:
        """Assume that iterations append to the lists of these names."""
        for name in names:
            items = self.before.get(name)
            if isinstance(items, list) and self.parts.get(name) is None:
                self._grow(items, 1)

    def _grow(self, items: list[PyValue], each: int) -> None:
        if all(growth.items is not items for growth in self.growths):
            carries_last = bool(items) and is_plain(items[-1])
            self.growths.append(Growth(items, items.copy(), each, carries_last))

    def first(self) -> list[PyValue]:
        """Return the values that flow into the first iteration."""
        objs = self.named(self.before)
        objs += [cell.holders[0] for cell in self.cells]
        for item in self.replaced:
            objs += plain_parts(item.first) or ()
        return objs + [x.first[-1] for x in self.growths if x.carries_last]

    def hints(self) -> list[str]:
        """Return a name for each carried value."""
        names = [name for name, parts in self.parts.items() for _ in parts or ()]
        names += [self._name_of(cell.holders) for cell in self.cells]
        for item in self.replaced:
            name = self._name_of([item.container])
            names += [name for _ in plain_parts(item.first) or ()]
        return names + ["last" for x in self.growths if x.carries_last]

    def _name_of(self, objs: Sequence[PyValue]) -> str:
        names = (name for name, x in self.before.items() if any(x is y for y in objs))
        return next((x.rstrip("0123456789") for x in names if x[0] != "_"), "state")

    def named(self, names: Mapping[str, PyValue]) -> list[PyValue]:
        """Return the tensors and numbers of carried names.

        Raises:
            UnsupportedModel: a list or tuple has another structure than before the
                loop.
        """
        objs: list[PyValue] = []
        for name, before in self.parts.items():
            if before is None:
                continue
            parts = plain_parts(names[name])
            if parts is None or not same_form(names[name], self.before[name]):
                raise UnsupportedModel(f"a loop changes the structure of {name!r}")
            objs += parts
        return objs

    def fill(self, names: dict[str, PyValue], objs: Iterator[PyValue]) -> None:
        """Assign carried values to their names, cells and containers."""
        for name, parts in self.parts.items():
            if parts is not None:
                names[name] = with_parts(self.before[name], objs)
        for cell in self.cells:
            value = next(objs).value
            for alias in cell.holders:
                alias.current = viewed_as(value, alias.current)
        for item in self.replaced:
            item.entered = with_parts(item.first, objs)
            item.put(item.entered)

    def enter(
        self, names: dict[str, PyValue], objs: Iterator[PyValue], number: Value
    ) -> None:
        """Begin iteration ``number`` with carried values."""
        self.fill(names, objs)
        for growth in self.growths:
            last = next(objs) if growth.carries_last else None
            growth.marker = AppendedItems(number, growth.each, last)
            fill(growth.items, [*growth.first, growth.marker])
        self.entered = dict(names)

    def leave(self) -> None:
        """Restore the state before the loop."""
        for cell in self.cells:
            for alias in cell.holders:
                alias.current = viewed_as(cell.first, alias.current)
        for item in self.replaced:
            item.put(item.first)
        for growth in self.growths:
            fill(growth.items, growth.first)

    def after(self, side: Side) -> tuple[list[PyValue], list[list[PyValue]]]:
        """Return the values carried out of an iteration, and each list's new items."""
        contents = {id(container): after for container, after in side.contents}
        objs = self.named(side.names)
        for cell in self.cells:
            alias = cell.holders[0]
            objs.append(side.changed.get(alias, alias.current))
        for item in self.replaced:
            after = contents.get(id(item.container), item.container)
            objs += plain_parts(_items(after)) or ()
        added = [list(contents[id(x.items)])[-x.each :] for x in self.growths]
        for growth, new in zip(self.growths, added, strict=True):
            growth.holds_numbers = are_numbers(new[0], 0)
        lasts = zip(self.growths, added, strict=True)
        objs += [new[-1] for growth, new in lasts if growth.carries_last]
        return objs, added

    def learn(self, side: Side, outer: NodeWriter) -> bool:
        """Record unexpected effects of an iteration; return whether there are any.

        Raises:
            UnsupportedModel: the effects cannot be expressed as a loop.
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

    def check(self, objs: Iterable[PyValue]) -> None:
        """Refuse a loop that stores a tensor which later iterations change in place.

        Raises:
            UnsupportedModel: an item of ``objs`` is such a tensor.
        """
        memories = {id(alias.memory) for cell in self.cells for alias in cell.holders}
        if any(isinstance(x, TensorRef) and id(x.memory) in memories for x in objs):
            raise UnsupportedModel(
                "a loop stores a tensor that later iterations change in place"
            )

    def _learn_names(self, side: Side) -> bool:
        """Make names constant whose tensor or list is changed in place."""
        changed = {id(tensor.memory) for tensor in side.changed}
        changed |= {id(container) for container, _ in side.contents}
        is_expected = True
        for name, parts in list(self.parts.items()):
            inside = [] if parts is None else identities(self.entered[name])
            if changed.isdisjoint(inside):
                continue
            if side.names[name] is not self.entered[name]:
                raise UnsupportedModel(
                    f"a loop that changes {name!r} in place and reassigns it"
                )
            del self.parts[name]
            self.constant.append(name)
            is_expected = False
        for name in self.constant:
            if is_expected and side.names[name] is not self.before[name]:
                raise UnsupportedModel(
                    f"a loop that changes {name!r} in place and reassigns it"
                )
        return is_expected

    def _learn_cells(self, side: Side, outer: NodeWriter) -> bool:
        carried = {tensor for cell in self.cells for tensor in cell.holders}
        items = {x for item in self.replaced for x in identities(item.entered)}
        is_expected = True
        for tensor in side.changed:
            if id(tensor.memory) in items:
                raise UnsupportedModel(
                    "a loop changes a list item in place and replaces it"
                )
            for other in tensor.memory.holders:
                if other.stale and other not in self.stale and outer.has(other.current):
                    self.stale.add(other)
                    is_expected = False
            if tensor not in carried and outer.has(tensor.current):
                is_expected = False
                self._carry_parts(tensor)
        return is_expected

    def _carry_parts(self, tensor: TensorRef) -> None:
        for cell in self.cells:
            if cell.first.name == tensor.current.name:
                cell.holders.append(tensor)
                return
        self.cells.append(Cell([tensor], tensor.current))

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
        """Return whether an iteration replaces items; carry them if so."""
        before, items = _items(container), _items(after)
        is_dict = isinstance(container, dict)
        if is_dict and list(container) != list(after):
            return False
        if not all(map(_is_carried_item, before)) or not same_form(before, items):
            return False
        if all(item.container is not container for item in self.replaced):
            self.replaced.append(Replaced(container, tuple(before)))
        return True


def identities(obj: PyValue) -> set[int]:
    """Return the ids of the lists in an object, and of the memory of its tensors."""
    if isinstance(obj, TensorRef):
        return {id(obj.memory)}
    if not isinstance(obj, list | tuple):
        return set()
    return {id(obj)}.union(*map(identities, obj))


def _is_carried_item(obj: PyValue) -> bool:
    is_tuple = isinstance(obj, tuple) and plain_parts(obj) is not None
    return is_plain(obj) or is_tuple


def _items(container: Container) -> list[PyValue]:
    values = container.values() if isinstance(container, dict) else container
    return list(values)
