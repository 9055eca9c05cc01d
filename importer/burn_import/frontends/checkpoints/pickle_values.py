"""Values of a pickle: plain Python data, and inert records of objects.

The name of a class or function becomes a :class:`Global`, which is only text: nothing
is looked up, imported or called. An object becomes an :class:`Instance` with its
recorded state.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from burn.record.errors import shown
from burn_ir import UnsupportedModel

#: Integers below this have distinct hashes; larger ones can be made to collide.
_LARGEST = 2**60
_MOST_ITEMS = 16


def checked_key(key: Value) -> Value:
    """Return the key if its hash is cheap and cannot be made to collide.

    Raises:
        UnsupportedModel: the value cannot be a key.
    """
    if type(key) is tuple and len(key) <= _MOST_ITEMS:
        if all(_is_plain(item) for item in key):
            return key
    elif _is_plain(key) or not isinstance(key, _UNFIT):
        return key
    raise UnsupportedModel(f"a dict with {named(key)} as a key")


#: Other keys are strings, whose hashes are randomized, or objects, hashed by identity.
_UNFIT = (int, float, tuple, list, dict, bytearray, memoryview)


def _is_plain(key: Value) -> bool:
    if type(key) is int:
        return -_LARGEST < key < _LARGEST
    return key is None or type(key) in (str, bool, float, bytes)


#: None, bool, int, float, str, bytes, memoryview, list, tuple, dict, or a class below.
Value: TypeAlias = Any
Bytes = (bytes, memoryview, bytearray)


class Global:
    """The name of an object in a Python module, which is never looked up."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def path(self) -> str:
        """The module and the name, joined by a dot."""
        return f"{self.module}.{self.name}"

    def __str__(self) -> str:
        return shown(self.path)[1:-1]


class EnumValue:
    """A member of an enumeration of TorchScript's code, by its value."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: Global, value: str | int | float) -> None:
        self.kind = kind
        self.value = value


class Instance:
    """An object that the file describes; it is not constructed.

    ``state`` is the argument of ``__setstate__``, ``entries`` and ``elements`` are
    its items if its class is a kind of dict or list.
    """

    __slots__ = ("args", "elements", "entries", "kind", "state")

    def __init__(self, kind: Global, args: tuple[Value, ...] = ()) -> None:
        self.kind = kind
        self.args = args
        self.state: Value = None
        self.entries: dict[Value, Value] = {}
        self.elements: list[Value] = []


class Unread:
    """A tensor of a kind that is not read, with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def named(value: Value) -> str:
    """Return a description of a value for a message."""
    if isinstance(value, Global):
        return f"the name {value}"
    if isinstance(value, Instance):
        return f"an object of {value.kind}"
    return f"a value of type {type(value).__name__}"
