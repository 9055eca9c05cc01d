"""Tensors from a fill value, a range or a diagonal."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType, float32
from burn_ir.dim import Dim, Poly, at_least, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.support import (
    dims_of,
    element_type,
    known_dims,
    length,
    present_operands,
    shape_of,
    size_of,
    unnamed_dims,
)
from burn_ir.types import Array, is_unnamed


@operator
class ConstantOfShape(Op, onnx="ConstantOfShape", versions=(9, 20, 21, 23, 24, 25)):
    value: Array | None = None

    @property
    def fill(self) -> Any:
        """Return the only element."""
        if self.value is None:
            return np.zeros((), float32)[()]
        if self.value.size != 1:
            raise InvalidOperand(f"expected one value, got {self.value.size}")
        return self.value.reshape(())[()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantOfShape) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[DType, bytes]:
        return self.fill.dtype, self.fill.tobytes()

    def infer(self, shape: Type) -> Type:
        dims = known_dims(shape)
        if dims is not None:
            return Type(self.fill.dtype, dims)
        try:
            return Type(self.fill.dtype, unnamed_dims(length(shape)))
        except Undecided:
            return Type(self.fill.dtype, None)

    def lower(self, shape: Value) -> Value:
        dims, number = dims_of(shape), self.fill.item()
        dtype = self.fill.dtype
        hidden = dims is None or any(map(is_unnamed, dims))
        where = shape if hidden else dims
        if dtype == dtypes.default_dtype(number):
            return ops.full(where, number)
        return ops.full(where, number, dtype=dtype)


@operator
class Range(Op, onnx="Range", versions=(11, 27)):
    stash_type: int = 1

    def __post_init__(self) -> None:
        if element_type(self.stash_type) not in dtypes.FLOATS:
            raise InvalidOperand(f"expected a float stash_type, got {self.stash_type}")

    def infer(self, start: Type, limit: Type, delta: Type) -> Type:
        if len({start.dtype, limit.dtype, delta.dtype}) != 1:
            shown = " and ".join(t.name for t in (start, limit, delta))
            raise InvalidOperand(f"expected operands of one dtype, got {shown}")
        return Type(start.dtype, (_count(start, limit, delta),))

    def lower(self, start: Value, limit: Value, delta: Value) -> Value:
        dtype = start.dtype
        if dtype in dtypes.HALVES:
            wide = element_type(self.stash_type)
            bounds = [operand.cast(wide) for operand in (start, limit, delta)]
            return ops.arange(*bounds).cast(dtype)
        if not dtypes.is_integer(dtype):
            return ops.arange(start, limit, delta)
        return integers_between(start, limit, delta)


def integers_between(start: Value, limit: Value, delta: Value = None) -> Value:
    """Return the integers of a range; the step is 1 unless it is passed."""
    numbers = [size_of(operand) for operand in present_operands(start, limit, delta)]
    options = {} if start.dtype == dtypes.int64 else {"dtype": start.dtype}
    if isinstance(numbers[-1], int) and numbers[2:] == [1]:
        del numbers[2]
    if isinstance(numbers[0], int) and numbers[0] == 0 and len(numbers) == 2:
        del numbers[0]
    return ops.arange(*numbers, **options)


def _count(start: Type, limit: Type, delta: Type) -> Dim:
    """Return the number of elements, a fresh symbol if it is unknown."""
    if start.known is None or limit.known is None or delta.known is None:
        return unnamed()
    first, last, step = (
        t.known.item() for t in (start, limit, delta) if t.known is not None
    )
    if not isinstance(step, Poly) and step == 0:
        raise InvalidOperand("expected a delta other than 0, got 0")
    try:
        if dtypes.is_integer(start.dtype):
            return _steps(last - first, step)
    except Undecided:
        return unnamed()
    return int(max(ceil((last - first) / step), 0))


def _steps(distance: Dim, step: int) -> Dim:
    if step < 0:
        distance, step = -distance, -step
    if isinstance(distance, int):
        return max(-(-distance // step), 0)
    return -(-distance // step) if at_least(distance, 0) else 0


@operator
class EyeLike(Op, onnx="EyeLike", versions=(9, 22)):
    dtype: int | None = None
    k: int = 0

    def infer(self, x: Type) -> Type:
        dtype = x.dtype if self.dtype is None else element_type(self.dtype)
        if x.shape is None:
            return Type(dtype, unnamed_dims(2))
        if x.rank != 2:
            raise InvalidOperand(f"expected a matrix, got {x.name}")
        return Type(dtype, x.shape)

    def lower(self, x: Value) -> Value:
        dtype = x.dtype if self.dtype is None else element_type(self.dtype)
        options: dict[str, Any] = {} if dtype == float32 else {"dtype": dtype}
        extents = shape_of(x)
        if extents is None or any(map(is_unnamed, extents)):
            shape = ops.shape(x)
            return ops.eye(shape[0], shape[1], self.k, **options)
        rows, columns = extents
        if self.k:
            return ops.eye(rows, columns, self.k, **options)
        return ops.eye(rows, columns, **options)
