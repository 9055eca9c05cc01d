"""Values of a pickle: plain Python data, and inert records of objects.

The name of a class or function becomes a :class:`Global`, which is only text: nothing
is looked up, imported or called. An object becomes an :class:`Instance` with its
recorded state.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from burn.record.errors import shown

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
