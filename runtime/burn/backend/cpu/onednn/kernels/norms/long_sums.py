"""Batch norms in training over many pixels, whose sums are computed in parts.

oneDNN adds the pixels of a channel one after another in float32. The rounding error of
a mean or variance grows with their number: 2e-5 of the variance of 100 000 pixels, 8e-3
of six million. Here consecutive pixels are channels of their own, and the statistics of
these channels are combined in float64; the normalization is one more pass.
"""

from functools import partial
from math import isqrt, prod

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    BACKWARD,
    DIFF_DST,
    DIFF_SCALE,
    DIFF_SHIFT,
    DIFF_SRC,
    INFERENCE,
    MEAN,
    SCALE,
    SRC,
    TRAINING,
    USE_GLOBAL_STATS,
    USE_SCALE,
    USE_SHIFT,
    VARIANCE,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import (
    SINGLE,
    do,
    empty,
    empty_as,
    empty_like,
)
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    channels_last,
    strided,
)
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.kernels.norms.channel_scales import prepared_scales
from burn.backend.cpu.onednn.kernels.norms.normalization import prepared_batch_norm

#: The least number of pixels for which statistics are computed in parts, and that for
#: sums of gradients. An error in statistics changes signs before ReLU.
LEAST, LEAST_OF_GRADIENTS = 1 << 10, 1 << 15
#: With fewer parts the sums would not be much shorter.
_FEWEST = 8


def parts_of(shape: tuple[int, ...], least: int) -> int:
    """Return in how many parts the pixels of images [N, C, ...] are added, at least 1.

    It divides their number. Fewer pixels than ``least`` are one part.
    """
    pixels = shape[0] * prod(shape[2:])
    if pixels < least:
        return 1
    parts = next(p for p in range(isqrt(pixels), 0, -1) if pixels % p == 0)
    return parts if parts >= _FEWEST else 1


