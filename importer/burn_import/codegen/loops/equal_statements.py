"""Equal runs of statements: what makes two statements the same but for values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burn import Tensor
from burn_import.provenance.path_segments import Path
from burn_import.tracing.scalar_operands import number_in
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

#: Stands for a value that is compared by where it comes from.
_LEAF = "value"


@dataclass(frozen=True)
class Shape:
    """A statement without the values that flow into it, and these, in order."""

    key: Hashable
    leaves: tuple[Tensor, ...]
    #: The path of the module that it calls.
    path: Path = ()


def shape_of(statement: Statement) -> Shape | None:
    """What two rounds of a loop have in common in a statement; None of a block."""
    leaves: list[Tensor] = []
    count = len(statement.targets)
    if isinstance(statement, ModuleCall):
        key: Hashable = (count, _frozen(statement.args, leaves))
        if statement.visit:  # no step through the list that it stands in
            return Shape((key, statement.path), tuple(leaves))
        return Shape(key, tuple(leaves), statement.path)
    if isinstance(statement, Apply):
        static = tuple((k, _frozen(v, leaves)) for k, v in statement.static.items())
        args = _frozen(statement.args, leaves)
        return Shape((id(statement.primitive), count, args, static), tuple(leaves))
    return None


def _frozen(value: Any, leaves: list[Tensor]) -> Hashable:
    """``value`` as something to compare; tensors that flow go to ``leaves``."""
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
    """Whether equality is not identity: 0.0 is -0.0, and NaN is not itself."""
    return not isinstance(value, int) and hasattr(value, "__float__")


def _written(symbol: Symbol) -> Hashable:
    """The contents of an operand that is written out where it is used, else None."""
    known = symbol.known
    if known is None or (symbol.constant and number_in(symbol) is None):
        return None
    items = known.ravel().tolist() if known.dtype == object else known.tobytes()
    return str(known.dtype), known.shape, repr(items)


def rebuilt(
    statement: Apply | ModuleCall, leaves: Sequence[Tensor], targets: list[Symbol]
) -> Apply | ModuleCall:
    """``statement`` with other values in place of its leaves, making ``targets``."""
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
    """The place at which ``other`` has the number after that of ``one``.

    -1 if the paths are the same, None if they differ in another way.
    """
    if one == other:
        return -1
    if len(one) != len(other):
        return None
    places = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    a, b = one[places[0]], other[places[0]]
    numbers = len(places) == 1 and a.isdigit() and b.isdigit()
    return places[0] if numbers and int(b) == int(a) + 1 else None
