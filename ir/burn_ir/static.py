"""Operands whose contents are known at compile time.

The same ``lower`` that computes with tensors computes with dimensions: ``SHAPES`` is a
backend whose arrays may hold symbolic dimensions, so shape arithmetic is folded without
a second description of any operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn import Tensor, ops
from burn.backend.cpu import Cpu
from burn.dtypes import DType, is_float, is_integer
from burn_ir.containers import OptionalType, SequenceType
from burn_ir.dim import Dim, Poly, at_least, maximum, minimum, same
from burn_ir.errors import Undecided
from burn_ir.types import Array

Value = Any  # a tensor or symbol in a ``lower``, None for an omitted operand


def static(operand: Value) -> Array:
    """Return the contents of ``operand``: numbers, or numbers and dimensions.

    Raises:
        Undecided: they are known only at run time.
    """
    if isinstance(operand, np.ndarray):
        return operand
    contents = getattr(operand.data, "known", None)
    if contents is not None:
        return np.asarray(contents)
    if hasattr(operand.data, "known"):
        raise Undecided("the operand is computed when the model runs")
    return np.asarray(operand.numpy())


def static_dims(operand: Value) -> tuple[Dim, ...]:
    """Return the contents of an integer operand as dimensions.

    Raises:
        Undecided: they are known only at run time.
    """
    items = static(operand).ravel().tolist()
    return tuple(d if isinstance(d, Poly) else int(d) for d in items)


def static_ints(operand: Value) -> tuple[int, ...]:
    """Return the contents of an integer operand as Python integers.

    Raises:
        Undecided: they are known only at run time, or contain a symbol.
    """
    return tuple(int(d) for d in static_dims(operand))


def is_sequence(operand: Value) -> bool:
    """Return whether ``operand`` is a list, now or at run time."""
    if isinstance(operand, list):
        return True
    type_ = getattr(getattr(operand, "data", None), "type", None)
    return isinstance(type_, SequenceType)


def is_optional(operand: Value) -> bool:
    """Return whether ``operand`` is None, or may be at run time."""
    type_ = getattr(getattr(operand, "data", None), "type", None)
    return operand is None or isinstance(type_, OptionalType)


class _Shapes(Cpu):
    """Host arrays of dimensions; comparisons of symbols may be undecided."""

    _only: _Shapes | None = None
    level = 2

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        decide = _DECISIONS.get(primitive)
        raw = [self.unwrap(arg) for arg in args] if decide is not None else []
        # Arrays without dimensions are computed as at run time.
        if decide is not None and any(np.asarray(x).dtype == object for x in raw):
            return Tensor(np.asarray(decide(*raw, **static)), self)
        return super().call(primitive, args, static)

    def import_tensor(self, tensor: Tensor) -> Any:
        return tensor.data


SHAPES = _Shapes()


def _elementwise(decide: Callable[[Dim, Dim], bool]) -> Callable[..., Array]:
    def apply(x: Any, y: Any) -> Array:
        if any(is_float(np.asarray(operand).dtype) for operand in (x, y)):
            raise Undecided("a dimension is compared with a float")
        return np.asarray(np.frompyfunc(decide, 2, 1)(x, y)).astype(bool)

    return apply


def _extremum(choose: Callable[[Dim, Dim], Dim]) -> Callable[..., Array]:
    def apply(x: Any, y: Any) -> Array:
        if any(is_float(np.asarray(operand).dtype) for operand in (x, y)):
            raise Undecided("a dimension is compared with a float")
        return np.asarray(np.frompyfunc(choose, 2, 1)(x, y))

    return apply


def _cast(x: Array, *, dtype: DType) -> Array:
    if not is_integer(dtype):
        raise Undecided(f"a dimension cannot be cast to {dtype} yet")
    return x


def _where(condition: Array, x: Any, y: Any) -> Array:
    if np.asarray(condition).dtype == object:
        raise Undecided("the condition is not known")
    return np.asarray(np.where(condition, x, y))


_DECISIONS: dict[Any, Callable[..., Any]] = {
    ops.equal: _elementwise(same),
    ops.not_equal: _elementwise(lambda a, b: not same(a, b)),
    ops.less: _elementwise(lambda a, b: not at_least(a, b)),
    ops.greater: _elementwise(lambda a, b: not at_least(b, a)),
    ops.less_equal: _elementwise(lambda a, b: at_least(b, a)),
    ops.greater_equal: _elementwise(at_least),
    ops.maximum: _extremum(maximum),
    ops.minimum: _extremum(minimum),
    ops.cast: _cast,
    ops.where: _where,
}


def normalize(contents: Array, dtype: DType) -> Array:
    """Return ``contents`` in ``dtype``, unless it has dimensions."""
    if contents.dtype != object:
        return contents if contents.dtype == dtype else contents.astype(dtype)
    if any(isinstance(item, Poly) for item in contents.ravel().tolist()):
        return contents
    return contents.astype(dtype)
