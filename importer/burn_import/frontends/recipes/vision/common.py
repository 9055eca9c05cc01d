"""Parts shared by recipes of networks on images."""

from __future__ import annotations

from burn.dtypes import name_of
from burn_import.frontends.recipes.graph_writer import BATCH, RecipeWriter
from burn_ir.dim import Dim, symbol

#: Extents of images that a network leaves open.
HEIGHT, WIDTH = symbol("height"), symbol("width")


def image(
    w: RecipeWriter, weight: str, *size: Dim, name: str = "image", groups: int = 1
) -> str:
    """The images ``[batch, channels, height, width]`` that a convolution reads.

    ``weight`` is the convolution's, which says how many channels and of which dtype;
    ``size`` is the height and the width, open by default.
    """
    key = w.key(weight)
    channels = w.shape(weight)[1] * groups
    dtype = name_of(w.weights.dtype(key))
    return w.input(name, dtype, BATCH, channels, *(size or (HEIGHT, WIDTH)))


def pooled(w: RecipeWriter, x: str) -> str:
    """The means over the space of ``[batch, channels, height, width]``, in rows."""
    return w.op("Flatten", w.op("GlobalAveragePool", x), axis=1)


def max_pool(
    w: RecipeWriter, x: str, kernel: int, stride: int, padding: int = 0
) -> str:
    """The largest element of each window."""
    return w.op(
        "MaxPool",
        x,
        kernel_shape=(kernel, kernel),
        strides=(stride, stride),
        pads=(padding,) * 4,
    )


def average_pool(w: RecipeWriter, x: str, kernel: int) -> str:
    """The mean of each of the windows beside each other."""
    window = (kernel, kernel)
    return w.op("AveragePool", x, kernel_shape=window, strides=window)


def relu(w: RecipeWriter, x: str) -> str:
    """``max(x, 0)``."""
    return w.op("Relu", x)


def groups_of(w: RecipeWriter, name: str, channels: int) -> int:
    """The groups of the convolution ``name`` that is given so many channels."""
    return channels // max(w.shape(f"{name}.weight")[1], 1)


def depthwise(w: RecipeWriter, name: str, x: str, stride: int = 1) -> str:
    """The convolution ``name`` of each channel by itself."""
    return w.conv(name, x, stride, groups=w.shape(f"{name}.weight")[0])


def channels_last(w: RecipeWriter, x: str) -> str:
    """``[batch, channels, height, width]`` with the channels last."""
    return w.op("Transpose", x, perm=(0, 2, 3, 1))


def channels_first(w: RecipeWriter, x: str) -> str:
    """``[batch, height, width, channels]`` with the channels behind the batch."""
    return w.op("Transpose", x, perm=(0, 3, 1, 2))


def norm_2d(w: RecipeWriter, name: str, x: str, eps: float) -> str:
    """Layer norm over the channels of ``[batch, channels, height, width]``."""
    return channels_first(w, w.layer_norm(name, channels_last(w, x), eps))
