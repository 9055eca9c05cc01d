"""Integrals by the trapezoidal rule."""

from __future__ import annotations

from burn_import.frontends.torch_export.builder import Builder, Operand, Value
from burn_import.frontends.torch_export.registry import rule


@rule("aten.trapezoid.dx", "aten.trapz.dx")
def trapezoid(g: Builder, y: Value, dx: Operand = 1, dim: int = -1) -> Value:
    return g.op("ReduceSum", _areas(g, y, dx, dim), [dim], keepdims=0)


@rule("aten.trapezoid.x", "aten.trapz.x")
def trapezoid_at(g: Builder, y: Value, x: Value, dim: int = -1) -> Value:
    return trapezoid(g, y, _spacing(g, y, x, dim), dim)


@rule("aten.cumulative_trapezoid.dx")
def cumulative_trapezoid(g: Builder, y: Value, dx: Operand = 1, dim: int = -1) -> Value:
    return g.op("CumSum", _areas(g, y, dx, dim), y.axis(dim))


@rule("aten.cumulative_trapezoid.x")
def cumulative_trapezoid_at(g: Builder, y: Value, x: Value, dim: int = -1) -> Value:
    return cumulative_trapezoid(g, y, _spacing(g, y, x, dim), dim)


def _areas(g: Builder, y: Value, dx: Operand, dim: int) -> Value:
    """Return the areas between neighbors along an axis."""
    earlier, later = _neighbors(g, g.cast(y), dim)
    height = g.op("Add", later, earlier)
    return g.op("Mul", height, g.op("Mul", g.cast(dx), 0.5))


def _spacing(g: Builder, y: Value, x: Value, dim: int) -> Value:
    """Return the distances of neighbors in ``x``, which lies along an axis of ``y``."""
    axis = y.axis(dim) - y.rank
    earlier, later = _neighbors(g, g.cast(x), -1 if x.rank == 1 else axis)
    gaps = g.op("Sub", later, earlier)
    if x.rank == 1 and axis < -1:
        return g.op("Reshape", gaps, [-1, *[1] * (-1 - axis)])
    return gaps


def _neighbors(g: Builder, x: Value, dim: int) -> tuple[Value, Value]:
    """Return all elements along an axis but the last, and all but the first."""
    earlier = g.op("Slice", x, [0], [-1], [dim])
    return earlier, g.op("Slice", x, [1], [2**63 - 1], [dim])
