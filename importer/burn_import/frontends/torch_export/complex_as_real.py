"""Complex numbers as pairs of real ones: a last axis of 2.

A value of complex dtype stands for a real tensor with that axis after its ``dims``.
Only rules for complex numbers see such values; nodes have real ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burn.dtypes import DType
from burn_import.frontends.torch_export.builder import (
    FLOAT32,
    FLOAT64,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_ir.dim import Dim
from burn_ir.types import Array, Type

_PARTS: Mapping[DType, DType] = {
    np.dtype("complex64"): FLOAT32,
    np.dtype("complex128"): FLOAT64,
}


def is_complex(x: object) -> bool:
    """Return whether an argument is, or has among its items, complex tensors."""
    if isinstance(x, list | tuple):
        return any(is_complex(item) for item in x)
    return isinstance(x, Value) and x.dtype in _PARTS


def part_dtype(dtype: DType) -> DType:
    """Return the dtype of a complex dtype's parts; other dtypes unchanged."""
    return _PARTS.get(dtype, dtype)


def complex_dtype(dtype: DType) -> DType:
    """Return the dtype of complex numbers whose parts promote to ``dtype``."""
    if dtype in _PARTS:
        return dtype
    return np.dtype("complex128" if dtype == FLOAT64 else "complex64")


def stored_type(dtype: DType, dims: tuple[Dim, ...] | None) -> Type:
    """Return the graph type of a tensor, with pairs for complex numbers."""
    if dtype not in _PARTS or dims is None:
        return Type(dtype, dims)
    return Type(_PARTS[dtype], (*dims, 2))


def stored_array(array: Array) -> Array:
    """Return an array with pairs for complex numbers."""
    if array.dtype not in _PARTS:
        return array
    parts = np.ascontiguousarray(array).view(_PARTS[array.dtype])
    return parts.reshape(*array.shape, 2)


def to_pairs(x: Value) -> Value:
    """Return the pairs of a complex tensor as a real tensor."""
    if x.dtype not in _PARTS:
        return x
    dims = None if x.dims is None else (*x.dims, 2)
    return replace(x, dtype=_PARTS[x.dtype], dims=dims, layout=None)


def reals(g: Builder) -> Builder:
    """Return a builder for intermediate real results."""
    results = [replace(x, dtype=part_dtype(x.dtype)) for x in g.results]
    return replace(g, results=results)


def viewed_as(x: Value, like: Value) -> Value:
    """Return ``x``, complex numbers or their pairs, in the form that ``like`` has."""
    if is_complex(x) == is_complex(like):
        return x
    if is_complex(x):
        return to_pairs(x)
    dims = None if x.dims is None else x.dims[:-1]
    return replace(x, dtype=complex_dtype(x.dtype), dims=dims, layout=None)


def parts(g: Builder, x: Operand) -> tuple[Operand, Operand]:
    """Return the real and the imaginary part; the latter is None for real operands."""
    if isinstance(x, complex):
        return x.real, x.imag
    if not isinstance(x, Value) or x.dtype not in _PARTS:
        return x, None
    of, pairs = reals(g), to_pairs(x)
    halves = [of.op("Gather", pairs, of.constant(i), axis=-1) for i in (0, 1)]
    a, b = (replace(part, dtype=pairs.dtype, dims=x.dims) for part in halves)
    return a, b


def join_pairs(g: Builder, real: Value, imag: Value) -> Value:
    """Return the pairs of two parts of one shape."""
    of = reals(g)
    columns = [of.op("Unsqueeze", of.cast(x), [-1]) for x in (real, imag)]
    return of.op("Concat", *columns, axis=-1)


def as_pairs(g: Builder, x: Operand) -> Value:
    """Return an operand as pairs; real ones get an imaginary part of 0."""
    of = reals(g)
    if not isinstance(x, Value):
        number = complex(x or 0)
        return of.constant([number.real, number.imag], of.dtype)
    if x.dtype in _PARTS:
        pairs = to_pairs(x)
        return replace(of.cast(pairs), dims=pairs.dims)
    column = of.op("Unsqueeze", of.cast(x), [-1])
    padded = of.op("Pad", column, [0, 1], None, [-1])
    return replace(padded, dims=None if x.dims is None else (*x.dims, 2))


def column(g: Builder, x: Operand) -> Value:
    """Return a real operand that broadcasts to pairs."""
    of = reals(g)
    real = of.cast(x)
    return of.op("Unsqueeze", real, [-1]) if isinstance(x, Value) else real


def axes_of(x: Value, dim: Any) -> list[int]:
    """Return non-negative axes of a complex tensor; all of them by default."""
    axes: Sequence[int] = [dim] if isinstance(dim, int) else dim or range(x.rank)
    return [x.axis(axis) for axis in axes]


def count(g: Builder, extents: Sequence[int | Value]) -> int | Value:
    """Return the product of extents."""
    whole, total = g.at(INT64), 1
    rest: Value | None = None
    for extent in extents:
        if isinstance(extent, int):
            total *= extent
        else:
            rest = extent if rest is None else whole.op("Mul", rest, extent)
    if rest is None:
        return total
    return rest if total == 1 else whole.op("Mul", rest, total)
