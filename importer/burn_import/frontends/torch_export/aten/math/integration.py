"""Integrals by the trapezoidal rule, and derivatives by differences."""

from collections.abc import Sequence
from typing import Any

from burn_import.frontends.torch_export.builder import Builder, Operand, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


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


@rule("aten.gradient.scalarint", "aten.gradient.scalararray", "aten.gradient.array")
@rule("aten.gradient.scalarrayint", "aten.gradient.scalarrayarray")
@rule("aten.gradient.tensorarrayint", "aten.gradient.tensorarray")
def gradient(
    g: Builder,
    self: Value,
    spacing: float | Sequence[Operand] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> list[Value]:
    """Return the derivatives along axes by central differences.

    ``spacing`` is the distance of neighbors, or the coordinates along each axis.
    """
    if edge_order == 2 and any(isinstance(x, Value) for x in as_tuple(spacing)):
        raise UnsupportedModel("gradient: expected edge_order 1 with coordinates")
    x = g.cast(self)
    axes = range(self.rank) if dim is None else as_tuple(dim)
    steps = (1.0,) if spacing is None else as_tuple(spacing)
    steps = steps * len(axes) if len(steps) == 1 else steps
    return [
        _derivative(g, x, self.axis(axis), step, edge_order)
        for axis, step in zip(axes, steps, strict=True)
    ]


def as_tuple(numbers: Any) -> tuple[Any, ...]:
    """Return one number, or a list of them, as a tuple."""
    return tuple(numbers) if isinstance(numbers, Sequence) else (numbers,)


def _derivative(g: Builder, x: Value, axis: int, step: Operand, order: int) -> Value:
    """Return central differences, and one-sided ones of an order at both ends."""
    if isinstance(step, Value):
        return _derivative_at(g, x, axis, step)

    def part(start: int, end: int) -> Value:
        return g.op("Slice", x, [start], [end], [axis])

    first = g.op("Sub", part(1, 2), part(0, 1))
    inner = g.op("Mul", g.op("Sub", part(2, 2**63 - 1), part(0, -2)), 0.5)
    last = g.op("Sub", part(-1, 2**63 - 1), part(-2, -1))
    if order == 2:
        second = g.op("Sub", part(2, 3), part(1, 2))
        first = _extrapolated(g, first, second)
        last = _extrapolated(g, last, g.op("Sub", part(-2, -1), part(-3, -2)))
    differences = g.op("Concat", first, inner, last, axis=axis)
    return differences if step == 1 else g.op("Div", differences, step)


def _extrapolated(g: Builder, outer: Value, inner: Value) -> Value:
    """Return the slope at an end, given those of the two intervals next to it."""
    return g.op("Sub", g.op("Mul", outer, 1.5), g.op("Mul", inner, 0.5))


def _derivative_at(g: Builder, x: Value, axis: int, coordinates: Value) -> Value:
    """Return the derivative where neighbors have unequal distances.

    Between the ends it is the mean of the slopes on both sides, each weighted by the
    distance on the other side.
    """
    gaps = _spacing(g, x, coordinates, axis)
    slopes = g.op("Div", g.op("Sub", *reversed(_neighbors(g, x, axis))), gaps)
    before, after = _neighbors(g, gaps, axis - x.rank)
    left, right = _neighbors(g, slopes, axis)
    sum_ = g.op("Add", g.op("Mul", left, after), g.op("Mul", right, before))
    inner = g.op("Div", sum_, g.op("Add", before, after))
    first = g.op("Slice", slopes, [0], [1], [axis])
    last = g.op("Slice", slopes, [-1], [2**63 - 1], [axis])
    return g.op("Concat", first, inner, last, axis=axis)
