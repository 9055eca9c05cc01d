"""Helpers for the declarations of several families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.dim import Dim, Poly, exact_div, same, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.static import Value, static_dims, static_ints
from burn_ir.types import Type, is_unnamed

#: The dtype for each ``TensorProto.DataType``, as in the attribute of ``EyeLike``.
ELEMENT_TYPES: dict[int, DType] = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    8: dtypes.string,
    9: dtypes.bool_,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    14: dtypes.complex64,
    15: dtypes.complex128,
    16: dtypes.bfloat16,
    17: dtypes.float8_e4m3fn,
    18: dtypes.float8_e4m3fnuz,
    19: dtypes.float8_e5m2,
    20: dtypes.float8_e5m2fnuz,
    21: dtypes.uint4,
    22: dtypes.int4,
    23: dtypes.float4_e2m1fn,
    24: dtypes.float8_e8m0fnu,
    25: dtypes.uint2,
    26: dtypes.int2,
}

#: The number of each dtype, the inverse of ``ELEMENT_TYPES``.
ELEMENT_NUMBERS: dict[DType, int] = {
    dtype: number for number, dtype in ELEMENT_TYPES.items()
}

#: Maximum number of sizes, axes or results of one operator.
MOST_DIMS = 4096


def element_type(number: int) -> DType:
    """Return the dtype of a number in ONNX's ``TensorProto.DataType``.

    Raises:
        InvalidOperand: it does not exist.
    """
    if number not in ELEMENT_TYPES:
        raise InvalidOperand(f"expected a tensor's data type, got {number}")
    return ELEMENT_TYPES[number]


def known_dims(operand: Type | None) -> tuple[Dim, ...] | None:
    """Return the contents of an integer operand as dimensions, or None.

    Raises:
        InvalidOperand: there are more than any tensor or node has.
    """
    if operand is None or operand.known is None:
        return None
    _check_count(operand.known.size)
    items = operand.known.ravel().tolist()
    return tuple(d if isinstance(d, Poly) else int(d) for d in items)


def known_ints(operand: Type | None) -> tuple[int, ...] | None:
    """Return the contents of an integer operand, None unless all are numbers."""
    dims = known_dims(operand)
    if dims is None or any(isinstance(d, Poly) for d in dims):
        return None
    return tuple(int(d) for d in dims)


def length(operand: Type) -> int:
    """Return the number of elements of a vector.

    Raises:
        InvalidOperand: it is no vector.
        Undecided: the number is unknown.
    """
    if operand.rank != 1:
        raise InvalidOperand(f"expected a vector, got {operand.name}")
    return int(operand.dims[0])


def differ(a: Dim, b: Dim) -> bool:
    """Return whether two dimensions are certainly different."""
    try:
        return not same(a, b)
    except Undecided:
        return False


def are_unequal_numbers(a: Dim | None, b: Dim | None) -> bool:
    """Return whether two dimensions are different numbers; False if one is symbolic."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def present_operands(*operands: Value) -> tuple[Value, ...]:
    """Return ``operands`` without trailing omitted ones."""
    count = len(operands)
    while count and operands[count - 1] is None:
        count -= 1
    return operands[:count]


def unnamed_dims(count: int) -> tuple[Dim, ...]:
    """Return fresh dimensions that depend on the data.

    Raises:
        InvalidOperand: there are more than any tensor or node has.
    """
    _check_count(count)
    return tuple(unnamed() for _ in range(count))


def _check_count(count: int) -> None:
    if count > MOST_DIMS:
        raise InvalidOperand(f"expected at most {MOST_DIMS} extents, got {count}")


def ints_of(operand: Value) -> tuple[int, ...] | None:
    """Return the contents of an operand while lowering, None if unknown."""
    if operand is None:
        return None
    try:
        return static_ints(operand)
    except Undecided:
        return None


def dims_of(operand: Value) -> tuple[Dim, ...] | None:
    """Return the contents of an operand as :func:`ints_of`, but with symbols."""
    try:
        return static_dims(operand)
    except Undecided:
        return None


def run_of(
    numbers: Sequence[Dim], shape: tuple[Dim, ...] | None, axis: int
) -> slice | None:
    """Return the slice of ``axis`` that consecutive indices select, else None."""
    first, count = numbers[0] if numbers else None, len(numbers)
    extent = None if shape is None else shape[axis]
    if not isinstance(extent, int) or not isinstance(first, int):
        return None
    if list(numbers) != list(range(first, first + count)) or first < -extent:
        return None
    start = first + extent if first < 0 else first
    if start + count > extent:
        return None
    return slice(start or None, start + count if start + count < extent else None)


