"""Scatter operators: copies with some elements replaced."""

from __future__ import annotations

from typing import Any, Literal

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.indexing import check_integers

Reduction = Literal["none", "add", "mul", "max", "min"]


def check_reduction(reduction: str) -> None:
    """Check that the reduction of updates is supported.

    Raises:
        InvalidOperand: it is not.
    """
    if reduction not in ("none", "add", "mul", "max", "min"):
        raise InvalidOperand(
            f"expected reduction none, add, mul, max or min, got {reduction!r}"
        )


def scattered(data: Type, indices: Type, updates: Type) -> Type:
    """Return the type of ``data`` with some elements replaced.

    Raises:
        InvalidOperand: the indices are no integers, or the updates have another dtype.
    """
    check_integers(indices)
    if updates.dtype != data.dtype:
        raise InvalidOperand(f"expected updates like {data.name}, got {updates.name}")
    return data.forget()


@operator
class ScatterElements(Op, onnx="ScatterElements", versions=(11, 13, 16, 18)):
    axis: int = 0
    reduction: Reduction = "none"

    def __post_init__(self) -> None:
        check_reduction(self.reduction)

    def infer(self, data: Type, indices: Type, updates: Type) -> Type:
        if data.shape is not None:
            data.axes(self.axis)
        return scattered(data, indices, updates)

    def lower(self, data: Value, indices: Value, updates: Value) -> Value:
        options: dict[str, Any] = {} if self.axis == 0 else {"axis": self.axis}
        if self.reduction != "none":
            options["reduction"] = self.reduction
        return ops.scatter_elements(data, indices, updates, **options)


@operator
class Scatter(Op, onnx="Scatter", versions=(9,)):
    axis: int = 0

    def infer(self, data: Type, indices: Type, updates: Type) -> Type:
        return scattered(data, indices, updates)

    def lower(self, data: Value, indices: Value, updates: Value) -> Value:
        return ScatterElements(self.axis).lower(data, indices, updates)


@operator
class ScatterND(Op, onnx="ScatterND", versions=(11, 13, 16, 18)):
    reduction: Reduction = "none"

    def __post_init__(self) -> None:
        check_reduction(self.reduction)

    def infer(self, data: Type, indices: Type, updates: Type) -> Type:
        return scattered(data, indices, updates)

    def lower(self, data: Value, indices: Value, updates: Value) -> Value:
        if self.reduction == "none":
            return ops.scatter_nd(data, indices, updates)
        return ops.scatter_nd(data, indices, updates, reduction=self.reduction)
