"""Pooling."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from burn_import.frontends.torch_export.aten.nn.conv import (
    Numbers,
    as_tuple,
    with_batch_axis,
)
from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel


def windows(
    count: int, kernel_size: Numbers, stride: Numbers, padding: Numbers, ceil_mode: bool
) -> dict[str, Any]:
    """Return the attributes of windows over ``count`` axes."""
    kernel = as_tuple(kernel_size, count)
    has_stride = isinstance(stride, int) or len(stride) > 0
    return {
        "kernel_shape": kernel,
        "strides": as_tuple(stride, count) if has_stride else kernel,
        "pads": as_tuple(padding, count) * 2,
        "ceil_mode": int(ceil_mode) or None,
    }


def max_pools(count: int) -> tuple[Rule, Rule]:
    """Return the rules of max pooling over ``count`` axes, without and with indices."""

    def attributes(dilation: Numbers, *options: Any) -> dict[str, Any]:
        return {**windows(count, *options), "dilations": as_tuple(dilation, count)}

    def plain(
        g: Builder,
        self: Value,
        kernel_size: Numbers,
        stride: Numbers = (),
        padding: Numbers = 0,
        dilation: Numbers = 1,
        ceil_mode: bool = False,
    ) -> Value:
        attrs = attributes(dilation, kernel_size, stride, padding, ceil_mode)
        return with_batch_axis(
            g, self, count + 2, lambda x: g.op("MaxPool", x, **attrs)
        )

    def with_places(
        g: Builder,
        self: Value,
        kernel_size: Numbers,
        stride: Numbers = (),
        padding: Numbers = 0,
        dilation: Numbers = 1,
        ceil_mode: bool = False,
    ) -> tuple[Value, Value]:
        attrs = attributes(dilation, kernel_size, stride, padding, ceil_mode)
        alone = self.rank == count + 1
        x = g.op("Unsqueeze", self, [0]) if alone else self
        values, places = g.many("MaxPool", 2, x, **attrs)
        places = in_plane(g, replace(places, dtype=INT64), self, count)
        if not alone:
            return values, places
        return g.op("Squeeze", values, [0]), g.op("Squeeze", places, [0])

    return plain, with_places


def in_plane(g: Builder, places: Value, x: Value, count: int) -> Value:
    """Return indices counted within each plane instead of over the whole tensor."""
    whole = g.at(INT64)
    extents = [g.extent(x, axis) for axis in range(-count, 0)]
    fixed = [extent for extent in extents if isinstance(extent, int)]
    size: int | Value = prod(fixed)
    for extent in extents:
        if isinstance(extent, Value):
            size = whole.op("Mul", extent, size)
    return whole.op("Mod", places, size)


for _count in (1, 2, 3):
    _plain, _with_places = max_pools(_count)
    rule(f"aten.max_pool{_count}d.default")(_plain)
    rule(f"aten.max_pool{_count}d_with_indices.default")(_with_places)


def avg_pool(count: int) -> Rule:
    """Return the rule of average pooling over ``count`` axes."""

    def apply(
        g: Builder,
        self: Value,
        kernel_size: Numbers,
        stride: Numbers = (),
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        attrs = windows(count, kernel_size, stride, padding, ceil_mode)
        counted = int(count_include_pad or divisor_override is not None)
        if divisor_override is not None and ceil_mode:
            raise UnsupportedModel("expected ceil_mode or divisor_override, got both")
        pooled = with_batch_axis(
            g,
            self,
            count + 2,
            lambda x: g.op("AveragePool", x, count_include_pad=counted, **attrs),
        )
        if divisor_override is None:
            return pooled
        return g.op("Mul", pooled, prod(attrs["kernel_shape"]) / divisor_override)

    return apply


for _count in (1, 2, 3):
    rule(f"aten.avg_pool{_count}d.default")(avg_pool(_count))


def adaptive_avg_pool(count: int) -> Rule:
    """Return the rule of adaptive average pooling over ``count`` axes."""

    def apply(g: Builder, self: Value, output_size: Numbers) -> Value:
        sizes = as_tuple(output_size, count)
        if any(isinstance(size, Value) for size in sizes):
            return with_batch_axis(
                *(g, self, count + 2),
                lambda x: g.op("AdaptiveAvgPool", x, g.ints(sizes), domain="burn"),
            )
        if all(size == 1 for size in sizes):
            return with_batch_axis(
                g, self, count + 2, lambda x: g.op("GlobalAveragePool", x)
            )
        return with_batch_axis(
            g,
            self,
            count + 2,
            lambda x: g.op("AdaptiveAvgPool", x, domain="burn", output_size=sizes),
        )

    return apply


for _count in (1, 2, 3):
    rule(
        f"aten.adaptive_avg_pool{_count}d.default",
        *([f"aten._adaptive_avg_pool{_count}d.default"] if _count > 1 else []),
    )(adaptive_avg_pool(_count))


def adaptive_max_pool(count: int) -> Rule:
    """Return the rule of adaptive max pooling over ``count`` axes."""

    def apply(g: Builder, self: Value, output_size: Numbers) -> tuple[Value, Value]:
        sizes = as_tuple(output_size, count)
        alone = self.rank == count + 1
        x = g.op("Unsqueeze", self, [0]) if alone else self
        values, places = _adaptive_maxima(g, x, sizes)
        if not alone:
            return values, places
        return g.op("Squeeze", values, [0]), g.at(INT64).op("Squeeze", places, [0])

    return apply


def _adaptive_maxima(
    g: Builder, x: Value, sizes: Sequence[int | Value]
) -> tuple[Value, Value]:
    """Return the maxima of windows, and their indices in the plane."""
    if all(isinstance(size, int) and size == 1 for size in sizes):
        axes = list(range(2, 2 + len(sizes)))
        flat, whole = g.op("Reshape", x, [0, 0, -1]), g.at(INT64)
        places = whole.op("ArgMax", flat, axis=-1)
        rest = axes[1:]
        places = whole.op("Unsqueeze", places, rest) if rest else places
        return g.op("ReduceMax", x, axes), places
    operands: tuple[Value, ...] = (x,)
    attrs: dict[str, Any] = {"output_size": tuple(sizes)}
    if any(isinstance(size, Value) for size in sizes):
        operands, attrs = (x, g.ints(sizes)), {}
    values, places = g.many("AdaptiveMaxPool", 2, *operands, domain="burn", **attrs)
    return values, replace(places, dtype=INT64)


for _count in (1, 2, 3):
    rule(f"aten.adaptive_max_pool{_count}d.default")(adaptive_max_pool(_count))


@rule("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def max_unpool(
    g: Builder,
    self: Value,
    indices: Value,
    output_size: Sequence[int | Value],
    stride: Numbers = (),
    padding: Numbers = (),
) -> Value:
    """Return zeros, with elements at indices counted within each plane."""
    count = len(output_size)
    lead = [g.extent(self, axis) for axis in range(self.rank - count)]
    flat = [0] * len(lead) + [-1]
    zeros = g.op("Expand", g.cast(0), [*lead, *output_size])
    result = g.op(
        "ScatterElements",
        g.op("Reshape", zeros, flat),
        g.op("Reshape", indices, flat),
        g.op("Reshape", self, flat),
        axis=-1,
    )
    return g.op("Reshape", result, [*lead, *output_size])
