"""Input declarations: dtype and shape of each argument of a model's ``__call__``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np

from burn import dtypes
from burn.box import Box
from burn.dtypes import DType
from burn.tensor import Tensor, tensor

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
Method: TypeAlias = Callable[Concatenate[S, P], R]
#: The size of each named extent, and the input that it was read from.
Extents: TypeAlias = dict[str, tuple[int, str]]

_TENSOR = re.compile(r"(\w+)\[([^\[\]]*)\]")
_LIST = re.compile(r"list\[(.+)\]")
_MULTIPLE = re.compile(r"(?:([1-9]\d*) \* )?([^\W\d]\w*)")
_DICT = re.compile(r"dict\[\w+, .+\]")


class InputError(TypeError, ValueError):
    """The inputs of a model differ from their declaration; the message lists all."""


def check_inputs(**types: str) -> Callable[[Method[S, P, R]], Method[S, P, R]]:
    """Declare the inputs of a ``__call__`` method, which are checked in every call.

    A type is written ``"float32[batch, 3, 224, 224]"``: a dtype and the extents. A
    number is a fixed extent. Extents of one name must be equal in all inputs, and
    ``4 * height`` is a multiple of 4. Any other expression (``?``, ``past + length``)
    accepts every extent, and ``[...]`` every shape.
    ``"list[T]"`` declares a list, ``"dict[K, V]"`` a dict, and ``"T | None"`` an input
    that may be None, as does a parameter whose default is None.

    The types are the attribute ``input_types`` of the method, for tools.

    The method raises ``InputError`` if an input is no tensor, or has another dtype,
    rank or extent. The message has a line for each such input.

    Raises:
        ValueError: a type cannot be parsed, or the method has no such parameter.
    """

    def declare(function: Method[S, P, R]) -> Method[S, P, R]:
        kinds = _kinds(function, types)
        #: Shapes and dtypes of the last accepted call, which are those of most calls.
        accepted: list[tuple[Any, Any]] = []

        @wraps(function)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal accepted
            seen = accepted  # other threads may replace it meanwhile
            if seen and not kwargs and len(args) == len(seen):
                for value, (shape, dtype) in zip(args, seen):  # noqa: B905 faster
                    if type(value) is not Tensor:
                        break
                    data = value.data
                    if data.shape != shape or data.dtype is not dtype:
                        break
                else:
                    return function(self, *args)  # type: ignore[call-arg]
            _check(type(self), kinds, args, kwargs)
            accepted = [] if kwargs else _types_of(args)
            return function(self, *args, **kwargs)

        call.input_types = dict(types)  # type: ignore[attr-defined]
        return call

    return declare


def _check(
    cls: type,
    kinds: Mapping[str, _Kind],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Check the inputs of a call of an instance of ``cls``.

    Raises:
        InputError: they differ from their declaration.
    """
    extents: Extents = {}
    arguments = [*zip(kinds, args, strict=False), *kwargs.items()]
    for name, value in arguments:
        if name in kinds and not kinds[name].accepts(value, name, extents):
            _refuse(cls.__name__, kinds, args, kwargs)


