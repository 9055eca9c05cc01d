"""Classes of fields, for modules that the first calls of a compiled function import.

A data class generates the source of its methods and compiles it, which takes half a
millisecond for each class in every process; the first call of a small model takes ten.
The methods of a :class:`Struct` are inherited instead.
"""

from typing import Any, ClassVar, TypeVar, dataclass_transform

S = TypeVar("S", bound="_Fields")


class _Fields:
    """The methods of classes whose annotated names are fields, in order."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)
        cls._names = frozenset(cls._fields)
        cls._required = frozenset([n for n in cls._fields if not hasattr(cls, n)])

    def __init__(self, *args: Any, **named: Any) -> None:
        values = self.__dict__
        values.update(zip(self._fields, args, strict=False))
        if not named and len(args) == len(self._fields):
            return
        values.update(named)
        is_complete = self._required <= values.keys() <= self._names
        if not is_complete or len(values) != len(args) + len(named):
            raise TypeError(
                f"{type(self).__name__} has the fields {', '.join(self._fields)}; "
                f"got {len(args)} values, and by name {', '.join(named) or 'none'}"
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({shown})"


@dataclass_transform(eq_default=False)
class Struct(_Fields):
    """The base of a class whose annotated names are its fields, in order.

    A value in the class body is the default of a field. All instances share it, so it
    must be immutable. Instances are compared by identity.
    """


@dataclass_transform(frozen_default=True)
class FrozenStruct(_Fields):
    """An immutable :class:`Struct`, compared and hashed by its fields."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to {type(self).__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {type(self).__name__}.{name}")

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._fields])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenStruct) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


def replace(struct: S, **changes: Any) -> S:
    """Return a copy of ``struct`` with other values of some fields.

    Raises:
        TypeError: it has no such field.
    """
    kind, values = type(struct), struct.__dict__
    if not changes.keys() <= kind._names:
        raise TypeError(f"{kind.__name__} has the fields {', '.join(kind._fields)}")
    copy = kind.__new__(kind)
    # Cached properties are left out, since they may depend on the changes.
    copy.__dict__.update({n: values[n] for n in kind._fields if n in values}, **changes)
    return copy
