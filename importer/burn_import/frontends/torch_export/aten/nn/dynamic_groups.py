"""Convolutions with a computed number of groups: weights per sample."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from burn_import.frontends.torch_export.builder import Builder, Value
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
