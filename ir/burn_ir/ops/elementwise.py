"""Elementwise arithmetic with broadcasting."""

from __future__ import annotations

from functools import reduce
from typing import Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.options import shortest
from burn_ir.types import broadcast
from burn_ir.upgrade import Draft


def same_dtype(*types: Type) -> DType:
    """Return the common dtype of all operands.

    Raises:
        InvalidOperand: they differ.
    """
    if len({t.dtype for t in types}) != 1:
        shown = " and ".join(dtypes.name_of(t.dtype) for t in types)
        raise InvalidOperand(f"expected operands of one dtype, got {shown}")
    return types[0].dtype


class Arithmetic:
    """Operators of two operands that are broadcast to the result, of one dtype."""

    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))


@operator
class Add(Arithmetic, Op, onnx="Add", versions=(1, 6, 7, 13, 14)):
    def lower(self, x: Value, y: Value) -> Value:
        return x + y


@operator
class Sub(Arithmetic, Op, onnx="Sub", versions=(1, 6, 7, 13, 14)):
    def lower(self, x: Value, y: Value) -> Value:
        return x - y


@operator
class Mul(Arithmetic, Op, onnx="Mul", versions=(1, 6, 7, 13, 14)):
    def lower(self, x: Value, y: Value) -> Value:
        return x * y


@operator
class Div(Arithmetic, Op, onnx="Div", versions=(1, 6, 7, 13, 14)):
    def lower(self, x: Value, y: Value) -> Value:
        """Return the quotient; that of integers is rounded towards zero, as in C."""
        if dtypes.is_integer(x.dtype) or x.dtype == dtypes.string:
            return ops.trunc_div(x, y)
        return x / y


@operator
class Pow(Op, onnx="Pow", versions=(1, 7, 12, 13, 15)):
    def infer(self, x: Type, y: Type) -> Type:
        return Type(x.dtype, broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        """Return the power, in the dtype of the base."""
        if dtypes.is_integer(x.dtype) and dtypes.is_float(y.dtype):
            return (x.cast(dtypes.float64) ** y).cast(x.dtype)
        power = x**y
        if dtypes.promote(x.dtype, y.dtype) == x.dtype:
            return power
        return power.cast(x.dtype)


@operator
class Mod(Arithmetic, Op, onnx="Mod", versions=(10, 13, 28)):
    fmod: Literal[0, 1] = 0

    def lower(self, x: Value, y: Value) -> Value:
        return ops.fmod(x, y) if self.fmod else x % y


@Mod.upgrade(10, 13)
def floats_need_fmod(draft: Draft) -> Draft:
    """Upgrade: before 28, remainders of floats had the dividend's sign only."""
    if dtypes.is_float(draft.type(0).dtype) and not draft.attrs.get("fmod", 0):
        raise InvalidOperand("expected fmod=1 for floating operands, got fmod=0")
    return draft


def _differ(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool:
    """Return whether two shapes differ for all values of their symbols."""
    if a is None or b is None:
        return False
    pairs = zip(a, b, strict=False)
    return len(a) != len(b) or any(isinstance(x - y, int) and x != y for x, y in pairs)


@Add.upgrade(1, 6)
@Sub.upgrade(1, 6)
@Mul.upgrade(1, 6)
@Div.upgrade(1, 6)
@Pow.upgrade(1)
def broadcast_attribute(draft: Draft) -> Draft:
    """Upgrade: before 7, the second operand was broadcast on request.

    It was aligned at ``axis``.
    """
    axis = draft.attrs.get("axis")
    enabled = draft.attrs.get("broadcast", 0)
    draft = draft.with_attrs("axis", "broadcast")
    if not enabled:
        if _differ(draft.type(0).shape, draft.type(1).shape):
            raise InvalidOperand(
                "expected operands of one shape without broadcast=1, got "
                f"{draft.type(0).name} and {draft.type(1).name}"
            )
        return draft
    if axis is None:
        return draft
    trailing = draft.rank(0) - draft.rank(1) - int(axis) % max(draft.rank(0), 1)
    if trailing <= 0:
        return draft
    rank = draft.rank(1)
    axes = draft.constant("axes", np.arange(rank, rank + trailing))
    return draft.with_input(1, draft.before("Unsqueeze", [draft.node.inputs[1], axes]))


class Variadic:
    """Operators on any number of operands of one dtype."""

    def infer(self, *xs: Type) -> Type:
        if not xs:
            raise InvalidOperand("expected at least one operand, got none")
        return Type(same_dtype(*xs), broadcast(*xs))


@operator
class Max(Variadic, Op, onnx="Max", versions=(1, 6, 8, 12, 13)):
    def lower(self, *xs: Value) -> Value:
        return reduce(ops.maximum, xs)


@operator
class Min(Variadic, Op, onnx="Min", versions=(1, 6, 8, 12, 13)):
    def lower(self, *xs: Value) -> Value:
        return reduce(ops.minimum, xs)


@operator
class Sum(Variadic, Op, onnx="Sum", versions=(1, 6, 8, 13)):
    def lower(self, *xs: Value) -> Value:
        return reduce(ops.add, xs)


@operator
class Mean(Variadic, Op, onnx="Mean", versions=(1, 6, 8, 13)):
    def lower(self, *xs: Value) -> Value:
        return reduce(ops.add, xs) / float(len(xs))


@Max.upgrade(1, 6)
@Min.upgrade(1, 6)
@Sum.upgrade(1, 6)
@Mean.upgrade(1, 6)
def shapes_are_equal(draft: Draft) -> Draft:
    """Upgrade: before 8, there was no broadcasting."""
    shapes = [draft.type(i).shape for i in range(len(draft.types))]
    numbers = [s for s in shapes if s is not None and all(map(_is_number, s))]
    if len(set(numbers)) > 1:
        raise InvalidOperand(f"expected operands of one shape, got {numbers}")
    return draft


def _is_number(dim: Dim) -> bool:
    return isinstance(dim, int)


@operator
class Clip(Op, onnx="Clip", versions=(1, 6, 11, 12, 13)):
    def infer(self, x: Type, low: Type | None = None, high: Type | None = None) -> Type:
        bounds = [t for t in (low, high) if t is not None]
        same_dtype(x, *bounds)
        for bound in bounds:
            if bound.shape not in (None, (), (1,)):
                raise InvalidOperand(f"expected scalar bounds, got {bound.name}")
        return x.forget()

    def lower(self, x: Value, low: Value = None, high: Value = None) -> Value:
        if high is not None:
            return ops.clip(x, low, high)
        return x if low is None else ops.clip(x, low)

    def stateless_layer(
        self, x: Type, low: Type | None = None, high: Type | None = None
    ) -> Layer | None:
        known = [t.known for t in (low, high) if t is not None and t.known is not None]
        if x.dtype != dtypes.float32 or len(known) < 2:
            return None
        bounds = tuple(shortest(limit.item()) for limit in known)
        if bounds == (0.0, 6.0):
            return Layer("ReLU6", (), {}, {})
        return Layer("Hardtanh", bounds, {}, {}) if bounds[0] < bounds[1] else None


@Clip.upgrade(1, 6)
def bounds_to_inputs(draft: Draft) -> Draft:
    """Upgrade: before 11, the bounds were attributes."""
    dtype = draft.type(0).dtype
    draft = draft.attr_to_input("min", 1, dtype, scalar=True)
    return draft.attr_to_input("max", 2, dtype, scalar=True)