def _types_of(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return shape and dtype of each tensor; empty if there are other values."""
    if not all(type(value) is Tensor for value in values):
        return []
    return [(value.data.shape, value.data.dtype) for value in values]


def tensor_type(text: str) -> tuple[DType, tuple[int | str, ...] | None]:
    """Return the dtype and the extents of a type such as ``"float32[batch, 3]"``.

    Symbolic extents are strings. The extents are None if every shape is accepted.

    Raises:
        ValueError: the text is not the type of a tensor.
    """
    kind = _parse(text)
    if not isinstance(kind, _Tensor):
        raise ValueError(f"expected the type of a tensor, got {text!r}")
    return kind.dtype, kind.shape


class _Kind:
    """The declared type of an input; this one accepts every value."""

    text = "any value"

    def accepts(self, value: Any, name: str, extents: Extents) -> bool:
        """Return whether ``value`` is of this type; add its named extents to
        ``extents``.
        """
        return True

    def hint(self, value: Any, name: str, extents: Extents) -> str:
        """Return advice on how to correct ``value``, which is not of this type, or
        "".
        """
        return ""


class _Tensor(_Kind):
    """A tensor of one dtype; ``shape`` is None if tensors of every shape are accepted.

    Each item of ``shape`` is an int, the name of an extent, a multiple of one, as
    ``4 * height``, or another expression, which is not checked.
    """

    def __init__(self, dtype: DType, shape: tuple[int | str, ...] | None) -> None:
        self.dtype, self.shape = dtype, shape
        self.rank = None if shape is None else len(shape)
        extents = [*enumerate(shape or ())]
        self.fixed = [(a, e) for a, e in extents if isinstance(e, int)]
        matches = [
            (a, _MULTIPLE.fullmatch(e)) for a, e in extents if isinstance(e, str)
        ]
        self.named = [(a, m[2], int(m[1] or 1)) for a, m in matches if m]
        shown = "..." if shape is None else ", ".join(map(str, shape))
        self.text = f"{dtypes.name_of(dtype)}[{shown}]"

    def accepts(self, value: Any, name: str, extents: Extents) -> bool:
        if type(value) is not Tensor:
            if not isinstance(value, Tensor | Box):
                return False
            value = value.held() if isinstance(value, Box) else value
        data = value.data
        shape = data.shape
        if data.dtype != self.dtype:
            return False
        if len(shape) != self.rank:
            return self.rank is None
        for axis, extent in self.fixed:
            if shape[axis] != extent:
                return False
        return self._accepts_named(shape, name, extents)

    def _accepts_named(
        self, shape: tuple[int, ...], name: str, extents: Extents
    ) -> bool:
        for axis, symbol, factor in self.named:
            size = shape[axis]
            if factor != 1:
                size, rest = divmod(size, factor)
                if rest:
                    return False
            if symbol not in extents:
                extents[symbol] = size, name
            elif extents[symbol][0] != size:
                return False
        return True

    def hint(self, value: Any, name: str, extents: Extents) -> str:
        if isinstance(value, np.ndarray | np.generic | list | tuple | int | float):
            other = "" if self.is_converted(value) else f", dtype={self.attribute}"
            return f"; pass burn.tensor({name}{other})"
        if not isinstance(value, Tensor | Box):
            return ""
        if value.dtype != self.dtype:
            strings = dtypes.string in (value.dtype, self.dtype)
            return "" if strings else f"; pass {name}.cast({self.attribute})"
        shape = value.shape
        if len(shape) != self.rank:
            return ""
        for axis, extent in self.fixed:
            if shape[axis] != extent:
                return (
                    f"; axis {axis} is fixed to {extent} by the model file or --shape"
                )
        return self.named_hint(shape, name, extents)

    def named_hint(self, shape: tuple[int, ...], name: str, extents: Extents) -> str:
        """Return advice on a named extent with two sizes, or that is no multiple."""
        for axis, symbol, factor in self.named:
            whole, rest = divmod(shape[axis], factor)
            if rest:
                return f"; axis {axis} has to be a multiple of {factor}"
            size, origin = extents.get(symbol, (whole, name))
            if size != whole:
                where = "another axis" if origin == name else f"input {origin!r}"
                return f"; {symbol} is {size} in {where}"
        return ""

    def is_converted(self, value: Any) -> bool:
        """Return whether ``burn.tensor(value)`` has this dtype."""
        try:
            dtype = value.dtype if hasattr(value, "dtype") else tensor(value).dtype
        except (ValueError, TypeError):  # a nested list of several lengths
            return True
        is_text = np.dtype(dtype).kind in "US"
        return bool(dtype == self.dtype or (is_text and self.dtype == dtypes.string))

    @property
    def attribute(self) -> str:
        """Return the source of the dtype: ``burn.float32``."""
        name = dtypes.name_of(self.dtype)
        return "burn.bool_" if name == "bool" else f"burn.{name}"


class _List(_Kind):
    """A list of values of one type, whose named extents may differ between items."""

    def __init__(self, element: _Kind) -> None:
        self.element = element
        self.text = f"list[{element.text}]"

    def accepts(self, value: Any, name: str, extents: Extents) -> bool:
        return isinstance(value, list | tuple) and all(
            self.element.accepts(item, name, {}) for item in value
        )


class _Dict(_Kind):
    """A dict; keys and values are not checked."""

    def __init__(self, text: str) -> None:
        self.text = text

    def accepts(self, value: Any, name: str, extents: Extents) -> bool:
        return isinstance(value, Mapping)


class _Optional(_Kind):
    """A value of a type, or None."""

    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        self.text = f"{kind.text} | None"

    def accepts(self, value: Any, name: str, extents: Extents) -> bool:
        return value is None or self.kind.accepts(value, name, extents)

    def hint(self, value: Any, name: str, extents: Extents) -> str:
        return self.kind.hint(value, name, extents)


def _kinds(function: Callable[..., Any], types: Mapping[str, str]) -> dict[str, _Kind]:
    """Return the type of each parameter of a method but the first.

    Raises:
        ValueError: a type cannot be parsed, or is for no parameter.
    """
    parameters = list(inspect.signature(function).parameters.values())[1:]
    unknown = types.keys() - {parameter.name for parameter in parameters}
    if unknown:
        name = sorted(unknown)[0]
        raise ValueError(f"{function.__qualname__} has no parameter {name!r}")
    kinds: dict[str, _Kind] = {}
    for parameter in parameters:
        text = types.get(parameter.name)
        kind = _Kind() if text is None else _parse(text)
        kinds[parameter.name] = _Optional(kind) if parameter.default is None else kind
    return kinds


def _parse(text: str) -> _Kind:
    """Return the type that ``text`` declares.

    Raises:
        ValueError: the text is not a type.
    """
    if text.endswith(" | None"):
        return _Optional(_parse(text.removesuffix(" | None")))
    if match := _LIST.fullmatch(text):
        return _List(_parse(match[1]))
    if _DICT.fullmatch(text):
        return _Dict(text)
    match = _TENSOR.fullmatch(text)
    dtype = match and getattr(dtypes, match[1].replace("bool", "bool_"), None)
    if not match or not isinstance(dtype, np.dtype):
        raise ValueError(f"expected a type as float32[batch, 3, 8, 8], got {text!r}")
    if match[2] == "...":
        return _Tensor(dtype, None)
    extents = [extent.strip() for extent in match[2].split(",") if match[2]]
    return _Tensor(dtype, tuple(int(e) if e.isdecimal() else e for e in extents))


def _refuse(
    model: str,
    kinds: Mapping[str, _Kind],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> NoReturn:
    """Raise an error with a line for each input that is not of its type.

    Raises:
        InputError: always.
    """
    extents: Extents = {}
    arguments = {**dict(zip(kinds, args, strict=False)), **kwargs}
    wrong = [
        (name, kind, arguments[name])
        for name, kind in kinds.items()
        if name in arguments and not kind.accepts(arguments[name], name, extents)
    ]
    lines = [
        f"{model}: input {name!r}: expected {kind.text}, got {_describe(value)}"
        f"{kind.hint(value, name, extents)}"
        for name, kind, value in wrong
    ]
    raise InputError("\n".join(lines))


def _describe(value: Any) -> str:
    """Return a short description of a value's type, with dtype and shape if present."""
    if isinstance(value, list | tuple):
        nested = (list, tuple)
        items = [type(v).__name__ if type(v) in nested else _describe(v) for v in value]
        of = " and ".join(list(dict.fromkeys(items))[:3])
        return f"a {type(value).__name__} of {of}" if of else "an empty list"
    if value is None:
        return "None"
    if not isinstance(value, Tensor | Box | np.ndarray):
        name = f"{type(value).__module__}.{type(value).__name__}"
        return name.removeprefix("builtins.")
    shown = f"{dtypes.name_of(value.dtype)}[{', '.join(map(str, value.shape))}]"
    return f"the NumPy array {shown}" if isinstance(value, np.ndarray) else shown