def divided(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Return the extents of channels-last memory with ``parts`` as many channels."""
    pixels = shape[0] * prod(shape[2:])
    return 1, parts * shape[1], 1, pixels // parts


class LongNorm:
    """A norm in training that also returns its statistics."""

    __slots__ = ("_norm", "_parts", "_statistics")

    def __init__(self, statistics: Prepared, norm: Prepared, parts: int) -> None:
        self._statistics, self._norm, self._parts = statistics, norm, parts

    @property
    def implementation(self) -> str:
        """Return the library's name of the implementation."""
        return self._statistics.description.implementation

    def run(self, x: Array, *affine: Array) -> tuple[Array, Array, Array]:
        """Return ``x`` normalized, in its memory order, the means and the variances."""
        channels = x.shape[1]
        out, mean, var = empty_as(x, SINGLE), empty((channels,)), empty((channels,))
        means, variances = (empty((self._parts, channels)) for _ in range(2))
        self._statistics.run(*map(address, (x, out, means, variances)))
        do(partial(combine, means, variances, mean, var))
        self._norm.run(*map(address, (x, out, mean, var, *affine)))
        return out, mean, var


def combine(means: Array, variances: Array, mean: Array, var: Array) -> None:
    """Set mean and variance [..., C] from those of equal parts [..., parts, C]."""
    wide = means.astype(np.float64)
    average = wide.mean(axis=-2)
    wide -= average[..., None, :]
    np.copyto(mean, average, casting="same_kind")
    spread = np.einsum("...pc,...pc->...c", wide, wide)
    spread += np.add.reduce(variances, axis=-2, dtype=np.float64)
    np.divide(spread, means.shape[-2], out=var, casting="same_kind")


class LongNormGrad:
    """The gradient of such a norm.

    The gradient of ``x`` is ``grad * scale + x * slope + shift`` for each channel.
    """

    __slots__ = ("_affine", "_epsilon", "_parts", "_sums")

    def __init__(
        self, sums: Prepared, affine: Prepared, parts: int, epsilon: float
    ) -> None:
        self._sums, self._affine = sums, affine
        self._parts, self._epsilon = parts, epsilon

    @property
    def implementation(self) -> str:
        """Return the library's name of the implementation."""
        return self._sums.description.implementation

    def run(
        self, grad: Array, x: Array, mean: Array, var: Array, weight: Array
    ) -> tuple[Array, Array, Array]:
        """Return the gradients of ``x``, in its memory order, of weight and of bias."""
        channels = x.shape[1]
        lines = [empty((self._parts, channels)) for _ in range(5)]
        given, sums = lines[:3], lines[3:]
        do(partial(_repeat, (mean, var, weight), given))
        out = empty_like(grad, x, mean, var, weight)
        self._sums.run(*map(address, (grad, x, *given, out, *sums)))
        results = [empty((channels,)) for _ in range(4)]
        pixels, parts = x.size // channels, (mean, var, weight)
        do(partial(_correction, sums, parts, results, pixels, self._epsilon))
        slope, shift, of_weight, of_bias = results
        self._affine.run(*map(address, (x, out, slope, shift, out)))
        return out, of_weight, of_bias


def _repeat(parts: tuple[Array, ...], lines: list[Array]) -> None:
    """Copy the numbers of channels to each line."""
    for part, line in zip(parts, lines, strict=True):
        line[...] = part


def _correction(
    sums: list[Array],
    parts: tuple[Array, ...],
    results: list[Array],
    pixels: int,
    epsilon: float,
) -> None:
    """Set slope and shift of the gradient of ``x``, and those of weight and bias."""
    of_weight, of_bias = (np.add.reduce(s, axis=0, dtype=np.float64) for s in sums)
    mean, var, weight = (part.astype(np.float64) for part in parts)
    inverse = 1.0 / np.sqrt(var + epsilon)
    scale = weight * inverse / pixels
    slope = -of_weight * scale * inverse
    shift = -of_bias * scale - mean * slope
    numbers = (slope, shift, of_weight, of_bias)
    for result, number in zip(results, numbers, strict=True):
        result[...] = number


def prepared_norm(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float, flags: int
) -> LongNorm | None:
    """Return the norm of channels-last images of ``shape``; None if unsupported."""
    parts = parts_of(shape, LEAST)
    statistics = prepared_batch_norm(
        primitives, divided(shape, parts), epsilon, 0, TRAINING
    )
    norm = prepared_batch_norm(
        primitives, shape, epsilon, flags | USE_GLOBAL_STATS, INFERENCE
    )
    if statistics is None or norm is None:
        return None
    return LongNorm(statistics, norm, parts)


def prepared_norm_grad(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float
) -> LongNormGrad | None:
    """Return the gradient of the norm of such images; None if unsupported."""
    parts = parts_of(shape, LEAST_OF_GRADIENTS)
    sums = prepared_batch_norm_grad(
        primitives, divided(shape, parts), epsilon, USE_GLOBAL_STATS
    )
    affine = prepared_scales(primitives, shape, adds_images=True)
    if sums is None or affine is None:
        return None
    return LongNormGrad(sums, affine, parts, epsilon)


def prepared_batch_norm_grad(
    primitives: Primitives, shape: tuple[int, ...], epsilon: float, flags: int = 0
) -> Prepared | None:
    """Return the gradients of ``x``, weight and bias of a batch norm in training."""
    api, flags = primitives.api, flags | USE_SCALE | USE_SHIFT
    image = strided(api, shape, channels_last(shape))
    hint = described(
        *(api, "batch_normalization_forward", api.engine, TRAINING),
        *(image, image, epsilon, flags),
    )
    description = hint and described(
        *(api, "batch_normalization_backward", api.engine, BACKWARD),
        *(image, image, image, epsilon, flags, hint.handle),
    )
    if description is None:
        return None
    line = strided(api, shape[1:2], (1,))
    operands: Operands = [(DIFF_DST, image), (SRC, image)]
    operands += [(MEAN, line), (VARIANCE, line), (SCALE, line)]
    operands += [(DIFF_SRC, image), (DIFF_SCALE, line), (DIFF_SHIFT, line)]
    return primitives.prepared(description, operands)
