"""Conversion of field values to and from JSON and TOML types."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


class ConfigError(ValueError):
    """A configuration field is unknown, missing, or has a value of another type."""


def encode(value: Any, field: str) -> Any:
    """Return ``value`` as dicts, lists, strings, numbers, booleans and None.

    Enums become their names, paths strings, tuples lists.

    Raises:
        ConfigError: the value cannot be converted.
    """
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (item.name for item in dataclasses.fields(value) if item.init)
        return {
            name: encode(getattr(value, name), _inner(field, name)) for name in names
        }
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise _wrong(field, "keys that are str", key)
        return {key: encode(item, _inner(field, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, f"{field}[{i}]") for i, item in enumerate(value)]
    raise _wrong(field, "a value that JSON can hold", value)


def decode(kind: Any, value: Any, field: str) -> Any:
    """Return a value from :func:`encode` as the type ``kind`` of a field.

    An int is accepted where a float is expected; there is no other conversion.

    Raises:
        ConfigError: the value is of another type.
        TypeError: fields of type ``kind`` are not supported.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, value, field)
    if origin is Literal:
        if not any(value == x and type(value) is type(x) for x in arguments):
            raise _wrong(field, f"one of {list(arguments)}", value)
        return value
    if (origin or kind) in _CONTAINERS:
        return _CONTAINERS[origin or kind](arguments, value, field)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return decode_fields(kind, value, field)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _decode_enum(kind, value, field)
    return _decode_scalar(kind, value, field)


def decode_fields(kind: type[Any], value: Any, field: str) -> Any:
    """Return an instance of the dataclass ``kind`` from a dict of its fields.

    Raises:
        ConfigError: a field is unknown, missing without a default, or of another type.
    """
    if dataclasses.is_dataclass(value) and isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise _wrong(field, f"a table with the fields of {kind.__name__}", value)
    fields = {item.name: item for item in dataclasses.fields(kind) if item.init}
    unknown = sorted(set(value) - fields.keys())
    if unknown:
        raise ConfigError(
            f"{_inner(field, unknown[0])}: {kind.__name__} has no such field, "
            f"only {sorted(fields)}"
        )
    missing = [
        name
        for name, item in fields.items()
        if name not in value
        and item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(
            f"{_inner(field, missing[0])}: {kind.__name__} needs a value, got none"
        )
    hints = get_type_hints(kind)
    arguments = {
        name: decode(hints[name], item, _inner(field, name))
        for name, item in value.items()
    }
    try:
        return kind(**arguments)
    except ConfigError as error:
        raise ConfigError(f"{field}: {error}" if field else str(error)) from error


def _decode_union(kinds: Sequence[Any], value: Any, field: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    errors = []
    # Types without conversion first, so that 1 stays an int in int | float.
    for kind in sorted(kinds, key=lambda kind: kind is not type(value)):
        if kind is not type(None):
            try:
                return decode(kind, value, field)
            except ConfigError as error:
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise _wrong(field, " or ".join(map(_name, kinds)), value)


def _decode_sequence(kind: type[Any], items: Any, value: Any, field: str) -> Any:
    if not isinstance(value, list | tuple):
        raise _wrong(field, _name(kind), value)
    return kind(
        decode(items[i] if isinstance(items, tuple) else items, x, f"{field}[{i}]")
        for i, x in enumerate(value)
    )


def _decode_list(arguments: tuple[Any, ...], value: Any, field: str) -> Any:
    return _decode_sequence(list, arguments[0] if arguments else Any, value, field)


def _decode_tuple(arguments: tuple[Any, ...], value: Any, field: str) -> Any:
    if not arguments or arguments[-1] is Ellipsis:
        item = arguments[0] if arguments else Any
        return _decode_sequence(tuple, item, value, field)
    if isinstance(value, list | tuple) and len(value) != len(arguments):
        raise _wrong(field, f"{len(arguments)} items", value)
    return _decode_sequence(tuple, arguments, value, field)


def _decode_dict(arguments: tuple[Any, ...], value: Any, field: str) -> Any:
    keys, items = arguments or (str, Any)
    if keys is not str:
        raise TypeError(f"{field}: only dict[str, ...] is supported, not {keys}")
    if not isinstance(value, Mapping):
        raise _wrong(field, "a table", value)
    return {key: decode(items, item, _inner(field, key)) for key, item in value.items()}


_CONTAINERS: dict[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {
    list: _decode_list,
    tuple: _decode_tuple,
    dict: _decode_dict,
}


def _decode_enum(kind: type[Enum], value: Any, field: str) -> Enum:
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise _wrong(field, f"one of {list(kind.__members__)}", value)


def _decode_scalar(kind: Any, value: Any, field: str) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if kind is float and type(value) is int:
        return float(value)
    if kind in (bool, int, float, str, type(None)) or kind is Path:
        if type(value) is not kind:
            raise _wrong(field, _name(kind), value)
        return value
    raise TypeError(f"{field}: fields of type {kind} are not supported")


def _inner(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _name(kind: Any) -> str:
    if kind is type(None):
        return "None"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _wrong(field: str, expected: str, value: Any) -> ConfigError:
    actual = f"{type(value).__name__} {value!r}"
    return ConfigError(f"{field or 'the file'}: expected {expected}, got {actual}")
