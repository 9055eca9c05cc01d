"""Conversion from one dtype to another."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.options import non_default
from burn_ir.ops.support import ELEMENT_TYPES, element_type
from burn_ir.upgrade import Draft

#: The dtypes that ``saturate`` applies to.
SATURATING = (
    dtypes.float8_e4m3fn,
    dtypes.float8_e4m3fnuz,
    dtypes.float8_e5m2,
    dtypes.float8_e5m2fnuz,
)

#: Dtype names in version 1 that differ from the dtype's own.
OLD_NAMES = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}


def check_rounding(round_mode: str) -> None:
    """Check that ``round_mode`` is valid.

    Raises:
        InvalidOperand: it is not.
    """
    if round_mode not in ("up", "down", "nearest"):
        raise InvalidOperand(
            f"expected round_mode 'up', 'down' or 'nearest', got {round_mode!r}"
        )


def converted(x: Value, target: DType, saturate: int, round_mode: str = "up") -> Value:
    """Return ``x`` as ``target``; ``saturate`` clips to the range of a float8."""
    if x.dtype == target:
        return x.cast(target)
    if target == dtypes.float8_e8m0fnu:
        if x.dtype == dtypes.string:
            x = x.cast(dtypes.float32)
        options = non_default(
            round_mode=(round_mode, "up"), saturate=(bool(saturate), True)
        )
        return ops.cast_e8m0(x, **options)
    if saturate and target in SATURATING:
        largest = float(ml_dtypes.finfo(target).max)  # type: ignore[no-untyped-call]
        if dtypes.is_float(x.dtype) and x.dtype not in dtypes.FLOAT8:
            return ops.clip(x, -largest, largest).cast(target)
        # Strings, bools, and dtypes that may not represent the bounds.
        return ops.clip(x.cast(dtypes.float32), -largest, largest).cast(target)
    return x.cast(target)


@operator
class Cast(Op, onnx="Cast", versions=(1, 6, 9, 13, 19, 21, 23, 24, 25, 28)):
    to: int
    round_mode: str = "up"
    saturate: int = 1

    def infer(self, x: Type) -> Type:
        target = element_type(self.to)
        check_rounding(self.round_mode)
        return x.with_dtype(target)

    def lower(self, x: Value) -> Value:
        return converted(x, element_type(self.to), self.saturate, self.round_mode)


@Cast.upgrade(1)
def number_of_name(draft: Draft) -> Draft:
    """Upgrade: in version 1, the dtype was a name from TensorProto.DataType."""
    name = str(draft.attrs.get("to", "")).upper()
    current = OLD_NAMES.get(name, name)
    for number, dtype in ELEMENT_TYPES.items():
        if dtypes.name_of(dtype).upper() == current:
            return draft.with_attrs(to=number)
    raise InvalidOperand(f"expected the name of a data type, got {name!r}")


@operator
class CastLike(Op, onnx="CastLike", versions=(15, 19, 21, 23, 24, 25)):
    round_mode: str = "up"
    saturate: int = 1

    def infer(self, x: Type, like: Type) -> Type:
        check_rounding(self.round_mode)
        return x.with_dtype(like.dtype)

    def lower(self, x: Value, like: Value) -> Value:
        return converted(x, like.dtype, self.saturate, self.round_mode)


@operator
class BitCast(Op, onnx="BitCast", versions=(26,)):
    to: int

    def infer(self, x: Type) -> Type:
        target = element_type(self.to)
        if width(x.dtype) != width(target):
            raise InvalidOperand(
                f"expected a dtype of {width(x.dtype)} bits for {x.name}, got "
                f"{dtypes.name_of(target)}"
            )
        return x.with_dtype(target)

    def lower(self, x: Value) -> Value:
        return ops.bitcast(x, dtype=element_type(self.to))


#: The bits of dtypes that are stored in a byte each.
NARROW = {
    dtypes.int2: 2,
    dtypes.uint2: 2,
    dtypes.int4: 4,
    dtypes.uint4: 4,
    dtypes.float4_e2m1fn: 4,
}


def width(dtype: DType) -> int:
    """Return the number of bits of an element.

    Raises:
        InvalidOperand: it is text.
    """
    if dtype == dtypes.string:
        raise InvalidOperand("expected numbers, got string")
    return NARROW.get(dtype, np.dtype(dtype).itemsize * 8)
