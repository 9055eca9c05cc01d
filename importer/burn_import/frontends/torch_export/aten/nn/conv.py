"""Convolutions, and their decomposition into columns (im2col)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


def conv_in_groups(
    g: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    groups: Value,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> Value:
    """Return the convolution as a matrix product for each group.

    ``x`` is [n, groups * c, *size], ``weight`` [groups * o, c, *kernel]; ``windows``
    are strides, pads at both ends, and dilations.

    Raises:
        UnsupportedModel: extents of the windows are not fixed.
    """
    dims, kernel = x.dims or (), (weight.dims or ())[1:]
    size = [n for n in dims[2:] if isinstance(n, int)]
    inner = [n for n in kernel if isinstance(n, int)]
    if len(size) < x.rank - 2 or len(inner) < weight.rank - 1:
        raise UnsupportedModel(
            "expected images and kernels of fixed extents where groups vary"
        )
    strides, pads, dilations = windows
    options = {"strides": strides, "pads": pads, "dilations": dilations}
    attributes = {key: tuple(numbers) for key, numbers in options.items()}
    images = g.op("Reshape", x, [-1, inner[0], *size])
    shape = tuple(inner[1:])
    columns = g.op("Im2Col", images, domain="burn", kernel_shape=shape, **attributes)
    parts = g.op("Reshape", columns, [g.extent(x, 0), groups, prod(inner), -1])
    result = g.op("MatMul", g.op("Reshape", weight, [groups, -1, prod(inner)]), parts)
    result = g.op(
        "Reshape", result, [g.extent(x, 0), -1, *counts(size, shape, *windows)]
    )
    if bias is None:
        return result
    ones = [1] * len(size)
    return g.op("Add", result, g.op("Reshape", bias, [-1, *ones]))


def counts(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """Return the number of windows along each axis."""
    extents = []
    for axis, extent in enumerate(size):
        padded = extent + pads[axis] + pads[axis + len(size)]
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        extents.append((padded - reach) // strides[axis] + 1)
    return extents


Numbers = int | Sequence[int]


def as_tuple(numbers: Numbers, count: int) -> tuple[int, ...]:
    """Return one number for each of ``count`` axes."""
    values = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return values * count if len(values) == 1 else values


def with_batch_axis(
    g: Builder, x: Value, rank: int, apply: Callable[[Value], Value]
) -> Value:
    """Apply ``apply`` to ``x``; a single sample becomes a batch of one."""
    if x.rank == rank:
        return apply(x)
    if x.rank != rank - 1:
        raise UnsupportedModel(f"expected rank {rank - 1} or {rank}, got {x.rank}")
    batch = g.at(x.dtype).op("Unsqueeze", x, [0])
    dims = None if x.dims is None else (1, *x.dims)
    return g.op("Squeeze", apply(replace(batch, dims=dims)), [0])


@rule(
    "aten.conv1d.default",
    "aten.conv2d.default",
    "aten.conv3d.default",
    "aten.conv1d.padding",
    "aten.conv2d.padding",
    "aten.conv3d.padding",
)
def conv(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int | Value = 1,
) -> Value:
    count = weight.rank - 2
    attrs: dict[str, Any] = {
        "strides": as_tuple(stride, count),
        "pads": pads_of(weight, padding, as_tuple(dilation, count)),
        "dilations": as_tuple(dilation, count),
        "group": groups,
    }
    if isinstance(groups, Value):
        windows = (attrs["strides"], attrs["pads"], attrs["dilations"])
        return conv_in_groups(g, input, weight, bias, groups, windows)
    return with_batch_axis(
        g,
        g.cast(input),
        weight.rank,
        lambda x: g.op("Conv", x, *cast_all(g, weight, bias), **attrs),
    )


def cast_all(g: Builder, *operands: Value | None) -> list[Value | None]:
    """Return the operands in the dtype of the result, which autocast may change."""
    return [None if x is None else g.cast(x) for x in operands]


def pads_of(
    weight: Value, padding: Numbers | str, dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return the padding before, then after each axis."""
    count = weight.rank - 2
    if padding == "valid":
        return (0,) * (2 * count)
    if padding != "same":
        assert not isinstance(padding, str)
        return as_tuple(padding, count) * 2
    kernel = (weight.dims or ())[2:]
    if not all(isinstance(size, int) for size in kernel):
        raise UnsupportedModel("expected a kernel of known extents for padding 'same'")
    total = [d * (int(str(k)) - 1) for d, k in zip(dilation, kernel, strict=True)]
    return (*(n // 2 for n in total), *(n - n // 2 for n in total))


@rule("aten.conv_transpose1d.default")
@rule("aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int | Value = 1,
    dilation: Numbers = 1,
) -> Value:
    if isinstance(groups, Value):
        raise UnsupportedModel("expected a fixed number of groups, got a computed one")
    count = weight.rank - 2
    attrs: dict[str, Any] = {
        "strides": as_tuple(stride, count),
        "pads": as_tuple(padding, count) * 2,
        "dilations": as_tuple(dilation, count),
        "output_padding": as_tuple(output_padding, count),
        "group": groups,
    }
    return with_batch_axis(
        g,
        g.cast(input),
        weight.rank,
        lambda x: g.op("ConvTranspose", x, *cast_all(g, weight, bias), **attrs),
    )


@rule("aten.convolution.default", "aten._convolution.default")
def convolution(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int | Value,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Value:
    if not transposed:
        return conv(g, input, weight, bias, stride, padding, dilation, groups)
    rest = (padding, output_padding, groups, dilation)
    return conv_transpose(g, input, weight, bias, stride, *rest)


@rule("aten.im2col.default")
def im2col(
    g: Builder,
    self: Value,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    stride: Numbers = 1,
) -> Value:
    attrs: dict[str, Any] = {
        "kernel_shape": as_tuple(kernel_size, 2),
        "dilations": as_tuple(dilation, 2),
        "pads": as_tuple(padding, 2) * 2,
        "strides": as_tuple(stride, 2),
    }
    return with_batch_axis(
        g, self, 4, lambda x: g.op("Im2Col", x, domain="burn", **attrs)
    )


@rule("aten.col2im.default")
def col2im(
    g: Builder,
    self: Value,
    output_size: Sequence[int | Value],
    kernel_size: Numbers,
    dilation: Numbers,
    padding: Numbers,
    stride: Numbers,
) -> Value:
    attrs: dict[str, Any] = {
        "dilations": as_tuple(dilation, 2),
        "pads": as_tuple(padding, 2) * 2,
        "strides": as_tuple(stride, 2),
    }
    kernel = list(as_tuple(kernel_size, 2))
    return with_batch_axis(
        g, self, 3, lambda x: g.op("Col2Im", x, list(output_size), kernel, **attrs)
    )


@rule("aten.conv_tbc.default")
def conv_tbc(
    g: Builder, self: Value, weight: Value, bias: Value, pad: int = 0
) -> Value:
    """Return the convolution of ``self`` [time, batch, channels] along time.

    ``weight`` is [kernel, channels, output channels].
    """
    x = g.op("Transpose", self, perm=(1, 2, 0))
    kernel = g.op("Transpose", weight, perm=(2, 1, 0))
    out = g.op("Conv", x, kernel, bias, pads=(pad, pad))
    return g.op("Transpose", out, perm=(2, 0, 1))
