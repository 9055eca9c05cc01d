"""Operands of generated kernels, which plans bind before they compile a kernel.

They are apart from the sources of the kernels, which the second call of a model need
not import.
"""

from typing import NamedTuple

from burn.ops.support import Array
from burn.ops.window import Windows

#: The kinds of activations: a clip, another piecewise linear function, and SiLU.
CLIP, SCALED, SILU = "clip", "scaled", "silu"
#: The fewest elements of a line, and the most lines of a sum, that a kernel is for.
LEAST_LINE, MOST_TAPS = 4, 16


class RowOperands(NamedTuple):
    """The operands of a layer on one row: x [I], weight [O, I], and out, bias and
    residual [O]; ``activation`` has the five numbers of a piecewise linear function.
    """

    x: Array
    weight: Array
    bias: Array | None
    residual: Array | None
    out: Array
    activation: Array


class Layer(NamedTuple):
    """Weights, a bias, the kind of the activation and its five numbers."""

    weight: Array
    bias: Array | None
    kind: str
    numbers: Array


class Expansion(NamedTuple):
    """The operands: image [N, H, W, I], weights [C, I] and [C, k, k], out [N, *, C]."""

    image: Array
    pointwise: Layer
    depthwise: Layer
    out: Array
    wins: Windows


class ResamplingOperands(NamedTuple):
    """The operands of a resampling: lines [batch, extent, size], the taps and weights
    [results, taps] of each result, and out [batch, results, size]. All are row-major.
    """

    lines: Array
    taps: Array
    weights: Array
    out: Array
