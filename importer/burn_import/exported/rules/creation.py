"""New tensors: ranges, and tensors of one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.exported.builder import INT64, Builder, Operand, Value
from burn_import.exported.table import rule

Sizes = Sequence[int | Value]


@rule("aten.arange.default")
def arange(g: Builder, end: Operand, dtype: Any = None) -> Value:
    return arange_step(g, 0, end, 1)


@rule("aten.arange.start")
def arange_start(g: Builder, start: Operand, end: Operand, dtype: Any = None) -> Value:
    return arange_step(g, start, end, 1)


@rule("aten.arange.start_step")
def arange_step(
    g: Builder, start: Operand, end: Operand, step: Operand = 1, dtype: Any = None
) -> Value:
    is_whole = all(
        isinstance(x, int) or (isinstance(x, Value) and x.dtype == INT64)
        for x in (start, end, step)
    )
    if is_whole and g.dtype != INT64:
        made = g.op("Range", *(g.cast(x, INT64) for x in (start, end, step)))
        return g.cast(Value(made.name, INT64))
    return g.op("Range", *(g.cast(x) for x in (start, end, step)))


def filled(g: Builder, size: Sizes, number: Operand) -> Value:
    """A tensor of one number."""
    if not size:
        return g.cast(number)
    if isinstance(number, Value):
        return g.op("Expand", g.cast(number), g.ints(list(size)))
    value = np.full([1], number).astype(g.dtype)
    return g.op("ConstantOfShape", g.ints(list(size)), value=value)


@rule("aten.full.default")
def full(g: Builder, size: Sizes, fill_value: Operand, dtype: Any = None) -> Value:
    return filled(g, size, fill_value)


@rule("aten.zeros.default")
def zeros(g: Builder, size: Sizes, dtype: Any = None) -> Value:
    return filled(g, size, 0)


@rule("aten.ones.default")
def ones(g: Builder, size: Sizes, dtype: Any = None) -> Value:
    return filled(g, size, 1)


@rule("aten.new_zeros.default")
def new_zeros(g: Builder, self: Value, size: Sizes, dtype: Any = None) -> Value:
    return filled(g, size, 0)


@rule("aten.new_ones.default")
def new_ones(g: Builder, self: Value, size: Sizes, dtype: Any = None) -> Value:
    return filled(g, size, 1)


@rule("aten.new_full.default")
def new_full(
    g: Builder, self: Value, size: Sizes, fill_value: Operand, dtype: Any = None
) -> Value:
    return filled(g, size, fill_value)


@rule("aten.full_like.default")
def full_like(g: Builder, self: Value, fill_value: Operand, dtype: Any = None) -> Value:
    shape = g.op("Shape", self)
    if isinstance(fill_value, Value):
        return g.op("Expand", g.cast(fill_value), shape)
    value = np.full([1], fill_value).astype(g.dtype)
    return g.op("ConstantOfShape", shape, value=value)


@rule("aten.fill.Scalar", "aten.fill.Tensor")
def fill(g: Builder, self: Value, value: Operand) -> Value:
    return full_like(g, self, value)


@rule("aten.zeros_like.default", "aten.zero.default")
def zeros_like(g: Builder, self: Value, dtype: Any = None) -> Value:
    return full_like(g, self, 0)


@rule("aten.ones_like.default")
def ones_like(g: Builder, self: Value, dtype: Any = None) -> Value:
    return full_like(g, self, 1)
