"""Types of non-tensor values: Python lists, dicts, and optional values.

They have a dtype and no shape, like a tensor of unknown rank, so that code for tensors
ignores them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from burn import dtypes
from burn.dtypes import DType
from burn_ir.dim import Dim, Poly, same, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.types import Type, join

__all__ = [
    "AnyType",
    "MapType",
    "OptionalType",
    "SequenceType",
    "either",
    "kind_of",
    "map_of",
    "optional_of",
    "python_type",
    "sequence_of",
    "widen",
]

#: The parameter type of an ``infer`` for an operand of any kind.
AnyType = Type

_UNKNOWN = Type(dtypes.float32)


@dataclass(frozen=True)
class SequenceType(Type):
    """A Python list whose items are of the type ``element``."""

    element: Type = field(default=_UNKNOWN)

    @property
    def name(self) -> str:
        return f"list[{self.element.name}]"


@dataclass(frozen=True)
class OptionalType(Type):
    """A value of the type ``element``, or None."""

    element: Type = field(default=_UNKNOWN)

    @property
    def name(self) -> str:
        return f"{self.element.name} | None"


@dataclass(frozen=True)
class MapType(Type):
    """A Python dict from ``key`` (int64 or string) to values of the type ``value``."""

    key: DType = field(default=dtypes.int64)
    value: Type = field(default=_UNKNOWN)

    @property
    def name(self) -> str:
        return f"dict[{dtypes.name_of(self.key)}, {self.value.name}]"


def sequence_of(element: Type) -> SequenceType:
    """Return the type of a list of ``element``."""
    return SequenceType(element.dtype, None, None, element.forget())


def optional_of(element: Type) -> OptionalType:
    """Return the type of ``element`` or None."""
    return OptionalType(element.dtype, None, None, element.forget())


def map_of(key: DType, value: Type) -> MapType:
    """Return the type of a dict from keys of dtype ``key`` to ``value``."""
    return MapType(value.dtype, None, None, key, value.forget())


def kind_of(type_: Type) -> str:
    """Return ``tensor``, ``sequence``, ``optional`` or ``map``."""
    return _kind(type(type_).__name__)


@cache
def _kind(name: str) -> str:
    return name.removesuffix("Type").lower() or "tensor"


def python_type(type_: Type | None) -> str:
    """Return the annotation for a type in source: ``Tensor``, ``list[Tensor]``."""
    if isinstance(type_, SequenceType):
        return f"list[{python_type(type_.element)}]"
    if isinstance(type_, OptionalType):
        return f"{python_type(type_.element)} | None"
    if isinstance(type_, MapType):
        key = "str" if type_.key == dtypes.string else "int"
        return f"dict[{key}, {python_type(type_.value)}]"
    return "Tensor"


def widen(a: Type, b: Type) -> Type:
    """Return the type of a loop-carried value that changes from ``a`` to ``b``.

    Dimensions that change get a fresh symbol. Returns ``a`` itself if ``b`` adds
    nothing.

    Raises:
        InvalidOperand: the dtypes or kinds differ.
    """
    if isinstance(a, OptionalType) and not isinstance(b, OptionalType):
        b = optional_of(b)
    if isinstance(b, OptionalType) and not isinstance(a, OptionalType):
        return optional_of(widen(a, b.element))
    if type(a) is not type(b) or a.dtype != b.dtype:
        raise InvalidOperand(
            f"expected one type in every round, got {a.name}, {b.name}"
        )
    if isinstance(a, SequenceType | OptionalType) and isinstance(b, type(a)):
        element = widen(a.element, b.element)
        if element is a.element:
            return a
        return (sequence_of if isinstance(a, SequenceType) else optional_of)(element)
    if a.shape is None or isinstance(a, MapType):
        return a
    if b.shape is None or len(a.shape) != len(b.shape):
        return Type(a.dtype, None)
    shape = tuple(_either_dim(x, y) for x, y in zip(a.shape, b.shape, strict=True))
    return (
        a
        if all(x is y for x, y in zip(shape, a.shape, strict=True))
        else Type(a.dtype, shape)
    )


def either(a: Type, b: Type) -> Type:
    """Return the common type of values of type ``a`` and of type ``b``.

    Raises:
        InvalidOperand: no value could be both: they differ in dtype or kind.
    """
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        sides = [t.element if isinstance(t, OptionalType) else t for t in (a, b)]
        return optional_of(either(*sides))
    if type(a) is not type(b):
        raise InvalidOperand(f"expected one type, got {a.name} and {b.name}")
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return sequence_of(either(a.element, b.element))
    return a if isinstance(a, MapType) else _either_tensor(a, b)


def _either_tensor(a: Type, b: Type) -> Type:
    """Return ``join`` with a fresh symbol for each dimension that may differ."""
    joined = join(a, b)
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return joined
    try:
        pairs = zip(a.shape, b.shape, strict=True)
        shape = tuple(x if _is_same(x, y) else unnamed() for x, y in pairs)
    except Undecided:  # called outside of type inference
        return joined
    return Type(a.dtype, shape)


def _is_same(a: Dim, b: Dim) -> bool:
    try:
        return same(a, b)
    except Undecided:
        return False


def _either_dim(a: int | Poly, b: int | Poly) -> int | Poly:
    if isinstance(a, Poly) and str(a).startswith("?") and str(a)[1:].isdigit():
        return a
    try:
        return a if same(a, b) else unnamed()
    except Undecided:
        return unnamed()
