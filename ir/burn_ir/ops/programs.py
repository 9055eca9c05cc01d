"""Operators of programs for which ONNX has none, but ``burn.ops`` has a primitive."""

from __future__ import annotations

from dataclasses import dataclass

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.types import broadcast


@dataclass(frozen=True)
class Trunc(Floating, Op, onnx="Trunc", versions=(1,), domain="burn"):
    """``x`` without its fraction."""

    def lower(self, x: Value) -> Value:
        return ops.trunc(x)


@dataclass(frozen=True)
class FloorDiv(Op, onnx="FloorDiv", versions=(1,), domain="burn"):
    """The quotient rounded towards minus infinity."""

    def infer(self, x: Type, y: Type) -> Type:
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return x // y


@dataclass(frozen=True)
class AdaptiveAvgPool(Op, onnx="AdaptiveAvgPool", versions=(1,), domain="burn"):
    """The means of ``output_size`` windows that cover each spatial axis evenly."""

    output_size: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        if expect_float(x).shape is None:
            return x.forget()
        if x.rank != len(self.output_size) + 2:
            raise InvalidOperand(
                f"expected rank {len(self.output_size) + 2}, got {x.name}"
            )
        return x.with_shape((*x.dims[:2], *self.output_size))

    def lower(self, x: Value) -> Value:
        sizes = self.output_size
        size = sizes[0] if len(set(sizes)) == 1 else sizes
        return ops.adaptive_avg_pool(x, output_size=size)
