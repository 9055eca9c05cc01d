"""Batch norms by constant statistics, as a product and a sum per channel.

oneDNN's batch norm without AVX-512 reads channels-last images by blocks of eight
channels. If the channels of a pixel fill a multiple of 512 bytes, the lines of a block
fall into few sets of the cache: for [1, 1024, 14, 14] inside of DenseNet-121 that took
40 times as long as one pass in memory order, and alone twice as long.
"""

from typing import Any

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    BINARY_ADD,
    BINARY_MUL,
    DST,
    POST_OPERATION,
    RELU,
    SRC,
    SRC_1,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import may_round, noting
from burn.backend.cpu.onednn.binding.memory import Array, channels_last, strided
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    PostOps,
    Prepared,
    described,
)
from burn.ops.fused import scaled_weight, shifted_bias

#: The bytes of a pixel's channels whose multiples make batch norm slow, by measurement.
_CONFLICTING = 512
#: The prefix of the implementations that read blocks of channels.
_BY_BLOCKS = ("bnorm_jit:avx2", "bnorm_jit:sse41")


def reads_few_sets(x: Array, implementation: str) -> bool:
    """Return whether a batch norm of ``x`` uses few sets of the cache."""
    row = x.shape[1] * x.itemsize
    return implementation in _BY_BLOCKS and row % _CONFLICTING == 0


def scale_and_shift(
    parts: tuple[Array | None, ...], epsilon: float
) -> tuple[Array, Array] | None:
    """Return the constant factor and addend of each channel for a batch norm.

    None outside of plans, and if the statistics or weights may change or a gradient
    depends on the result.
    """
    notes = noting()
    if notes is None or not all(part is None or may_round(part) for part in parts):
        return None
    mean, var, weight, bias = parts
    ones = np.ones_like(mean)
    scale: Array = scaled_weight.kernel(ones, var, weight, epsilon=epsilon)
    shift: Array = shifted_bias.kernel(None, mean, var, weight, bias, epsilon=epsilon)
    for constant in (scale, shift):
        notes.keep(constant, constant=True)
    return scale, shift


def prepared_scales(
    primitives: Primitives,
    shape: tuple[int, ...],
    *,
    has_relu: bool = False,
    adds_images: bool = False,
) -> Prepared | None:
    """Return the product of channels-last images and factors, plus addends.

    The addresses are those of the images, the result, the factors and the addends, and
    of other images if these are added, too.
    """
    api = primitives.api
    image = strided(api, shape, channels_last(shape))
    extents = (1, shape[1], *(1 for _ in shape[2:]))
    line = strided(api, extents, channels_last(extents))
    post = PostOps(api)
    post.binary(BINARY_ADD, line)
    if adds_images:
        post.binary(BINARY_ADD, image)
    if has_relu:
        post.activation(RELU)
    description: Any = described(
        *(api, "binary", api.engine, BINARY_MUL, image, line, image), post=post
    )
    if description is None:
        return None
    operands: Operands = [(SRC, image), (DST, image), (SRC_1, line)]
    operands.append((POST_OPERATION | SRC_1, line))
    if adds_images:
        operands.append((2 * POST_OPERATION | SRC_1, image))
    return primitives.prepared(description, operands)
