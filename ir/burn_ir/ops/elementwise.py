"""Arithmetic and mathematical functions, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value
from burn_ir.types import broadcast
from burn_ir.upgrade import Draft


def same_dtype(*types: Type) -> DType:
    """The dtype that all operands have.

    Raises:
        InvalidOperand: they differ.
    """
    if len({t.dtype for t in types}) != 1:
        shown = " and ".join(dtypes.name_of(t.dtype) for t in types)
        raise InvalidOperand(f"expected operands of one dtype, got {shown}")
    return types[0].dtype


@dataclass(frozen=True)
class Add(Op, onnx="Add", versions=(1, 6, 7, 13, 14)):
    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return x + y


@dataclass(frozen=True)
class Sub(Op, onnx="Sub", versions=(1, 6, 7, 13, 14)):
    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return x - y


@dataclass(frozen=True)
class Mul(Op, onnx="Mul", versions=(1, 6, 7, 13, 14)):
    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return x * y


@dataclass(frozen=True)
class Div(Op, onnx="Div", versions=(1, 6, 7, 13, 14)):
    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        """Integers are divided towards zero, as C does."""
        if dtypes.is_integer(x.dtype):
            return ops.trunc_div(x, y)
        return x / y


@Add.upgrade(1, 6)
@Sub.upgrade(1, 6)
@Mul.upgrade(1, 6)
@Div.upgrade(1, 6)
def broadcast_attribute(draft: Draft) -> Draft:
    """Before 7, the second operand was broadcast only on request, from ``axis`` on."""
    axis = draft.attrs.get("axis")
    enabled = draft.attrs.get("broadcast", 0)
    draft = draft.with_attrs("axis", "broadcast")
    if not enabled:
        if draft.type(0).shape != draft.type(1).shape:
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


class Unary:
    """Operators that keep the type of their only operand."""

    def infer(self, x: Type) -> Type:
        return x.forget()


@dataclass(frozen=True)
class Exp(Unary, Op, onnx="Exp", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.exp(x)


@dataclass(frozen=True)
class Mod(Op, onnx="Mod", versions=(10, 13, 28)):
    fmod: Literal[0, 1] = 0

    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Any:
        return ops.fmod(x, y) if self.fmod else x % y
