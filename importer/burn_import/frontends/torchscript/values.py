"""Values of names while the code of an archive is interpreted.

Numbers, texts, None, lists, tuples and dicts are Python's own. A number that is only
known when the model runs is a ``Value`` with ``is_number``; a tensor is ``TensorRef``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from burn_import.frontends.checkpoints.pickle_values import Instance
from burn_import.frontends.torch_export.builder import FLOAT64, INT64, Value
from burn_import.frontends.torch_export.complex_as_real import is_complex, viewed_as
from burn_ir import InvalidModel, UnsupportedModel

PyValue: TypeAlias = Any


@dataclass(eq=False)
class Memory:
    """The bytes that several tensors may be views of, by whoever sees them."""

    holders: list[TensorRef] = field(default_factory=list)
    #: Why it cannot be changed in place, "" if it can.
    constant: str = ""
    is_changed: bool = False


@dataclass(eq=False)
class TensorRef:
    """A tensor: the value that it has at this point of the code.

    ``base`` is what it is a view of, and ``undo`` gives the value of that from the one
    before and a changed view; None where it is not known how. ``redo`` takes the view
    again where the base has another value than that of name ``seen``. ``in_order``
    says whether the elements lie in memory as they are counted. ``stale`` says what
    changed it in origin without telling how, "" if nothing did.
    """

    current: Value
    memory: Memory = field(default_factory=Memory)
    base: TensorRef | None = None
    undo: Callable[[Value, Value], Value] | None = None
    in_order: bool = True
    stale: str = ""
    redo: Callable[[Value], Value] | None = None
    seen: str = ""

    def __post_init__(self) -> None:
        self.memory.holders.append(self)
        if self.base is not None:
            self.seen = self.base.stale or self.base.value.name

    @property
    def value(self) -> Value:
        """The value.

        Raises:
            UnsupportedModel: what shares its memory was changed in place.
        """
        if self.stale:
            raise UnsupportedModel(
                f"a tensor is read after {self.stale} changed a view of it in place"
            )
        base, changed = self.base, self.memory.is_changed
        if changed and self.redo is not None and base is not None and not base.stale:
            source = base.value
            if source.name != self.seen:
                return self.redo(source)
        return self.current

    def follows(self, names: Container[str]) -> bool:
        """Return whether it is a view, to be taken again, of what has a name."""
        held = self
        while held.base is not None and held.redo is not None:
            held = held.base
            if held.current.name in names:
                return True
        return False

    def change(self, value: Value, by: str) -> list[tuple[TensorRef, Value]]:
        """Change it in place, and with it what it is a view of.

        Returns what was changed, with the value before. What else shares the memory is
        stale from now on.

        Raises:
            UnsupportedModel: what else changes with it is not known.
        """
        if self.memory.constant:
            raise UnsupportedModel(self.memory.constant)
        after, held = {self.current.name: value}, self
        while held.base is not None and held.undo is not None:
            value = held.undo(held.base.value, value)
            held = held.base
            after[held.current.name] = value
        self.memory.is_changed = True
        changed = []
        for holder in self.memory.holders:
            if holder.current.name in after:
                changed.append((holder, holder.current))
            elif not holder.follows(after):
                holder.stale = holder.stale or by
        for holder, before in changed:
            holder.current = viewed_as(after[before.name], before)
        for holder, _ in changed:
            if holder.base is not None:
                holder.seen = holder.base.current.name
        return changed


@dataclass(frozen=True, eq=False)
class Rows:
    """In a list: as many tensors as ``joined`` has along its first axis."""

    joined: TensorRef
    is_number: bool = False


@dataclass(eq=False)
class AppendedItems:
    """In a list, while a loop is followed: what the rounds before this one appended.

    These are ``each`` in every round; ``last`` is the last of all, None if that is not
    carried, and ``is_read`` says whether it is asked for.
    """

    number: Value
    each: int
    last: PyValue = None
    is_read: bool = False


class Record(tuple[PyValue, ...]):
    """A tuple whose items have names, those of ``fields``: a NamedTuple."""

    fields: tuple[str, ...] = ()

    @staticmethod
    def of(fields: tuple[str, ...], items: Iterable[PyValue]) -> Record:
        """Return a record of items, one for each field."""
        record = Record(items)
        record.fields = fields
        return record

    def item(self, field: str) -> PyValue:
        """Return the item of a field.

        Raises:
            InvalidModel: there is no such field.
        """
        if field not in self.fields:
            raise InvalidModel(f"a tuple of {', '.join(self.fields)} has no {field}")
        return self[self.fields.index(field)]


def rebuilt(thing: PyValue, items: Iterable[PyValue]) -> PyValue:
    """Return a list, tuple or record like ``thing`` with other items."""
    if isinstance(thing, Record):
        return Record.of(thing.fields, items)
    return type(thing)(items)


@dataclass(frozen=True, eq=False)
class Returned:
    """The value that a function returns."""

    value: PyValue


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the archive, by its path from the outermost one."""

    instance: Instance
    path: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Namespace:
    """Names of functions: ``torch``, ``ops.prim``, ``__torch__.torch.nn``."""

    path: str


@dataclass(frozen=True)
class Method:
    """A method of a module."""

    module: Module
    name: str


@dataclass(frozen=True)
class Without:
    """Object that has no value to compute with.

    ``kind`` is ``device`` (none changes a value), ``uninitialized`` (never read), or
    ``unknown``: the result of what is reported as not supported already.
    """

    kind: str


DEVICE = Without("device")
UNINITIALIZED = Without("uninitialized")
UNKNOWN = Without("unknown")


def wrapped_number(constant: PyValue) -> PyValue:
    """Return a constant of the archive as PyTorch loads it.

    PyTorch takes a tensor of rank 0 and of the dtype of a Python number for that number
    ("wrapped"): its dtype adapts to the tensors beside it.
    """
    if not isinstance(constant, TensorRef) or constant.value.dims != ():
        return constant
    value = constant.value
    is_number = value.dtype in (INT64, FLOAT64) or is_complex(value)
    return TensorRef(replace(value, is_number=is_number))


def described(thing: PyValue) -> str:
    """Return a description of a thing for a message."""
    if isinstance(thing, TensorRef):
        return "a tensor"
    if isinstance(thing, Value):
        return "a number that is computed"
    if isinstance(thing, Module | Method | Namespace):
        return f"a {type(thing).__name__.lower()}"
    if isinstance(thing, Without):
        return f"something {thing.kind}" if thing is UNKNOWN else f"a {thing.kind}"
    if thing is None or isinstance(thing, bool | int | float):
        return repr(thing)
    return f"a value of type {type(thing).__name__}"


def is_unknown(thing: PyValue) -> bool:
    """Return whether a thing is the result of something that is not supported."""
    return thing is UNKNOWN or (
        isinstance(thing, list | tuple) and any(item is UNKNOWN for item in thing)
    )
