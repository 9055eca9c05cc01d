"""Operands of convolutions as oneDNN has them: weights in groups, axes, geometry."""

from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.onednn.binding.api import Api, dims
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    channels_last,
    is_dense,
    strided,
)
from burn.backend.cpu.onednn.kernels.post_ops import After
from burn.ops.window import Windows


class Grouped(NamedTuple):
    """Weights in oneDNN's shape: [O, I, *K], or [G, O/G, I/G, *K] in groups."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def along(self, wins: Windows) -> "Grouped":
        """Return the weights without spatial axes of extent 1."""
        rank, axes = len(wins.size), long_axes(wins)
        extents, steps = (only(s, rank, axes) for s in (self.shape, self.strides))
        return Grouped(extents, steps, self.dtype)

    @classmethod
    def of_conv(cls, weight: Array, groups: int) -> "Grouped":
        """Return weights [O, I/G, *K] in groups."""
        shape, strides, dtype = weight.shape, weight.strides, weight.dtype
        if groups == 1:
            return cls(shape, strides, dtype)
        outputs = shape[0] // groups
        steps = (outputs * strides[0], *strides)
        return cls((groups, outputs, *shape[1:]), steps, dtype)

    @classmethod
    def of_transpose(cls, weight: Array, groups: int) -> "Grouped":
        """Return weights [I, O/G, *K] in groups."""
        (inputs, outputs, *kernel), (first, second, *rest) = (
            weight.shape,
            weight.strides,
        )
        within, dtype = inputs // groups, weight.dtype
        if groups == 1:
            return cls((outputs, inputs, *kernel), (second, first, *rest), dtype)
        extents = (groups, outputs, within, *kernel)
        return cls(extents, (within * first, second, first, *rest), dtype)


class Slots(NamedTuple):
    """The operands of a convolution, and the shape of its result.

    It is ``planned`` if it is part of a plan; its weights are ``constant`` if they are
    the same in each run and need no gradients. They are ``mirrored`` in space for a
    transposed convolution.
    """

    x: Array
    weight: Grouped
    bias: Array | None
    shape: tuple[int, ...]
    after: After = ()
    residual: Array | None = None
    in_place: bool = False
    planned: bool = False
    constant: bool = False
    mirrored: bool = False

    @property
    def has_plain_bias(self) -> bool:
        """Return whether the bias is absent, or dense with one number per channel."""
        bias = self.bias
        return bias is None or (bias.shape == self.shape[1:2] and is_dense(bias))


def long_axes(wins: Windows) -> tuple[int, ...]:
    """Return the spatial axes with more than one element, at least one axis.

    Without the other axes the convolution is the same and has faster code.
    """
    axes = [
        axis
        for axis, pad in enumerate(wins.pads)
        if {wins.size[axis], wins.kernel[axis], wins.count[axis]} != {1} or any(pad)
    ]
    return tuple(axes) or (0,)


def only(extents: tuple[int, ...], rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``extents`` (or strides) with only these of the spatial axes."""
    first = len(extents) - rank
    return (*extents[:first], *(extents[first + axis] for axis in axes))


def image(api: Api, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Handle:
    return strided(api, shape, channels_last(shape), dtype)


def geometry(wins: Windows, axes: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return strides, dilations and padding for oneDNN; None for negative padding."""
    if any(before < 0 for before, _ in wins.pads) or 0 in (*wins.count, *wins.size):
        return None
    return (
        dims(wins.stride[axis] for axis in axes),
        dims(wins.dilation[axis] - 1 for axis in axes),
        dims(wins.pads[axis][0] for axis in axes),
        dims(wins.pads[axis][1] for axis in axes),
    )
