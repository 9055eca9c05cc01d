"""Symbolic dimensions of several bodies: equal, inferred, or a multiple of a number."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from burn_import.codegen.merge.expression_slots import (
    MISSING,
    DifferError,
    Place,
    Quotient,
    can_infer,
)
from burn_import.codegen.merge.unified_body import Body, Union
from burn_import.tracing.trace import Apply
from burn_ir.dim import Dim, Poly

#: A parameter and one of its axes.
Origin = tuple[int, int]


def check_extents(
    union: Union, bodies: Sequence[Body], rows: Mapping[Place, tuple[Any, ...]]
) -> None:
    """Check the dimensions at each operand path; extend ``union`` where they differ.

    They match if they are one dimension of one parameter. A quotient of one by a
    number per body needs the number, and ``reshape`` infers one dimension.

    Raises:
        DifferError: some dimensions neither match nor can be inferred.
    """
    for operand_path, row in rows.items():
        if _origin(union, bodies, row, _is_equal) is not None:
            continue
        quotient = _quotient(union, bodies, row)
        if quotient is not None:
            union.quotients[operand_path] = quotient
            continue
        around = {p for p in union.inferred if p[:-1] == operand_path[:-1]}
        if around or not can_infer(bodies[0].trace, operand_path):
            raise DifferError
        union.inferred.add(operand_path)


def implied_extent(
    number: int | str, calls: Sequence[Apply]
) -> Iterator[tuple[Place, int]]:
    """Yield the extent that reshapes of all bodies infer, if it is one number."""
    if not isinstance(number, int) or calls[0].primitive.name != "reshape":
        return
    shape = calls[0].args[1]
    if not isinstance(shape, tuple | list) or -1 not in shape:
        return
    axis = shape.index(-1)
    types = [call.targets[0].type for call in calls]
    extents = {
        None if one is None else (one.shape or {axis: None})[axis] for one in types
    }
    extent = extents.pop()
    if not extents and isinstance(extent, int):
        yield (number, 1, axis), extent


def _origin(
    union: Union,
    bodies: Sequence[Body],
    row: Sequence[Any],
    fits: Callable[[Dim, Any], int],
) -> Origin | None:
    """Return the parameter and axis that ``fits`` the dimensions of all bodies.

    The first body reads its dimension from the first one that fits.
    """
    pairs = [(n, value) for n, value in enumerate(row) if value is not MISSING]
    first, value = pairs[0]
    dims = _dims(union, bodies, first)
    at = next((at for at, dim in dims if fits(dim, value)), None)
    if at is None:
        return None
    for number, value in pairs[1:]:
        dim = dict(_dims(union, bodies, number)).get(at)
        if dim is None or not fits(dim, value):
            return None
    return at


def _quotient(
    union: Union, bodies: Sequence[Body], row: Sequence[Any]
) -> Quotient | None:
    """Return the dimensions as those of a parameter divided by a number per body."""
    at = _origin(union, bodies, row, _units)
    if at is None or row[0] is MISSING:
        return None
    numbers = tuple(
        (
            MISSING
            if value is MISSING
            else _units(dict(_dims(union, bodies, number))[at], value)
        )
        for number, value in enumerate(row)
    )
    if 1 in numbers:  # the dimension itself is read in some other way
        return None
    return Quotient(row[0] * numbers[0], numbers)


def _dims(
    union: Union, bodies: Sequence[Body], number: int
) -> Iterator[tuple[Origin, Dim]]:
    """Yield each dimension of the parameters of one body."""
    for index, places in enumerate(union.parameters):
        own = places[number]
        value_type = None if own is None else bodies[number].trace.parameters[own].type
        for axis, dim in enumerate((value_type.shape if value_type else None) or ()):
            yield (index, axis), dim


def _is_equal(dim: Dim, value: Any) -> int:
    """Return whether two symbolic dimensions are equal."""
    return int(isinstance(dim, Poly) and isinstance(value, Poly) and dim == value)


def _units(dim: Dim, value: Any) -> int:
    """Return the number of times that ``value`` is in ``dim``; 0 if it is not."""
    if not isinstance(dim, Poly) or not isinstance(value, Poly):
        return 0
    if len(dim.terms) != 1 or len(value.terms) != 1:
        return int(dim == value)
    units = dim.terms[0][1] // value.terms[0][1]
    return units if units * value == dim else 0
