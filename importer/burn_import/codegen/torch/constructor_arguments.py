"""Constructor arguments in calls, which differ between instances of one class."""

from __future__ import annotations

from typing import Any

from burn_import.tracing.constructor_numbers import Given, GivenFloat, GivenInt


def holds_given(value: Any) -> bool:
    """Return whether a value is or contains a constructor argument."""
    if isinstance(value, list | tuple):
        return any(map(holds_given, value))
    if isinstance(value, slice):
        return holds_given((value.start, value.stop, value.step))
    return isinstance(value, Given)


def with_given(value: Any, number: int) -> Any:
    """Return a value with ``number`` in place of constructor arguments.

    The numbers are emitted as before.
    """
    if isinstance(value, list | tuple):
        return type(value)(with_given(item, number) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(with_given(part, number) for part in parts))
    if isinstance(value, GivenInt):
        return GivenInt(number, value.text)
    if isinstance(value, GivenFloat):
        return GivenFloat(number, value.text)
    return value
