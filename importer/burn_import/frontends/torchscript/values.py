"""Values of names during symbolic interpretation.

Numbers, strings, None, lists, tuples and dicts are Python objects. A number known only
at run time is a ``Value`` with ``is_number``; a tensor is a ``TensorRef``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeGuard

from burn.record.errors import shown
from burn_import.frontends.checkpoints.pickle_values import Instance
from burn_import.frontends.torch_export.builder import FLOAT64, INT64, Value
from burn_import.frontends.torch_export.complex_as_real import is_complex, viewed_as
from burn_import.frontends.torchscript.source_code import Class
from burn_ir import InvalidModel, UnsupportedModel


def is_record(definition: object) -> TypeGuard[Class]:
    """Return whether a definition in the code is a NamedTuple."""
    return isinstance(definition, Class) and definition.bases == ("NamedTuple",)


def record_of(
    cls: Class, args: Sequence[PyValue], kwargs: Mapping[str, PyValue]
) -> Record:
    """Return an instance of a NamedTuple.

    Raises:
        InvalidModel: the arguments do not match the fields.
    """
    items = dict(zip(cls.fields, args, strict=False)) | dict(kwargs)
    is_valid = len(args) + len(kwargs) == len(cls.fields)
    if not is_valid or set(items) != set(cls.fields):
        names = ", ".join(cls.fields)
        raise InvalidModel(
            f"{shown(cls.name)}: expected the fields {names}, got {len(args)} values"
        )
    return Record.of(cls.fields, (items[field] for field in cls.fields))


PyValue: TypeAlias = Any


@dataclass(eq=False)
class Memory:
    """The storage that several tensors may be views of, with all these tensors."""

    holders: list[TensorRef] = field(default_factory=list)
    #: The reason why it cannot be changed in place, "" if it can.
    constant: str = ""
    is_changed: bool = False


@dataclass(eq=False)
class TensorRef:
    """A tensor variable: its current value, and its aliases.

    ``base`` is the source of a view. ``undo`` maps the base before and the changed view
    to the base after; None if that is unknown. ``redo`` applies the view again if the
    base has another value than that named ``version``. ``in_order`` is whether the
    elements are contiguous. ``stale`` names the operator that changed the memory in a
    way that cannot be followed, "" if none did.
    """

    current: Value
    memory: Memory = field(default_factory=Memory)
    base: TensorRef | None = None
    undo: Callable[[Value, Value], Value] | None = None
    in_order: bool = True
    stale: str = ""
    redo: Callable[[Value], Value] | None = None
    version: str = ""

    def __post_init__(self) -> None:
        self.memory.holders.append(self)
        if self.base is not None:
            self.version = self.base.stale or self.base.value.name

    @property
    def value(self) -> Value:
        """The current value.

        Raises:
            UnsupportedModel: an alias was changed in place in an unknown way.
        """
        if self.stale:
            raise UnsupportedModel(
                f"a tensor is read after {self.stale} changed a view of it in place"
            )
        base, changed = self.base, self.memory.is_changed
        if changed and self.redo is not None and base is not None and not base.stale:
            source = base.value
            if source.name != self.version:
                return self.redo(source)
        return self.current

    def follows(self, names: Container[str]) -> bool:
        """Return whether it is a view, recomputable from a tensor in ``names``."""
        tensor = self
        while tensor.base is not None and tensor.redo is not None:
            tensor = tensor.base
            if tensor.current.name in names:
                return True
        return False

    def change(self, value: Value, by: str) -> list[tuple[TensorRef, Value]]:
        """Change the tensor in place, and the bases of which it is a view.

        Returns the changed tensors with their values before. Aliases that cannot be
        recomputed are stale from now on.

        Raises:
            UnsupportedModel: the memory cannot be changed in place.
        """
        if self.memory.constant:
            raise UnsupportedModel(self.memory.constant)
        after, tensor = {self.current.name: value}, self
        while tensor.base is not None and tensor.undo is not None:
            value = tensor.undo(tensor.base.value, value)
            tensor = tensor.base
            after[tensor.current.name] = value
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
                holder.version = holder.base.current.name
        return changed


class UncomputedResult(TensorRef):
    """A result that the rule of its operator does not compute: an error if read."""

    def __init__(self, operator: str, index: int) -> None:
        super().__init__(Value("", FLOAT64))
        self.reason = f"torch.{operator}: its result {index} is not computed"

    @property
    def value(self) -> Value:
        """Raise the reason.

        Raises:
            UnsupportedModel: always.
        """
        raise UnsupportedModel(self.reason)


@dataclass(frozen=True, eq=False)
class Rows:
    """A list item that stands for the rows of the stacked tensor ``joined``."""

    joined: TensorRef
    is_number: bool = False


@dataclass(eq=False)
class AppendedItems:
    """A list item that stands for the items that earlier iterations appended.

    There are ``each`` of them per iteration; ``last`` is the last one, None if it is
    not carried, and ``is_read`` whether the code reads it.
    """

    number: Value
    each: int
    last: PyValue = None
    is_read: bool = False


class Record(tuple[PyValue, ...]):
    """A NamedTuple: a tuple whose items have the names in ``fields``."""

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


def rebuilt(obj: PyValue, items: Iterable[PyValue]) -> PyValue:
    """Return a list, tuple or record like ``obj`` with other items."""
    if isinstance(obj, Record):
        return Record.of(obj.fields, items)
    return type(obj)(items)


@dataclass(frozen=True, eq=False)
class Returned:
    """The value that a function returns."""

    value: PyValue


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the archive, by its path from the root."""

    instance: Instance
    path: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Namespace:
    """A prefix of function names: ``torch``, ``ops.prim``, ``__torch__.torch.nn``."""

    path: str


