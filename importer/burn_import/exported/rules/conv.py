"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_import.exported.builder import Builder, Value
from burn_import.exported.table import rule
from burn_ir import UnsupportedModel

Pairs = int | Sequence[int]


def several(numbers: Pairs, count: int) -> tuple[int, ...]:
    """One number for each of ``count`` axes."""
    values = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return values * count if len(values) == 1 else values


@rule("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Pairs = 1,
    padding: Pairs = 0,
    dilation: Pairs = 1,
    groups: int = 1,
) -> Value:
    count = weight.rank - 2
    if input.rank != weight.rank:
        raise UnsupportedModel("a convolution without a batch axis")
    pads = several(padding, count)
    return g.op(
        "Conv",
        input,
        weight,
        bias,
        strides=several(stride, count),
        pads=pads + pads,
        dilations=several(dilation, count),
        group=groups,
    )


@rule("aten.convolution.default", "aten._convolution.default")
def convolution(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Pairs,
    padding: Pairs,
    dilation: Pairs,
    transposed: bool,
    output_padding: Pairs,
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = True,
    allow_tf32: bool = True,
) -> Value:
    if not transposed:
        return conv(g, input, weight, bias, stride, padding, dilation, groups)
    count = weight.rank - 2
    pads = several(padding, count)
    return g.op(
        "ConvTranspose",
        input,
        weight,
        bias,
        strides=several(stride, count),
        pads=pads + pads,
        dilations=several(dilation, count),
        output_padding=several(output_padding, count),
        group=groups,
    )


@rule("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")
def max_pool(
    g: Builder,
    self: Value,
    kernel_size: Pairs,
    stride: Pairs = (),
    padding: Pairs = 0,
    dilation: Pairs = 1,
    ceil_mode: bool = False,
) -> Value:
    count = self.rank - 2
    kernel, pads = several(kernel_size, count), several(padding, count)
    strides = several(stride, count) if stride not in ((), []) else kernel
    return g.op(
        "MaxPool",
        self,
        kernel_shape=kernel,
        strides=strides,
        pads=pads + pads,
        dilations=several(dilation, count),
        ceil_mode=int(ceil_mode),
    )


@rule("aten.max_pool2d_with_indices.default")
def max_pool_with_indices(
    g: Builder,
    self: Value,
    kernel_size: Pairs,
    stride: Pairs = (),
    padding: Pairs = 0,
    dilation: Pairs = 1,
    ceil_mode: bool = False,
) -> Any:
    made = max_pool(g, self, kernel_size, stride, padding, dilation, ceil_mode)
    return made, None


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default")
def avg_pool(
    g: Builder,
    self: Value,
    kernel_size: Pairs,
    stride: Pairs = (),
    padding: Pairs = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    if divisor_override is not None:
        raise UnsupportedModel("avg_pool with divisor_override")
    count = self.rank - 2
    kernel, pads = several(kernel_size, count), several(padding, count)
    strides = several(stride, count) if stride not in ((), []) else kernel
    return g.op(
        "AveragePool",
        self,
        kernel_shape=kernel,
        strides=strides,
        pads=pads + pads,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
    )


@rule(
    "aten.adaptive_avg_pool1d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool2d.default",
)
def adaptive_avg_pool(g: Builder, self: Value, output_size: Pairs) -> Value:
    count = self.rank - 2
    sizes = several(output_size, count)
    if all(size == 1 for size in sizes):
        return g.op("GlobalAveragePool", self)
    assert self.dims is not None
    extents = [d for d in self.dims[2:] if isinstance(d, int)]
    fits = [e % s == 0 for e, s in zip(extents, sizes, strict=False)]
    if len(extents) != count or not all(fits):
        raise UnsupportedModel(
            f"adaptive pooling to {list(sizes)}, which does not divide the extents"
        )
    kernel = tuple(e // s for e, s in zip(extents, sizes, strict=True))
    return g.op("AveragePool", self, kernel_shape=kernel, strides=kernel)
