"""Comparison of statements up to the values that they read and define."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burn import Tensor
from burn_import.provenance.path_segments import Path
from burn_import.tracing.scalar_operands import number_in
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

#: Placeholder for a value that is compared by its producer.
_LEAF = "value"


@dataclass(frozen=True)
class Shape:
    """A key of a statement without its operand values, and those values in order."""

    key: Hashable
    leaves: tuple[Tensor, ...]
    #: The path of the called module.
    path: Path = ()


def shape_of(statement: Statement) -> Shape | None:
    """Return the comparison shape of a statement; None if it has blocks."""
    leaves: list[Tensor] = []
    count = len(statement.targets)
    if isinstance(statement, ModuleCall):
        key: Hashable = (count, _frozen(statement.args, leaves))
        if statement.visit:  # a visit does not step through its list
            return Shape((key, statement.path), tuple(leaves))
        return Shape(key, tuple(leaves), statement.path)
    if isinstance(statement, Apply):
        static = tuple((k, _frozen(v, leaves)) for k, v in statement.static.items())
        args = _frozen(statement.args, leaves)
        return Shape((id(statement.primitive), count, args, static), tuple(leaves))
    return None


def _frozen(value: Any, leaves: list[Tensor]) -> Hashable:
    """Return a hashable key of ``value``; computed tensors are added to ``leaves``."""
    if isinstance(value, Tensor):
        written = _written(value.data)
        if written is None:
            leaves.append(value)
            return _LEAF
        return written
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return kind, tuple(_frozen(item, leaves) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return "slice", tuple(_frozen(part, leaves) for part in parts)
    if isinstance(value, Hashable):
        return type(value).__name__, repr(value) if _is_float(value) else value
    return type(value).__name__, repr(value)


def _is_float(value: Any) -> bool:
    """Return whether a value is a float, for which 0.0 == -0.0 and NaN != NaN."""
    return not isinstance(value, int) and hasattr(value, "__float__")


def _written(symbol: Symbol) -> Hashable:
    """Return the contents of an operand that is emitted as a literal, else None."""
    contents = symbol.known
    if contents is None or (symbol.constant and number_in(symbol) is None):
        return None
    items = (
        contents.ravel().tolist() if contents.dtype == object else contents.tobytes()
    )
    return str(contents.dtype), contents.shape, repr(items)


def rebuilt(
    statement: Apply | ModuleCall, leaves: Sequence[Tensor], targets: list[Symbol]
) -> Apply | ModuleCall:
    """Return ``statement`` with other operands ``leaves`` and other ``targets``."""
    given = iter(leaves)
    if isinstance(statement, ModuleCall):
        args = _filled(statement.args, given)
        return replace(statement, args=args, targets=targets)
    static = {k: _filled(v, given) for k, v in statement.static.items()}
    args = _filled(statement.args, given)
    return replace(statement, args=args, static=static, targets=targets)


def _filled(value: Any, leaves: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(leaves) if _written(value.data) is None else value
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, leaves) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(_filled(part, leaves) for part in parts))
    return value


def varied(one: Path, other: Path) -> int | None:
    """Return the index at which the number in ``other`` follows that in ``one``.

    -1 if the paths are equal, None if they differ otherwise.
    """
    if one == other:
        return -1
    if len(one) != len(other):
        return None
    places = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    a, b = one[places[0]], other[places[0]]
    numbers = len(places) == 1 and a.isdigit() and b.isdigit()
    return places[0] if numbers and int(b) == int(a) + 1 else None
