"""Convolutions with non-overlapping windows, as matrix products.

Networks that begin with patches read each pixel of an image with few channels once.
cuDNN first pads the channels of such images, and has slow kernels for them.
"""

from math import prod

from burn.backend.cuda.kernels.convolution.convolution import Geometry
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.backend.cuda.kernels.products.products import (
    are_multiplied,
    is_epilogue,
    multiply,
)
from burn.ops.support import Array

#: The maximum number of channels; cuDNN computes convolutions of more.
_CHANNELS = 8


def are_patches(geometry: Geometry) -> bool:
    """Return whether windows are adjacent, on images of few channels."""
    return (
        len(geometry.stride) == 2
        and geometry.stride == geometry.weight[2:]
        and geometry.weight[1] == geometry.image[1] < _CHANNELS
        and prod(geometry.stride) > 1
        and not any(geometry.padding)
    )


def convolve_patches(
    x: Array, weight: Array, bias: Array | None, geometry: Geometry
) -> Array | None:
    """Return the convolution, channels-last in memory; None if it is no product."""
    import cupy

    if x.ndim != 4 or not are_multiplied(x, weight):
        return None
    if bias is not None and not is_epilogue(bias, weight):
        return None
    (batch, channels, _, _), (tall, wide) = x.shape, geometry.stride
    outputs, rows, columns = geometry.result[1:]
    step, plane, down, across = x.strides
    windows = cupy.lib.stride_tricks.as_strided(
        x,
        (batch, rows, columns, channels, tall, wide),
        (step, tall * down, wide * across, plane, down, across),
    )
    patches = dense(windows).reshape(batch * rows * columns, channels * tall * wide)
    factors = weight.reshape(outputs, -1)
    out = multiply(patches, factors.T, bias)
    if out is None:
        return None
    result: Array = out.reshape(batch, rows, columns, outputs).transpose(0, 3, 1, 2)
    return result
