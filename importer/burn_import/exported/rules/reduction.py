"""Sums, means and other reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_import.exported.builder import BOOL, Builder, Value
from burn_import.exported.rules.logic import truth
from burn_import.exported.table import Rule, rule

Axes = int | Sequence[int] | None


def reduction(op_type: str) -> Rule:
    """The rule of a reduction in the dtype of the result."""

    def apply(
        g: Builder,
        self: Value,
        dim: Axes = None,
        keepdim: bool = False,
        dtype: Any = None,
    ) -> Value:
        return reduced(g, op_type, g.cast(self), dim, keepdim)

    return apply


def reduced(g: Builder, op_type: str, x: Value, dim: Axes, keepdim: bool) -> Value:
    """``x`` reduced over axes; over all of them if there are none."""
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    if x.rank == 0:
        return x
    operand = g.constant(axes) if axes else None
    return g.op(op_type, x, operand, keepdims=int(keepdim))


rule("aten.sum.dim_IntList", "aten.sum.default")(reduction("ReduceSum"))
rule("aten.mean.dim", "aten.mean.default")(reduction("ReduceMean"))
rule("aten.amax.default", "aten.max.default")(reduction("ReduceMax"))
rule("aten.amin.default", "aten.min.default")(reduction("ReduceMin"))
rule("aten.prod.default", "aten.prod.dim_int")(reduction("ReduceProd"))
rule("aten.logsumexp.default")(reduction("ReduceLogSumExp"))


@rule("aten.any.dim", "aten.any.dims", "aten.any.default")
def any_(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    x = truth(g, self)
    whole = g.op("Cast", x, to=6)
    most = reduced(g, "ReduceMax", Value(whole.name, g.dtype, x.dims), dim, keepdim)
    return Value(g.op("Cast", most, to=9).name, BOOL)


@rule("aten.all.dim", "aten.all.dims", "aten.all.default")
def all_(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    x = truth(g, self)
    whole = g.op("Cast", x, to=6)
    least = reduced(g, "ReduceMin", Value(whole.name, g.dtype, x.dims), dim, keepdim)
    return Value(g.op("Cast", least, to=9).name, BOOL)


@rule("aten.argmax.default")
def argmax(
    g: Builder, self: Value, dim: int | None = None, keepdim: bool = False
) -> Any:
    if dim is None:
        flat = g.op("Reshape", self, g.constant([-1]))
        return g.op("ArgMax", flat, axis=0, keepdims=int(keepdim))
    return g.op("ArgMax", self, axis=dim, keepdims=int(keepdim))