@dataclass(frozen=True)
class EnumMember:
    """A member of the enumeration ``path`` in the code, by its value."""

    path: str
    value: str | int | float


class UnknownText(str):
    """A text with a part that is known only at run time, such as a message of an error.

    It may be extended and raised. It equals no text, and is no key of a dict.
    """

    __slots__ = ()

    def __add__(self, other: str) -> UnknownText:
        return self

    def __radd__(self, other: str) -> UnknownText:
        return self

    def __eq__(self, other: object) -> bool:
        raise UnsupportedModel("a text that is known only at run time is compared")

    def __hash__(self) -> int:
        raise UnsupportedModel("a text that is known only at run time is a key")


def text_of(obj: PyValue) -> str:
    """Return ``str(obj)`` of TorchScript, of texts and of whole numbers."""
    if isinstance(obj, UnknownText) or not isinstance(obj, str | int | None):
        return UnknownText()
    return str(obj)


@dataclass(frozen=True)
class Method:
    """A method of a module."""

    module: Module
    name: str


@dataclass(eq=False)
class ContextManager:
    """An object for ``with``, by its class; ``args`` are those of ``__init__``."""

    kind: str
    args: list[PyValue] = field(default_factory=list)

    def initialize(self, args: list[PyValue]) -> None:
        """Set the arguments of the constructor."""
        self.args = args


@dataclass(frozen=True)
class Without:
    """An object without a value to compute with.

    ``kind`` is ``device`` (irrelevant here), ``uninitialized`` (never read), or
    ``unknown``: the result of an unsupported operation that is reported already.
    """

    kind: str


DEVICE = Without("device")
UNINITIALIZED = Without("uninitialized")
UNKNOWN = Without("unknown")


def wrapped_number(constant: PyValue) -> PyValue:
    """Return a constant of the archive as PyTorch loads it.

    PyTorch loads a tensor of rank 0 with the dtype of a Python number as a "wrapped"
    number: its dtype adapts to the other operands.
    """
    if not isinstance(constant, TensorRef) or constant.value.dims != ():
        return constant
    value = constant.value
    is_number = value.dtype in (INT64, FLOAT64) or is_complex(value)
    return TensorRef(replace(value, is_number=is_number))


def describe(obj: PyValue) -> str:
    """Return a description of an object for a message."""
    if isinstance(obj, TensorRef):
        return "a tensor"
    if isinstance(obj, Value):
        return "a number that is computed"
    if isinstance(obj, Rows):
        return "a list whose length is known only at run time"
    if isinstance(obj, Module | Method | Namespace):
        return f"a {type(obj).__name__.lower()}"
    if isinstance(obj, Without):
        return f"something {obj.kind}" if obj is UNKNOWN else f"a {obj.kind}"
    if obj is None or isinstance(obj, bool | int | float):
        return repr(obj)
    return f"a value of type {type(obj).__name__}"


def is_unknown(obj: PyValue) -> bool:
    """Return whether an object is the result of something that is not supported."""
    return obj is UNKNOWN or (
        isinstance(obj, list | tuple) and any(item is UNKNOWN for item in obj)
    )


def require_values(function: str, args: Iterable[PyValue]) -> None:
    """Refuse an operator call with an argument that no value of the graph stands for.

    Functions of the archive may pass such an argument on.

    Raises:
        UnsupportedModel: there is such an argument.
    """
    for arg in () if function.startswith("__torch__.") else args:
        if isinstance(arg, Without) and arg is not DEVICE and arg is not UNKNOWN:
            raise UnsupportedModel(f"{function} reads {describe(arg)}")
        if isinstance(arg, UnknownText) and function not in _OF_TEXTS:
            raise UnsupportedModel(f"{function} reads a text known only at run time")


#: Functions that do not depend on the contents of a text.
_OF_TEXTS = frozenset(
    {
        *("torch.add", "torch.append", "torch.format", "torch.warn"),
        *("torch.__is__", "torch.__isnot__", "torch._set_item"),
        "ops.prim.RaiseException",
    }
)


def enum_attribute(definition: object, member: EnumMember, name: str) -> PyValue:
    """Return the ``value`` or the ``name`` of a member of an enumeration.

    Raises:
        InvalidModel: it has no such attribute, or the code no such member.
    """
    if name == "value":
        return member.value
    values = definition.members if isinstance(definition, Class) else {}
    names = [key for key, value in values.items() if value == member.value]
    if name != "name" or not names:
        raise InvalidModel(f"{shown(member.path)} has no {shown(name)}")
    return names[0]
