"""Counts of equal elements, and cumulative extremes."""

from dataclasses import replace
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.math.elementwise import info
from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
    check_integers,
    kind_of,
)
from burn_import.frontends.torch_export.registry import Rule, rule


def summed_at(g: Builder, index: Value, updates: Value, count: int | Value) -> Value:
    """Return the sums of the updates at each of ``count`` indices."""
    zeros = g.op("Expand", g.cast(0), [count])
    return g.op("ScatterElements", zeros, index, updates, axis=0, reduction="add")


@rule("aten.bincount.default")
def bincount(
    g: Builder, self: Value, weights: Value | None = None, minlength: int | Value = 0
) -> Value:
    """Count each number, or sum the weights at its positions."""
    check_integers("bincount", self)
    of = g.at(INT64)
    index = replace(of.cast(self), dims=None)
    # The lowest number, since an empty tensor has no maximum.
    largest = of.op("ReduceMax", of.op("Concat", index, [-1], axis=0), keepdims=0)
    count = of.op("Max", of.op("Add", largest, 1), of.value(minlength, INT64))
    if weights is not None:
        return summed_at(g, index, g.cast(weights), count)
    ones = g.op("Expand", g.cast(1), of.op("Shape", self))
    return summed_at(g, index, ones, count)


@rule("aten.histc.default")
def histc(
    g: Builder, self: Value, bins: int = 100, min: float = 0, max: float = 0
) -> Value:
    """Count the elements in equal bins between two numbers."""
    x = g.op("Reshape", self, [-1])
    low, high = g.cast(min), g.cast(max)
    if min == max:
        low, high = (g.op(f"Reduce{end}", x, keepdims=0) for end in ("Min", "Max"))
        same = g.at(BOOL).op("Equal", low, high)
        low = g.op("Where", same, g.op("Sub", low, 1), low)
        high = g.op("Where", same, g.op("Add", high, 1), high)
    step = g.op("Div", g.op("Mul", g.op("Sub", x, low), bins), g.op("Sub", high, low))
    above = g.at(BOOL).op("GreaterOrEqual", x, low)
    inside = g.at(BOOL).op("And", above, g.at(BOOL).op("LessOrEqual", x, high))
    near = g.op("Where", inside, g.op("Min", g.op("Floor", step), bins - 1), g.cast(0))
    index = g.at(INT64).cast(near)
    return summed_at(g, index, g.cast(replace(inside, dims=None)), bins)


@rule("aten.mode.default")
def mode(
    g: Builder, self: Value, dim: int = -1, keepdim: bool = False
) -> tuple[Value, Value]:
    """Return the most frequent element along an axis, and its last index.

    Of several, it is the smallest. Every element is compared with all others.
    """
    if self.rank == 0:
        return self, g.at(INT64).constant(0)
    axis = self.axis(dim)
    whole, test = g.at(INT64), g.at(BOOL)
    pairs = [g.op("Unsqueeze", self, [axis + offset]) for offset in (0, 1)]
    counts = whole.op(
        "ReduceSum", whole.cast(test.op("Equal", *pairs)), [axis], keepdims=0
    )
    most = whole.op("ReduceMax", counts, [axis], keepdims=1)
    modes = g.op(
        "Where", test.op("Equal", counts, most), self, g.cast(_least(g, False))
    )
    value = g.op("ReduceMin", modes, [axis], keepdims=1)
    is_mode = whole.cast(replace(test.op("Equal", self, value), dims=None))
    options: dict[str, Any] = {"keepdims": int(keepdim), "select_last_index": 1}
    index = whole.op("ArgMax", is_mode, axis=axis, **options)
    return (value if keepdim else g.op("Squeeze", value, [axis])), index


def running(largest: bool) -> Rule:
    """Return the rule of a cumulative maximum or minimum, with its last index.

    Every element is compared with all earlier ones, since ONNX has no such scan.
    """

    def apply(g: Builder, self: Value, dim: int) -> Any:
        if self.rank == 0:
            return self, g.constant(0)
        axis = self.axis(dim)
        line = multiples(g, g.extent(self, axis))
        here = g.at(INT64).op("Unsqueeze", line, [1])
        before = g.at(BOOL).op("LessOrEqual", line, here)
        behind = [1] * (self.rank - 1 - axis)
        shape = [*([0, 0]), *behind]
        mask = g.at(BOOL).op("Reshape", before, shape) if behind else before
        wide = g.op("Unsqueeze", self, [axis])
        earlier = g.op("Where", mask, wide, g.cast(_least(g, largest)))
        name = "Max" if largest else "Min"
        values = g.op(f"Reduce{name}", earlier, [axis + 1], keepdims=0)
        options: dict[str, Any] = {
            "axis": axis + 1,
            "keepdims": 0,
            "select_last_index": 1,
        }
        return values, g.at(INT64).op(f"Arg{name}", earlier, **options)

    return apply


def _least(g: Builder, largest: bool) -> Operand:
    """Return the neutral element of a maximum or minimum."""
    if kind_of(g.dtype) == kind_of(FLOAT32):
        return -np.inf if largest else np.inf
    numbers = info(g) if g.dtype.kind == "f" else np.iinfo(g.dtype)
    return int(numbers.min if largest else numbers.max)


rule("aten.cummax.default")(running(True))
rule("aten.cummin.default")(running(False))
