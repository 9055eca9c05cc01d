"""Constructor arguments in calls, which differ between instances of one class."""

from __future__ import annotations

from typing import Any

from burn_import.tracing.constructor_numbers import (
    ParameterFloat,
    ParameterInt,
    ParameterNumber,
)


def has_parameter_numbers(value: Any) -> bool:
    """Return whether a value is or contains a constructor argument."""
    if isinstance(value, list | tuple):
        return any(map(has_parameter_numbers, value))
    if isinstance(value, slice):
        return has_parameter_numbers((value.start, value.stop, value.step))
    return isinstance(value, ParameterNumber)


def with_parameter_values(value: Any, number: int) -> Any:
    """Return a value with ``number`` in place of constructor arguments.

    The numbers are emitted as before.
    """
    if isinstance(value, list | tuple):
        return type(value)(with_parameter_values(item, number) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(with_parameter_values(part, number) for part in parts))
    if isinstance(value, ParameterInt):
        return ParameterInt(number, value.text)
    if isinstance(value, ParameterFloat):
        return ParameterFloat(number, value.text)
    return value