def size_of(operand: Value) -> Any:
    """Return an integer operand as a number or dimension, or as a tensor if unknown."""
    dims = dims_of(operand)
    return operand if dims is None or is_unnamed(dims[0]) else dims[0]


def shape_of(operand: Value) -> tuple[Dim, ...] | None:
    """Return the shape of an operand while lowering, None if its rank is unknown."""
    try:
        return tuple(operand.shape)
    except Undecided:
        return None


def axes_from(operand: Value, first: int) -> tuple[int, ...]:
    """Return all axes from ``first`` on, while lowering.

    Raises:
        Undecided: ``first`` counts from the front, and the rank is not known.
    """
    shape = shape_of(operand)
    if shape is None and first < 0:
        return tuple(range(first, 0))
    rank = len(operand.shape)
    return tuple(range(first % rank, rank))


def over_axes_from(operand: Value, first: int, reduce: Callable[..., Value]) -> Value:
    """Return ``reduce`` over all axes from ``first`` on, kept with size 1.

    If the rank is unknown, they are flattened and counted at run time.
    """
    try:
        return reduce(operand, axes_from(operand, first), keepdims=True)
    except Undecided:
        extents = ops.shape(operand)
        ones = ops.ones_like(extents[first:])
        total = reduce(operand.flatten(first), -1)
        return total.reshape(ops.concat([extents[:first], ones]))


def one_or_all(axes: Sequence[int]) -> int | tuple[int, ...]:
    """Return a single axis as an integer, several as a tuple."""
    return int(axes[0]) if len(axes) == 1 else tuple(axes)


def writable(dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """Return the ``dims`` of a reshape without unnamed dimensions.

    A single unnamed one becomes -1; with more, returns None.
    """
    nameless = [is_unnamed(d) for d in dims]
    if not any(nameless):
        return tuple(dims)
    if sum(nameless) > 1 or -1 in dims or 0 in dims:
        return None
    return tuple(-1 if hidden else d for d, hidden in zip(dims, nameless, strict=True))


def resolve(shape: Sequence[Dim], data: Type, allow_zero: bool) -> tuple[Dim, ...]:
    """Return the result shape of a reshape to ``shape``, with 0 and -1 filled in.

    Raises:
        InvalidOperand: the elements of ``data`` do not fit ``shape``.
    """
    dims = list(shape)
    if sum(d == -1 for d in dims) > 1:
        raise InvalidOperand(f"expected at most one -1, got {shown(dims)}")
    for axis, dim in enumerate(dims):
        if dim == 0 and not allow_zero:
            dims[axis] = _kept_dim(data, axis)
    if data.shape is None:
        return tuple(unnamed() if d == -1 else d for d in dims)
    total, rest = _cancel(data.shape, [d for d in dims if d != -1])
    if -1 in dims:
        dims[dims.index(-1)] = _quotient(total, rest, data, shape)
    elif are_unequal_numbers(total, rest) and not {0} & {*dims, *data.shape}:
        raise InvalidOperand(
            f"expected as many elements as {data.name} has, got {shown(shape)}"
        )
    return tuple(dims)


def _kept_dim(data: Type, axis: int) -> Dim:
    if data.shape is None:
        return unnamed()
    if axis >= len(data.shape):
        raise InvalidOperand(f"expected 0 only where {data.name} has an axis")
    return data.shape[axis]


def _cancel(left: Sequence[Dim], right: Sequence[Dim]) -> tuple[Dim, Dim]:
    """Return both products without common dimensions; a 0 gives 0."""
    rest = list(right)
    remaining = []
    for dim in left:
        if dim in rest:
            rest.remove(dim)
        else:
            remaining.append(dim)
    return prod(remaining), prod(rest)


def _quotient(total: Dim, rest: Dim, data: Type, shape: Sequence[Dim]) -> Dim:
    if isinstance(total, int) and isinstance(rest, int):
        if rest == 0 or total % rest:
            raise InvalidOperand(
                f"expected elements of {data.name} to fill {shown(shape)}"
            )
        return total // rest
    quotient = exact_div(total, rest)
    return unnamed() if quotient is None else quotient


def shown(dims: Sequence[object]) -> str:
    """Return dimensions as text for an error message: ``[batch, 3]``."""
    return f"[{', '.join(map(str, dims))}]"
