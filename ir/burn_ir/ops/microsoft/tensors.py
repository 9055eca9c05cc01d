"""Operators of ``com.microsoft`` that ONNX took over later, and some of linear algebra.

Where nothing but the name of the domain differs, the declaration is ONNX's.
"""

from __future__ import annotations

from dataclasses import dataclass

from burn.dtypes import is_integer
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value
from burn_ir.ops.indexing import GatherND
from burn_ir.ops.microsoft.activation import DOMAIN
from burn_ir.ops.ordering import Trilu
from burn_ir.ops.padding import Pad
from burn_ir.ops.support import ints_of, known_ints, unnamed_dims


@dataclass(frozen=True)
class ExpandDims(Op, onnx="ExpandDims", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, axis: Type) -> Type:
        if not is_integer(axis.dtype):
            raise InvalidOperand(f"expected an integer axis, got {axis.name}")
        known = known_ints(axis)
        if known is None:
            return x.with_shape(unnamed_dims(x.rank + 1))
        (place,) = Type(x.dtype, (1,) * (x.rank + 1)).axes(known)
        return x.with_shape((*x.dims[:place], 1, *x.dims[place:]))

    def lower(self, x: Value, axis: Value) -> Value:
        known = ints_of(axis)
        return x.unsqueeze(axis if known is None else known[0])


@dataclass(frozen=True)
class EarlyGatherND(GatherND, onnx="GatherND", domain=DOMAIN, versions=(1,)):
    """GatherND before it was ONNX's."""


@dataclass(frozen=True)
class EarlyPad(Pad, onnx="Pad", domain=DOMAIN, versions=(1,)):
    """Pad before ONNX's took its pads as an operand."""


@dataclass(frozen=True)
class EarlyTrilu(Trilu, onnx="Trilu", domain=DOMAIN, versions=(1,)):
    """Trilu before it was ONNX's."""
