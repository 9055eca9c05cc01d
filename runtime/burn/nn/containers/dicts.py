"""Modules and parameters by name."""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Generic, TypeVar

from burn.box import Box
from burn.nn.module import Module

V = TypeVar("V", bound="Module | Box")


class _NamedModules(Module, Generic[V]):
    """Values of one kind by name; the names are their keys in the state."""

    _kind: type = Module

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        super().__init__()
        self._named: dict[str, V] = {}
        self.update(values or {})

    def children(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()

    def update(self, values: Mapping[str, V]) -> None:
        """Set all ``values`` by name."""
        for name, value in values.items():
            self[name] = value

    def __setitem__(self, name: str, value: V) -> None:
        """Set a value.

        Raises:
            TypeError: the value is of another kind.
            ValueError: the name is empty or has a dot, which separates keys.
        """
        kind = "parameter or buffer" if self._kind is Box else "module"
        if not isinstance(value, self._kind):
            raise TypeError(f"{name!r}: expected a {kind}, got {type(value).__name__}")
        if not name or "." in name:
            raise ValueError(f"expected a name without dots, got {name!r}")
        self._named[name] = value

    def __getitem__(self, name: str) -> V:
        return self._named[name]

    def __delitem__(self, name: str) -> None:
        del self._named[name]

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def keys(self) -> KeysView[str]:
        """Return the names, in the order of their first assignment."""
        return self._named.keys()

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return self._named.values()

    def items(self) -> ItemsView[str, V]:
        """Return pairs of name and value."""
        return self._named.items()


class ModuleDict(_NamedModules[Module]):
    """Modules by name: ``heads["digits"](x)``; their keys begin with the name."""

    __hash__ = object.__hash__


class ParameterDict(_NamedModules[Box]):
    """Parameters and buffers by name; the names are their keys."""

    _kind = Box
    __hash__ = object.__hash__
