"""Operators and methods of tensors and parameters, and their spelling in source.

The compiler prints a call of a primitive in the spelling of its method: ``x + y``,
``x.reshape(...)``. Decorators register the spelling at the implementation, so the two
cannot diverge.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Never, TypeAlias, TypeVar

import numpy as np

from burn.attribute_hints import add_hints
from burn.lazy import LazyModule
from burn.tensor_hints import SHARED

if TYPE_CHECKING:
    from burn import ops as ops
    from burn.box import Box
    from burn.dtypes import DType
    from burn.tensor import Tensor

    Operand: TypeAlias = Tensor | Box | np.ndarray[Any, Any] | float
else:
    # Imported with the first operation: its primitives take tensors with these methods.
    ops = LazyModule("burn.ops", sys.modules[__name__], "ops")

F = TypeVar("F", bound=Callable[..., Any])


class Spelling(NamedTuple):
    """The notation of a primitive: ``infix``, ``prefix``, ``method``, ``property``."""

    kind: str
    text: str
    precedence: int = 0


#: Spelling by primitive name; primitives that are not here are ``ops.name(...)``.
SPELLINGS: dict[str, Spelling] = {}


def infix(primitive: str, text: str, precedence: int) -> Callable[[F], F]:
    """Register ``x text y`` as the spelling of ``primitive(x, y)``."""
    return _spelt(primitive, Spelling("infix", text, precedence))


def prefix(primitive: str, text: str, precedence: int) -> Callable[[F], F]:
    """Register ``text x`` as the spelling of ``primitive(x)``."""
    return _spelt(primitive, Spelling("prefix", text, precedence))


def _spelt(primitive: str, spelling: Spelling) -> Callable[[F], F]:
    def note(function: F) -> F:
        SPELLINGS[primitive] = spelling
        return function

    return note


def method(function: F) -> F:
    """Register the method as the spelling of the primitive of the same name."""
    SPELLINGS[function.__name__] = Spelling("method", function.__name__)
    return function


class Methods:
    """Arithmetic, comparison, indexing and shape methods, by NumPy's rules."""

    __slots__ = ()
    #: None: arrays leave mixed expressions to us; tensors of the runtime replace it.
    __array_ufunc__: Any = None

    # Precedences are Python's: | 8, ^ 9, & 10, + - 12, * / // % @ 13, unary 14, ** 15.
    @infix("add", "+", 12)
    def __add__(self, other: Operand) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return ops.add(other, self)

    @infix("sub", "-", 12)
    def __sub__(self, other: Operand) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return ops.sub(other, self)

    @infix("mul", "*", 13)
    def __mul__(self, other: Operand) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return ops.mul(other, self)

    @infix("div", "/", 13)
    def __truediv__(self, other: Operand) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return ops.div(other, self)

    @infix("floor_div", "//", 13)
    def __floordiv__(self, other: Operand) -> Tensor:
        return ops.floor_div(self, other)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return ops.floor_div(other, self)

    @infix("remainder", "%", 13)
    def __mod__(self, other: Operand) -> Tensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return ops.remainder(other, self)

    @infix("matmul", "@", 13)
    def __matmul__(self, other: Operand) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return ops.matmul(other, self)

    @infix("pow", "**", 15)
    def __pow__(self, other: Operand) -> Tensor:
        return ops.pow(self, other)

    def __rpow__(self, other: Operand) -> Tensor:
        return ops.pow(other, self)

    @prefix("neg", "-", 14)
    def __neg__(self) -> Tensor:
        return ops.neg(self)

    @prefix("logical_not", "~", 14)
    def __invert__(self) -> Tensor:
        return ops.logical_not(self)

    @infix("logical_and", "&", 10)
    def __and__(self, other: Operand) -> Tensor:
        return ops.logical_and(self, other)

    @infix("logical_or", "|", 8)
    def __or__(self, other: Operand) -> Tensor:
        return ops.logical_or(self, other)

    @infix("logical_xor", "^", 9)
    def __xor__(self, other: Operand) -> Tensor:
        return ops.logical_xor(self, other)

    @infix("equal", "==", 6)
    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return ops.equal(self, other)

    @infix("not_equal", "!=", 6)
    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]
        return ops.not_equal(self, other)

    @infix("less", "<", 6)
    def __lt__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return ops.less(self, other)

    @infix("less_equal", "<=", 6)
    def __le__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return ops.less_equal(self, other)

    @infix("greater", ">", 6)
    def __gt__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return ops.greater(self, other)

    @infix("greater_equal", ">=", 6)
    def __ge__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return ops.greater_equal(self, other)

    # Equality is elementwise, so dictionaries and sets compare by identity.
    __hash__ = object.__hash__

    @_spelt("getitem", Spelling("index", "[]", 20))
    def __getitem__(self, key: Any) -> Tensor:
        return ops.getitem(self, key)

    @method
    def reshape(self, *shape: Any, keep_zeros: bool = False) -> Tensor:
        """Return the same elements in another shape; one extent may be -1.

        With ``keep_zeros`` an extent of 0 is replaced by that of the same axis of the
        tensor.
        """
        if keep_zeros:
            return ops.reshape(self, _varargs(shape), keep_zeros=True)
        return ops.reshape(self, _varargs(shape))

    @method
    def permute(self, *axes: int) -> Tensor:
        """Return the tensor with its axes permuted, by default reversed."""
        return ops.permute(self, _varargs(axes)) if axes else ops.permute(self)

    @method
    def transpose(self, first: int, second: int) -> Tensor:
        """Return the tensor with two axes swapped."""
        return ops.transpose(self, first, second)

    @method
    def expand(self, *shape: Any) -> Tensor:
        """Return the tensor broadcast to ``shape``; -1 keeps an extent."""
        return ops.expand(self, _varargs(shape))

    @method
    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """Return the tensor with the axes ``start`` to ``end`` merged into one."""
        return ops.flatten(self, start, end)

    @method
    def squeeze(self, axis: Any = None) -> Tensor:
        """Return the tensor without ``axis`` of extent 1 (by default all such axes)."""
        return ops.squeeze(self, axis)

    @method
    def unsqueeze(self, axis: Any) -> Tensor:
        """Return the tensor with new axes of extent 1 at the given positions."""
        return ops.unsqueeze(self, axis)

    @method
    def cast(self, dtype: DType) -> Tensor:
        """Return the tensor converted to ``dtype``."""
        return ops.cast(self, dtype=dtype)

    @method
    def sum(
        self, axis: Any = None, *, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the sum over ``axis`` (by default over all axes)."""
        if unknown:
            raise _unknown_arguments("sum", unknown)
        return ops.sum(self, axis, keepdims=keepdims)

    @method
    def mean(
        self, axis: Any = None, *, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the mean over ``axis`` (by default over all axes)."""
        if unknown:
            raise _unknown_arguments("mean", unknown)
        return ops.mean(self, axis, keepdims=keepdims)

    @method
    def max(
        self, axis: Any = None, *, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the maximum over ``axis`` (by default over all axes)."""
        if unknown:
            raise _unknown_arguments("max", unknown)
        return ops.max(self, axis, keepdims=keepdims)

    @method
    def min(
        self, axis: Any = None, *, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the minimum over ``axis`` (by default over all axes)."""
        if unknown:
            raise _unknown_arguments("min", unknown)
        return ops.min(self, axis, keepdims=keepdims)

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The tensor with its last two axes swapped."""
        return ops.transpose(self, -2, -1)


add_hints(Methods, SHARED)


#: Arguments of PyTorch's reductions, and ours.
_RENAMED = {"dim": "axis", "keepdim": "keepdims"}


def _unknown_arguments(name: str, unknown: dict[str, Any]) -> TypeError:
    """Return an error that names the arguments a reduction has instead."""
    keyword = next(iter(unknown))
    remedy = f"; use {_RENAMED[keyword]}" if keyword in _RENAMED else ""
    return TypeError(f"{name}() got an unexpected keyword argument {keyword!r}{remedy}")


def _varargs(values: tuple[Any, ...]) -> Any:
    """Return ``(2, 3)`` for ``f(2, 3)`` and ``f((2, 3))``; a tensor is unchanged."""
    if len(values) == 1 and not isinstance(values[0], int | np.integer):
        return values[0]
    return values
