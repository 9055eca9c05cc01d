"""Comparison of statements up to the values that they read and define."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn import Tensor, ops
from burn.dtypes import is_float
from burn_import.provenance.path_segments import Path
from burn_import.tracing.constructor_numbers import ParameterNumber
from burn_import.tracing.identifiers import literal
from burn_import.tracing.scalar_operands import number_in
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol
from burn_ir.dim import Dim, Poly

#: Placeholder for a value that is compared by its producer.
_LEAF = "value"


#: Placeholder for an integer that may depend on the number of the step.
_NUMBER = "number"
#: Largest integer that every float type represents, with all smaller ones.
LARGEST_FLOAT = 256


@dataclass(frozen=True)
class Shape:
    """A key of a statement without its operand values, and those values in order."""

    key: Hashable
    leaves: tuple[Tensor, ...]
    #: The path of the called module.
    path: Path = ()
    #: The integers of indices, slices and static arguments, and those in literal
    #: operands.
    numbers: tuple[int, ...] = ()
    #: The static argument of each of these, or "".
    arguments: tuple[str, ...] = ()


@dataclass
class _Operands:
    """The computed tensors and the integers among the operands of a statement."""

    leaves: list[Tensor] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def add(self, number: int, argument: str) -> None:
        """Add an integer of a static argument, or of another one: ""."""
        self.numbers.append(number)
        self.arguments.append(argument)


def shape_of(statement: Statement) -> Shape | None:
    """Return the comparison shape of a statement; None if it has blocks."""
    operands = _Operands()
    count = len(statement.targets)
    if isinstance(statement, ModuleCall):
        key: Hashable = (count, _frozen(statement.args, operands))
        leaves, numbers = tuple(operands.leaves), tuple(operands.numbers)
        if statement.visit:  # a visit does not step through its list
            return Shape((key, statement.path), leaves, (), numbers)
        return Shape(key, leaves, statement.path, numbers)
    if isinstance(statement, Apply):
        static = tuple(
            (k, _frozen(v, operands, is_spacing(k), k))
            for k, v in statement.static.items()
        )
        args = _frozen(statement.args, operands, is_index(statement))
        key = (id(statement.primitive), count, args, static)
        numbers, arguments = tuple(operands.numbers), tuple(operands.arguments)
        return Shape(key, tuple(operands.leaves), (), numbers, arguments)
    return None


def is_index(statement: Apply) -> bool:
    """Return whether the integers of a call select or add elements: ``x[:, 3]``."""
    return statement.primitive in (ops.getitem, ops.pad, ops.sequence_at)


def is_spacing(argument: str) -> bool:
    """Return whether the integers of a static argument may differ in equal steps."""
    return argument in ("stride", "dilation")


def _frozen(
    value: Any, operands: _Operands, indexed: bool = False, argument: str = ""
) -> Hashable:
    """Return a hashable key of ``value``; add tensors and integers to ``operands``."""
    if isinstance(value, Tensor):
        number = integer_in(value.data)
        if number is not None:
            operands.add(number, argument)
            return _NUMBER, str(value.data.dtype), value.data.shape
        written = _literal_contents(value.data)
        if written is None:
            operands.leaves.append(value)
            return _LEAF
        return written
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return kind, tuple(_frozen(item, operands, indexed, argument) for item in value)
    if isinstance(value, slice):
        return "slice", _frozen_slice(value, operands, indexed)
    if isinstance(value, ParameterNumber):
        return value.text
    if indexed and type(value) is int:
        operands.add(value, argument)
        return _NUMBER
    if isinstance(value, Hashable):
        return type(value).__name__, repr(value) if _is_float(value) else value
    return type(value).__name__, repr(value)


def _frozen_slice(value: slice, operands: _Operands, indexed: bool) -> Hashable:
    """Return the keys of the parts of a slice; ``[:3]`` is ``[0:3]``."""
    start = value.start
    if indexed and start is None and value.step is None and type(value.stop) is int:
        start = 0
    step = _frozen(value.step, operands)
    return (
        _frozen(start, operands, indexed),
        _frozen(value.stop, operands, indexed),
        step,
    )


def integer_in(symbol: Symbol) -> int | None:
    """Return the integer of a literal operand, or None for other operands.

    A small one may be the value of a float, which represents it exactly.
    """
    number = number_in(symbol)
    if number is None or isinstance(number, Poly | ParameterNumber | np.bool_):
        return None
    if is_float(number.dtype):
        is_exact = abs(number) <= LARGEST_FLOAT and number == int(number)
        is_exact = is_exact and not (number == 0 and np.signbit(number))
        return int(number) if is_exact else None
    return int(number)


def _is_float(value: Any) -> bool:
    """Return whether a value is a float, for which 0.0 == -0.0 and NaN != NaN."""
    return not isinstance(value, int) and hasattr(value, "__float__")


def _literal_contents(symbol: Symbol) -> Hashable:
    """Return the contents of an operand that is emitted as a literal, else None."""
    contents = symbol.known
    if contents is None or (symbol.constant and number_in(symbol) is None):
        return None
    if contents.dtype != object:
        return str(contents.dtype), contents.shape, repr(contents.tobytes())
    return "object", contents.shape, literal(contents.ravel().tolist())


def rebuilt(
    statement: Apply | ModuleCall,
    leaves: Sequence[Tensor],
    targets: list[Symbol],
    numbers: Sequence[Dim] = (),
) -> Apply | ModuleCall:
    """Return ``statement`` with other operands ``leaves`` and other ``targets``.

    ``numbers`` replaces its integers, if they depend on the number of the step.
    """
    filling = _Filling(iter(leaves), iter(numbers) if numbers else None)
    if isinstance(statement, ModuleCall):
        args = filling.fill(statement.args)
        return replace(statement, args=args, targets=targets)
    static = {k: filling.fill(v, is_spacing(k)) for k, v in statement.static.items()}
    args = filling.fill(statement.args, is_index(statement))
    return replace(statement, args=args, static=static, targets=targets)


@dataclass(frozen=True)
class _Filling:
    """The operands that replace those of a statement, in the order of its shape."""

    leaves: Iterator[Tensor]
    numbers: Iterator[Dim] | None

    def fill(self, value: Any, indexed: bool = False) -> Any:
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, list | tuple):
            return type(value)(self.fill(item, indexed) for item in value)
        if isinstance(value, slice):
            step = self.fill(value.step)
            start = value.start
            first = indexed and start is None and step is None
            if first and type(value.stop) is int:
                begin = self.number(0)
                start = None if type(begin) is int and begin == 0 else begin
            else:
                start = self.fill(start, indexed)
            return slice(start, self.fill(value.stop, indexed), step)
        if indexed and type(value) is int:
            return self.number(value)
        return value

    def tensor(self, value: Tensor) -> Tensor:
        number = integer_in(value.data)
        if number is not None:
            other = self.number(number)
            if not isinstance(other, Poly):
                return value
            contents = np.full(value.data.shape, other, object)
            type_ = value.data.type.with_known(contents)
            return Tensor(Symbol(type_), value.backend)
        return next(self.leaves) if _literal_contents(value.data) is None else value

    def number(self, value: int) -> Dim:
        return value if self.numbers is None else next(self.numbers)


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
