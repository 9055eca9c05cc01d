"""Input declarations of standalone modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from burn.dtypes import name_of
from burn_import.standalone.thin.tensor import Tensor


class InputError(TypeError, ValueError):
    """Inputs of a model that are not as declared; all of them are listed."""


def check_inputs(**types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the inputs of a ``__call__`` method, which are checked in every call.

    A type is written ``"float32[batch, 3, 224, 224]"``: a dtype and the extents. A
    number is a fixed extent. Extents of one name must be equal in all inputs. Any other
    expression (``?``, ``2 * batch``) accepts every extent, and ``[...]`` every shape.
    ``"list[T]"`` declares a list, ``"dict[K, V]"`` a dict, and ``"T | None"`` an input
    that may be None, as does a parameter whose default is None.

    The method raises ``InputError`` with a line for each input of another type.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        names = [parameter.name for parameter in parameters]
        optional = {p.name for p in parameters if p.default is None}

        @wraps(function)
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            arguments = {**dict(zip(names, args, strict=False)), **kwargs}
            extents: dict[str, int] = {}
            problems = [
                f"{type(self).__name__}: input {name!r}: expected {types[name]}, "
                f"got {_describe(name, value)}"
                for name, value in arguments.items()
                if name in types and not (value is None and name in optional)
                if not _accepts(types[name], value, extents)
            ]
            if problems:
                raise InputError("\n".join(problems))
            return function(self, *args, **kwargs)

        return call

    return declare


def _accepts(kind: str, value: Any, extents: dict[str, int]) -> bool:
    """Return whether ``value`` is of a declared type; adds its named extents."""
    if kind.endswith(" | None"):
        return value is None or _accepts(kind[:-7], value, extents)
    if kind.startswith("list["):
        is_list = isinstance(value, list | tuple)
        return is_list and all(_accepts(kind[5:-1], item, {}) for item in value)
    if kind.startswith("dict["):
        return isinstance(value, Mapping)
    dtype, _, shape = kind[:-1].partition("[")
    if not isinstance(value, Tensor) or name_of(value.dtype) != dtype:
        return False
    expected = shape.split(", ") if shape else []
    if shape != "..." and len(expected) != value.ndim:
        return False
    for symbol, size in zip(expected, value.shape, strict=False):
        if symbol.isdecimal() and int(symbol) != size:
            return False
        if symbol.isidentifier() and extents.setdefault(symbol, size) != size:
            return False
    return True


def _describe(name: str, value: Any) -> str:
    """The dtype and shape of a tensor or array, or the class of anything else."""
    if not hasattr(value, "dtype"):
        return type(value).__name__
    shown = f"{name_of(value.dtype)}[{', '.join(map(str, value.shape))}]"
    is_tensor = isinstance(value, Tensor)
    return shown if is_tensor else f"the NumPy array {shown}; pass tensor({name})"
