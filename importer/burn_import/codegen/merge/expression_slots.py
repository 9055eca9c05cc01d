"""Paths to operands in a body, and the values there in several bodies."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np

from burn.primitive import Primitive
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.trace import Apply, Block, Statement, Symbol
from burn_ir.dim import Dim

#: The path of an operand in the first body: a statement, then indices or names.
Place = tuple[int | str, ...]
#: Operands that are dimensions, or widths of paddings, and may differ, by primitive and
#: position.
EXTENTS = frozenset(
    {
        *(("reshape", 1), ("expand", 1), ("tile", 1), ("split", 1), ("pad", 1)),
        ("resize", "sizes"),
    }
)
#: Operands that may differ if they follow from other numbers of the classes.
FOLLOWING = frozenset({("arange", 0), ("arange", 1), ("full", 0), ("getitem", 1)})
#: Window options that may differ, as layers take them as arguments.
WINDOWS = frozenset(
    {"kernel_size", "stride", "padding", "dilation", "groups", "output_padding"}
)


#: The value at an operand path that a body does not have.
MISSING: Any = object()


class DifferError(Exception):
    """Two bodies cannot be unified."""


@dataclass(frozen=True)
class Quotient:
    """A dimension of the first body, divided by a number of each body."""

    dividend: Dim
    divisors: tuple[Any, ...]


def can_infer(trace: FunctionTrace, operand_path: Place) -> bool:
    """Return whether an operand is a dimension that ``reshape`` can infer."""
    if not isinstance(operand_path[0], int) or len(operand_path) != 3:
        return False
    statement = trace.body.statements[operand_path[0]]
    if not isinstance(statement, Apply) or statement.primitive.name != "reshape":
        return False
    shape = statement.args[1]
    return isinstance(shape, tuple | list) and -1 not in shape


def may_be_given(trace: FunctionTrace, operand_path: Place) -> bool:
    """Return whether an integer may become a constructor argument."""
    if not isinstance(operand_path[0], int):
        return False
    statement = trace.body.statements[operand_path[0]]
    assert isinstance(statement, Apply)
    name = operand_path[1]
    if name in WINDOWS or (statement.primitive.name, name) in EXTENTS:
        return True
    return must_follow(trace, operand_path)


def must_follow(trace: FunctionTrace, operand_path: Place) -> bool:
    """Return whether an integer may differ only if it follows from other numbers.

    Bounds of slices do, but no indices.
    """
    if not isinstance(operand_path[0], int):
        return False
    statement = trace.body.statements[operand_path[0]]
    if not isinstance(statement, Apply):
        return False
    if (statement.primitive.name, operand_path[1]) not in FOLLOWING:
        return False
    value: Any = statement.args
    for index in operand_path[1:-1]:
        items = items_of(value)
        value = None if items is None else items[int(index)]
    return statement.primitive.name != "getitem" or isinstance(value, slice)


def is_inside(operand_path: Place) -> bool:
    """Return whether an operand path is inside a loop."""
    return isinstance(operand_path[0], str) and operand_path[0] != "result"


def items_of(value: Any) -> Sequence[Any] | None:
    """Return the items of a list, a tuple or a slice, else None."""
    if isinstance(value, slice):
        return (value.start, value.stop, value.step)
    return value if isinstance(value, list | tuple) else None


def makers(block: Block) -> dict[Symbol, tuple[int | str, Statement]]:
    return {
        target: (number, statement)
        for number, statement in enumerate(block.statements)
        for target in statement.targets
    }


def pad_arguments(
    primitive: Primitive[..., Any], args: tuple[Any, ...], length: int
) -> list[Any]:
    """Return ``args`` extended by default values to ``length``."""
    declared = parameters(primitive)[len(args) : length]
    if len(args) + len(declared) < length:
        raise DifferError
    if any(parameter.default is Parameter.empty for parameter in declared):
        raise DifferError
    return [*args, *(parameter.default for parameter in declared)]


def equal(values: Sequence[Any]) -> bool:
    first = values[0]
    if isinstance(first, np.ndarray):
        return all(np.array_equal(first, value) for value in values)
    return all(type(v) is type(first) and bool(v == first) for v in values)
