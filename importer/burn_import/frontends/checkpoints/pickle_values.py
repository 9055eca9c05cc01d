"""Values of a pickle: data of Python, and inert records of objects.

A name of a class or function becomes a :class:`Global`. It is text: nothing is looked
up, imported or called. An object of a class becomes an :class:`Instance`, which keeps
what the file says of it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from burn.record.errors import shown

#: None, bool, int, float, str, bytes, memoryview, list, tuple, dict, or one of ours.
Value: TypeAlias = Any
Bytes = (bytes, memoryview, bytearray)


class Global:
    """The name of something in a module of Python, which is never looked up."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def path(self) -> str:
        """The module and the name in it, with a dot between."""
        return f"{self.module}.{self.name}"

    def __str__(self) -> str:
        return shown(self.path)[1:-1]


class Instance:
    """An object that the file describes and nobody builds.

    ``state`` is what its class would restore it from, ``entries`` and ``elements`` what
    it holds where its class is a kind of dict or list.
    """

    __slots__ = ("args", "elements", "entries", "kind", "state")

    def __init__(self, kind: Global, args: tuple[Value, ...] = ()) -> None:
        self.kind = kind
        self.args = args
        self.state: Value = None
        self.entries: dict[Value, Value] = {}
        self.elements: list[Value] = []


class Unread:
    """A tensor of a kind that is not read, and why."""

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
