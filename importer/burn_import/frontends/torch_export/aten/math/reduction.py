"""Sums, means and other reductions."""

from collections.abc import Sequence
from typing import Any

from burn_import.frontends.torch_export.aten.math.logic import is_nonzero
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_import.frontends.torch_export.registry import Rule, rule

Axes = int | Sequence[int] | None


def as_axes(dim: Axes) -> list[int]:
    """Return the axes of a call; [] means all of them."""
    return [dim] if isinstance(dim, int) else list(dim or ())


def reduce(
    g: Builder, op_type: str, x: Value, dim: Axes = None, keepdim: bool = False
) -> Value:
    """Return ``x`` reduced over axes; over all of them if there are none."""
    if x.dims == ():
        return g.op(op_type, g.op("Unsqueeze", x, [0]), [0], keepdims=0)
    return g.op(op_type, x, as_axes(dim) or None, keepdims=int(keepdim))


def reduction(op_type: str) -> Rule:
    """Return the rule of a reduction in the dtype of the result."""

    def apply(
        g: Builder,
        self: Value,
        dim: Axes = None,
        keepdim: bool = False,
        dtype: Any = None,
    ) -> Value:
        return reduce(g, op_type, g.cast(self), dim, keepdim)

    return apply


rule("aten.sum.dim_IntList", "aten.sum.default")(reduction("ReduceSum"))
rule("aten.mean.dim", "aten.mean.default")(reduction("ReduceMean"))
rule("aten.amax.default", "aten.max.default")(reduction("ReduceMax"))
rule("aten.amin.default", "aten.min.default")(reduction("ReduceMin"))
rule("aten.prod.default", "aten.prod.dim_int")(reduction("ReduceProd"))
rule("aten.logsumexp.default", "aten.special_logsumexp.default")(
    reduction("ReduceLogSumExp")
)


def attributes(x: Value, dim: Axes, keepdim: bool) -> dict[str, Any]:
    """Return the attributes of a reduction of burn's domain."""
    axes = tuple(as_axes(dim)) if x.dims != () else ()
    return {"axes": axes or None, "keepdims": True if keepdim else None}


def quantifier(op_type: str) -> Rule:
    """Return the rule of a logical reduction (any, all)."""

    def apply(
        g: Builder, self: Value, dim: Axes = None, keepdim: bool = False
    ) -> Value:
        of = g.at(BOOL)
        attrs = attributes(self, dim, keepdim)
        return g.cast(of.op(op_type, is_nonzero(of, self), domain="burn", **attrs))

    return apply


for _name, _op in {"any": "Any", "all": "All"}.items():
    rule(
        *(f"aten.{_name}.{overload}" for overload in ("dim", "dims", "default")),
        f"aten._is_{_name}_true.default",
    )(quantifier(_op))


@rule("aten.sum_to_size.default")
def sum_to_size(g: Builder, self: Value, size: Sequence[int | Value]) -> Value:
    """Return sums over the axes that broadcasting from ``size`` would add or repeat."""
    added = self.rank - len(size)
    repeated = [added + axis for axis, extent in enumerate(size) if extent == 1]
    axes = [*range(added), *repeated]
    x = g.cast(self)
    total = g.op("ReduceSum", x, axes) if axes else x
    return g.op("Squeeze", total, [*range(added)]) if added else total


@rule("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(g: Builder, self: Value, dim: Axes = None) -> Value:
    return reduce(g, "ReduceSum", g.cast(is_nonzero(g, self), INT64), dim)


def replace_nan(g: Builder, x: Value) -> Value:
    """Return ``x`` with NaN replaced by 0."""
    of = g.at(x.dtype)
    numbers = of.op("Where", of.op("IsNaN", x), of.cast(0), x)
    return Value(numbers.name, x.dtype, x.dims)


@rule("aten.nansum.default")
def nansum(
    g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return reduce(g, "ReduceSum", replace_nan(g, g.cast(self)), dim, keepdim)


@rule("aten.nanmean.default")
def nanmean(
    g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    is_number = g.op("Not", g.op("IsNaN", self))
    count = reduce(g, "ReduceSum", g.cast(Value(is_number.name, BOOL)), dim, keepdim)
    return g.op("Div", nansum(g, self, dim, keepdim), count)


def arg(op_type: str) -> Rule:
    """Return the rule of argmax or argmin."""

    def apply(
        g: Builder, self: Value, dim: int | None = None, keepdim: bool = False
    ) -> Any:
        if self.rank == 0:
            return g.constant(0)
        if dim is not None:
            return g.op(op_type, self, axis=dim, keepdims=int(keepdim))
        flat = g.op("Reshape", self, [-1])
        if not keepdim:
            return g.op(op_type, flat, axis=0, keepdims=0)
        return g.op("Reshape", g.op(op_type, flat, axis=0), [1] * self.rank)

    return apply


rule("aten.argmax.default")(arg("ArgMax"))
rule("aten.argmin.default")(arg("ArgMin"))


def extreme(op_type: str) -> Rule:
    """Return the rule of a maximum or minimum along an axis with its index."""

    def apply(
        g: Builder, self: Value, dim: int, keepdim: bool = False
    ) -> tuple[Value, Value]:
        values = reduce(g, f"Reduce{op_type}", self, dim, keepdim)
        places = arg(f"Arg{op_type}")(g.at(INT64), self, dim, keepdim)
        return values, places

    return apply


rule("aten.max.dim")(extreme("Max"))
rule("aten.min.dim")(extreme("Min"))


@rule("aten.aminmax.default")
def aminmax(
    g: Builder, self: Value, dim: int | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    low = reduce(g, "ReduceMin", self, dim, keepdim)
    return low, reduce(g, "ReduceMax", self, dim, keepdim)


def spread(op_type: str) -> Rule:
    """Return the rule of a variance or standard deviation."""

    def apply(
        g: Builder,
        self: Value,
        dim: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: Operand = None,
    ) -> Value:
        removed = correction if correction is not None else int(unbiased)
        options = {"correction": removed if removed != 1 else None}
        options |= attributes(self, dim, keepdim)
        return g.op(op_type, self, domain="burn", **options)

    return apply


def with_mean(spread: Rule) -> Rule:
    """Return the rule of a variance or deviation together with the mean."""

    def apply(
        g: Builder,
        self: Value,
        dim: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: Operand = None,
    ) -> tuple[Value, Value]:
        moments = spread(g, self, dim, unbiased, keepdim, correction)
        return moments, reduce(g, "ReduceMean", self, dim, keepdim)

    return apply


var, std = spread("Var"), spread("Std")
for _name, _rule in {
    "var": var,
    "std": std,
    "var_mean": with_mean(var),
    "std_mean": with_mean(std),
}.items():
    _targets = (f"aten.{_name}.{kind}" for kind in ("correction", "dim", "default"))
    rule(*_targets)(_rule)
