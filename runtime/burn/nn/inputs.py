"""A decorator that checks the inputs of a model against declared types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from burn import dtypes
from burn.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_TYPE = re.compile(r"(\w+)\[(.*)\]")
_DTYPES = {
    dtypes.name_of(dtype): dtype
    for dtype in vars(dtypes).values()
    if isinstance(dtype, np.dtype)
}


class InputError(TypeError, ValueError):
    """Inputs of a model that are not what it was made for; all of them are listed."""


def check_inputs(**types: str) -> Callable[[F], F]:
    """Return a decorator that checks the tensors a method is called with.

    Args:
        types: A type such as ``float32[batch, 3, 224, 224]`` by the name of each
            parameter. Numbers are fixed extents, equal names are equal extents, ``?``
            is any extent and ``[...]`` any shape. Parameters without one are not
            checked.

    The decorated method raises ``InputError`` if an input is no tensor, or has another
    dtype, rank or extent. The message names every such input, the expected type and
    the one that came.

    Raises:
        ValueError: a type is not written like that.
    """
    checks = {name: _Check(name, text) for name, text in types.items()}

    def decorate(method: F) -> F:
        absent, parameters = object(), signature(method).parameters
        names = list(parameters)
        optional = {name for name in checks if parameters[name].default is None}

        def is_absent(name: str, given: dict[str, Any]) -> bool:
            value = given.get(name, absent)
            return value is absent or value is None and name in optional

        @wraps(method)
        def checked(*args: Any, **named: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | named
            extents: dict[str, int] = {}
            for name, check in checks.items():
                if is_absent(name, given) or check.accepts(given[name], extents):
                    continue
                present = {n: checks[n] for n in checks if not is_absent(n, given)}
                raise InputError(_message(args[0], present, given))
            return method(*args, **named)

        return checked  # type: ignore[return-value]

    return decorate


class _Check:
    """The type of one input."""

    def __init__(self, name: str, text: str) -> None:
        match = _TYPE.fullmatch(text)
        dtype = _DTYPES.get(match[1]) if match else None
        if match is None or dtype is None:
            raise ValueError(f"expected a type like float32[batch, 3], got {text!r}")
        self.name = name
        self.text = text
        self.dtype = dtype
        self.rank: int | None = None
        self.fixed: list[tuple[int, int]] = []
        self.named: list[tuple[int, str]] = []
        if match[2] != "...":
            self._read([part for part in match[2].split(", ") if part])

    def _read(self, parts: list[str]) -> None:
        self.rank = len(parts)
        for axis, part in enumerate(parts):
            if part.isdecimal():
                self.fixed.append((axis, int(part)))
            elif part != "?":
                self.named.append((axis, part))

    def accepts(self, value: Any, extents: dict[str, int]) -> bool:
        """Whether ``value`` is of this type; ``extents`` are the named ones so far."""
        if not isinstance(value, Tensor) or value.dtype != self.dtype:
            return False
        if self.rank is None:
            return True
        shape = value.shape
        if len(shape) != self.rank:
            return False
        if any(shape[axis] != extent for axis, extent in self.fixed):
            return False
        return all(
            extents.setdefault(name, shape[axis]) == shape[axis]
            for axis, name in self.named
        )


def _message(
    model: object, checks: Mapping[str, _Check], given: Mapping[str, Any]
) -> str:
    problems = "; ".join(_problems(checks, given))
    return f"{type(model).__name__}: {problems}"


def _problems(checks: Mapping[str, _Check], given: Mapping[str, Any]) -> Iterator[str]:
    """Describe each input that is not of its type."""
    extents: dict[str, int] = {}
    for name, check in checks.items():
        value, before = given[name], dict(extents)
        if check.accepts(value, extents):
            continue
        yield f"input {name!r}: expected {check.text}, got {_described(value)}" + (
            _remedy(check, value, before)
        )


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{dtypes.name_of(value.dtype)}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array {value.dtype}{list(value.shape)}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _remedy(check: _Check, value: Any, extents: Mapping[str, int]) -> str:
    """What helps, in parentheses; "" where nothing is to be said."""
    name = check.name
    if not isinstance(value, Tensor):
        return "" if value is None else f" (pass burn.tensor({name}))"
    if value.dtype != check.dtype:
        return f" (cast it: {name}.cast(burn.{dtypes.name_of(check.dtype)}))"
    if check.rank != len(value.shape):
        return ""
    for axis, symbol in check.named:
        if symbol in extents and value.shape[axis] != extents[symbol]:
            return f" ({symbol} is {extents[symbol]} in an input before it)"
    return " (fixed extents are the file's; import it with --shape for others)"
