"""Parts shared by recipes of networks for images."""

from burn.dtypes import name_of
from burn_import.frontends.recipes.graph_writer import BATCH, RecipeWriter
from burn_ir.dim import Dim, symbol

#: Symbolic extents of images.
HEIGHT, WIDTH = symbol("height"), symbol("width")


def image(
    w: RecipeWriter, weight: str, *size: Dim, name: str = "image", groups: int = 1
) -> str:
    """Add the input ``[batch, channels, height, width]`` that a convolution reads.

    ``weight`` is the convolution's weight, which determines channels and dtype;
    ``size`` is the height and the width, symbolic by default.
    """
    key = w.key(weight)
    channels = w.shape(weight)[1] * groups
    dtype = name_of(w.weights.dtype(key))
    return w.input(name, dtype, BATCH, channels, *(size or (HEIGHT, WIDTH)))


def pool(w: RecipeWriter, x: str) -> str:
    """Return the means over height and width, ``[batch, channels]``."""
    return w.op("Flatten", w.op("GlobalAveragePool", x), axis=1)


def max_pool(
    w: RecipeWriter, x: str, kernel: int, stride: int, padding: int = 0
) -> str:
    """Apply max pooling."""
    return w.op(
        "MaxPool",
        x,
        kernel_shape=(kernel, kernel),
        strides=(stride, stride),
        pads=(padding,) * 4,
    )


def average_pool(w: RecipeWriter, x: str, kernel: int) -> str:
    """Apply average pooling with a stride of the kernel size."""
    window = (kernel, kernel)
    return w.op("AveragePool", x, kernel_shape=window, strides=window)


def relu(w: RecipeWriter, x: str) -> str:
    """Return ``max(x, 0)``."""
    return w.op("Relu", x)


def groups_of(w: RecipeWriter, name: str, channels: int) -> int:
    """Return the groups of the convolution ``name`` with ``channels`` inputs."""
    return channels // max(w.shape(f"{name}.weight")[1], 1)


def depthwise(w: RecipeWriter, name: str, x: str, stride: int = 1) -> str:
    """Apply the depthwise convolution ``name``."""
    return w.conv(name, x, stride, groups=w.shape(f"{name}.weight")[0])


def channels_last(w: RecipeWriter, x: str) -> str:
    """Return ``[batch, channels, height, width]`` with the channels last."""
    return w.op("Transpose", x, perm=(0, 2, 3, 1))


def channels_first(w: RecipeWriter, x: str) -> str:
    """Return ``[batch, height, width, channels]`` with the channels first."""
    return w.op("Transpose", x, perm=(0, 3, 1, 2))


def norm_2d(w: RecipeWriter, name: str, x: str, eps: float) -> str:
    """Apply layer norm over the channels of ``[batch, channels, height, width]``."""
    return channels_first(w, w.layer_norm(name, channels_last(w, x), eps))
