"""Static types of values: dtype, shape, and known contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import gcd
from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_ir.dim import LARGEST, Dim, Poly, lower_bound, maximum, same, symbol
from burn_ir.errors import InvalidOperand, Undecided

Array = np.ndarray[Any, Any]

#: Prefix of symbols for broadcast dimensions.
JOINT = "?|"


@dataclass(frozen=True)
class Type:
    """The type of a tensor.

    ``shape`` is None if the rank is unknown. ``known`` holds the contents if they
    are known: a constant's array, or integers and dimensions from shape arithmetic
    (an object array if there are dimensions). Equality ignores it.
    """

    dtype: DType
    shape: tuple[Dim, ...] | None = None
    known: Array | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(array: Array) -> Type:
        """Return the type of a constant."""
        return Type(array.dtype, array.shape, array)

    @property
    def rank(self) -> int:
        """The number of axes.

        Raises:
            Undecided: it is unknown.
        """
        return len(self.dims)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions.

        Raises:
            Undecided: the rank is unknown.
        """
        if self.shape is None:
            raise Undecided("the rank is not known")
        return self.shape

    @property
    def name(self) -> str:
        """The type as text: ``float32[batch, 3, 8]``."""
        if self.shape is None:
            return f"{dtypes.name_of(self.dtype)}[...]"
        extents = ", ".join("?" if is_unnamed(d) else str(d) for d in self.shape)
        return f"{dtypes.name_of(self.dtype)}[{extents}]"

    def axes(self, axes: int | Sequence[int]) -> tuple[int, ...]:
        """Return ``axes`` as non-negative integers.

        Raises:
            InvalidOperand: one of them is out of range.
            Undecided: the rank is not known.
        """
        numbers = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
        for axis in numbers:
            if not -self.rank <= axis < self.rank:
                raise InvalidOperand(
                    f"expected an axis in [{-self.rank}, {self.rank}), got {axis}"
                )
        return tuple(int(axis) % self.rank for axis in numbers)

    def with_shape(self, shape: Sequence[Dim] | None) -> Type:
        """Return this dtype with another shape and unknown contents."""
        return Type(self.dtype, None if shape is None else tuple(shape))

    def with_dtype(self, dtype: DType) -> Type:
        """Return this shape with another dtype and unknown contents."""
        return Type(dtype, self.shape)

    def with_known(self, contents: Array | None) -> Type:
        """Return this type with contents."""
        return replace(self, known=contents)

    def forget(self) -> Type:
        """Return this type with unknown contents."""
        return self if self.known is None else replace(self, known=None)


def is_unnamed(dim: Dim) -> bool:
    """Return whether ``dim`` contains a symbol that no input has."""
    return isinstance(dim, Poly) and "?" in str(dim)


def is_from_data(dim: Dim) -> bool:
    """Return whether ``dim`` contains a symbol of ``unnamed()``."""
    return is_unnamed(dim) and re.search(r"\?\d", str(dim)) is not None


def broadcast(*types: Type) -> tuple[Dim, ...] | None:
    """Return the broadcast shape of operands.

    Different named dimensions give an unnamed one, always the same for the same
    names: each of them may be 1, else they are equal. A data-dependent dimension
    yields to those of inputs, as if it were equal to them or 1.

    Raises:
        InvalidOperand: the shapes do not broadcast.
    """
    shapes = [t.shape for t in types]
    if any(shape is None for shape in shapes):
        return None
    rank = max((len(s) for s in shapes if s is not None), default=0)
    result: list[Dim] = []
    for axis in range(-rank, 0):
        dims = [s[axis] for s in shapes if s is not None and len(s) >= -axis]
        result.append(_join(dims, types))
    return tuple(result)


def _join(dims: list[Dim], types: tuple[Type, ...]) -> Dim:
    numbers = {d for d in dims if isinstance(d, int) and d != 1}
    if len(numbers) > 1:
        shown = " and ".join(t.name for t in types)
        raise InvalidOperand(f"expected shapes that broadcast, got {shown}")
    if numbers:
        return numbers.pop()
    open_dims = [d for d in dims if not isinstance(d, int)]
    # Exporters slice stored tables to a dimension of an input, whose name is clearer.
    named = [d for d in open_dims if not is_from_data(d)]
    # An extent is not negative: n - 1 and max(n - 1, 0) are one, as in x + x[:-1].
    bounded = {larger for d in named if (larger := maximum(d, 0)) != d}
    named = [d for d in named if d not in bounded]
    return joint(named or open_dims) if open_dims else 1


def join(a: Type, b: Type) -> Type:
    """Return the common type of values of type ``a`` and of type ``b``.

    Raises:
        InvalidOperand: the dtypes differ.
    """
    if a.dtype != b.dtype:
        raise InvalidOperand(f"expected one dtype, got {a.name} and {b.name}")
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Type(a.dtype, None)
    if a.shape != b.shape:
        return Type(a.dtype, None) if _differ(a.shape, b.shape) else a.forget()
    return a.forget()


def _differ(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    try:
        return not all(same(x, y) for x, y in zip(a, b, strict=True))
    except Undecided:
        return True


def joint(dims: Sequence[Poly]) -> Poly:
    """Return the broadcast result of symbolic dimensions on one axis.

    It is the one that is never 1, or the common one. Otherwise it is a new symbol
    that does not depend on the order and grouping of ``dims``.
    """
    for dim in dims:
        if _is_never_one(dim):
            return dim
    if len(set(dims)) == 1:
        return dims[0]
    parts = {part for dim in dims for part in str(dim).removeprefix(JOINT).split("|")}
    text = "|".join(sorted(parts))
    if len(text) > LARGEST:  # unbounded names would take quadratic time in a chain
        text = sha256(text.encode()).hexdigest()
    return symbol(JOINT + text)


def _is_never_one(dim: Poly) -> bool:
    bound = lower_bound(dim)
    divisor = gcd(*(size for _, size in dim.terms))
    return divisor > 1 or (bound is not None and bound > 1)
