"""Pytrees: nested arguments and results in lists, tuples and dicts."""

from collections.abc import Callable
from typing import Any


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the pytree with ``function`` applied to each leaf, in order."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind([mapped(function, item) for item in value])
    if kind is dict:
        return {key: mapped(function, item) for key, item in value.items()}
    if is_named(kind):
        return kind(*(mapped(function, item) for item in value))
    return function(value)


def is_named(kind: type[Any]) -> bool:
    """Return whether ``kind`` is a named tuple type."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")
