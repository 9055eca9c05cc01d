"""Sorting, cumulative operators, triangles and reversal along an axis."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from burn import ops
from burn.dtypes import int64
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.support import ints_of, known_dims
from burn_ir.upgrade import Draft


@operator
class TopK(Op, onnx="TopK", versions=(1, 10, 11, 24)):
    axis: int = -1
    largest: Literal[0, 1] = 1
    sorted: Literal[0, 1] = 1

    def infer(self, x: Type, k: Type) -> tuple[Type, Type]:
        if k.shape is not None and len(k.shape) != 1:
            raise InvalidOperand(f"expected k in a vector of one, got {k.name}")
        if x.shape is None:
            return x.with_shape(None), Type(int64, None)
        (axis,) = x.axes(self.axis)
        numbers = known_dims(k)
        count = unnamed() if numbers is None else numbers[0]
        extent = x.dims[axis]
        if isinstance(count, int) and isinstance(extent, int) and count > extent:
            raise InvalidOperand(f"expected k of at most {extent}, got {count}")
        dims = tuple(count if a == axis else d for a, d in enumerate(x.dims))
        return x.with_shape(dims), Type(int64, dims)

    def lower(self, x: Value, k: Value) -> tuple[Value, ...]:
        numbers = ints_of(k)
        options: dict[str, Any] = {} if self.axis == -1 else {"axis": self.axis}
        if not self.largest:
            options["largest"] = False
        return ops.topk(x, k if numbers is None else numbers[0], **options)


@TopK.upgrade(1)
def count_attribute(draft: Draft) -> Draft:
    """Upgrade: before 10, the number of elements was an attribute."""
    return draft.with_attrs("k").with_input(
        1, draft.constant("k", np.array([draft.attrs["k"]], np.int64))
    )


@operator
class Running:
    """Cumulative sums and products along an axis."""

    exclusive: Literal[0, 1] = 0
    reverse: Literal[0, 1] = 0
    primitive: ClassVar[Any]

    def infer(self, x: Type, axis: Type) -> Type:
        if axis.known is not None and x.shape is not None:
            x.axes(int(axis.known.item()))
        return x.forget()

    def lower(self, x: Value, axis: Value) -> Value:
        run, numbers = type(self).primitive, ints_of(axis)
        flags = {name: True for name in ("exclusive", "reverse") if getattr(self, name)}
        if numbers is None:
            return run(x, axis, **flags)
        if numbers[0] == 0:
            return run(x, **flags)
        return run(x, axis=numbers[0], **flags)


@operator
class CumSum(Running, Op, onnx="CumSum", versions=(11, 14)):
    primitive = ops.cumsum


@operator
class CumProd(Running, Op, onnx="CumProd", versions=(26,)):
    primitive = ops.cumprod


@operator
class Trilu(Op, onnx="Trilu", versions=(14,)):
    upper: Literal[0, 1] = 1

    def infer(self, x: Type, k: Type | None = None) -> Type:
        if x.shape is not None and x.rank < 2:
            raise InvalidOperand(f"expected rank 2 or more, got {x.name}")
        return x.forget()

    def lower(self, x: Value, k: Value = None) -> Value:
        numbers = ints_of(k)
        options = {} if self.upper else {"upper": False}
        if k is None or numbers == (0,):
            return ops.trilu(x, **options)
        return ops.trilu(x, k if numbers is None else numbers[0], **options)


@operator
class ReverseSequence(Op, onnx="ReverseSequence", versions=(10, 28)):
    batch_axis: int = 1
    time_axis: int = 0

    def infer(self, x: Type, sequence_lens: Type) -> Type:
        if {self.batch_axis, self.time_axis} != {0, 1}:
            raise InvalidOperand(
                "expected axes 0 and 1 for batch and time, "
                f"got {self.batch_axis} and {self.time_axis}"
            )
        return x.forget()

    def lower(self, x: Value, sequence_lens: Value) -> Value:
        if self.batch_axis == 1:
            return ops.reverse_sequence(x, sequence_lens)
        return ops.reverse_sequence(x, sequence_lens, batch_axis=0, time_axis=1)
