"""Convolutions, and their decomposition into columns (im2col)."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, Extent, case, f32
from tests.importer.aten.nn.windows import Ints, convolved, spread

LINE, IMAGE, BLOCK = f32("n", 4, 9), f32("n", 4, 7, 8), f32("n", 2, 5, 4, 6)


def conv(
    stride: Ints,
    pads: Any,
    dilation: Ints,
    groups: int = 1,
) -> Any:
    """Return the convolution, with or without a bias."""

    def run(x: Array, w: Array, b: Array | None = None) -> Array:
        return convolved(x, w, b, stride, pads, dilation, groups)

    return run


def transposed(
    stride: Ints, padding: Ints, dilation: Ints, more: Ints, groups: int = 1
) -> Any:
    """Return the transposed convolution, with or without a bias."""

    def run(x: Array, w: Array, b: Array | None = None) -> Array:
        out = spread(x, w, stride, padding, dilation, more, groups)
        return out if b is None else out + b.reshape(-1, *(1 for _ in stride))

    return run


def time_first(x: Array, w: Array, b: Array) -> Array:
    """Return the convolution of sequences [time, batch, channels], padded by 1."""
    rows, kernel = x.transpose(1, 2, 0), w.transpose(2, 1, 0)
    return convolved(rows, kernel, b, [1], [(1, 1)], [1]).transpose(2, 0, 1)


def columns(x: Array, kernel: Ints, stride: int, padding: int) -> Array:
    """Return the windows of images as columns."""
    padded = np.pad(x, [(0, 0), (0, 0), *[(padding, padding)] * 2])
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
    view = view[:, :, ::stride, ::stride]
    n, c, h, w = view.shape[:4]
    return view.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kernel[0] * kernel[1], h * w)


def summed(x: Array) -> Array:
    """Return 2 x 2 blocks with stride 1, added up to images of 3 x 4."""
    out = np.zeros((len(x), x.shape[1] // 4, 3, 4), x.dtype)
    blocks = x.reshape(len(x), -1, 2, 2, 2, 3)
    for i, j in np.ndindex(2, 2):
        out[:, :, i : i + 2, j : j + 3] += blocks[:, :, i, j]
    return out


def each_by_its_own(x: Array, w: Array, b: Array) -> Array:
    """Return the depthwise convolution with strides 2 and 1."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    result = np.einsum("nchwij,cij->nchw", windows[:, :, ::2], w[:, 0])
    return np.asarray(result + b[:, None, None]).astype(x.dtype)


CASES: tuple[Case, ...] = (
    case(
        "conv2d.default",
        each_by_its_own,
        label="groups",
        input=f32("n", 3, 6, 5),
        weight=f32(3, 1, 3, 2),
        bias=f32(3),
        stride=[2, 1],
        padding=[1, 0],
        groups=Extent(1),
    ),
    case(
        "conv1d.default",
        conv([2], [(1, 1)], [2]),
        input=LINE,
        weight=f32(6, 4, 3),
        bias=f32(6),
        stride=[2],
        padding=[1],
        dilation=[2],
    ),
    case(
        "conv1d.default",
        lambda x, w: conv([1], [(0, 0)], [1])(x[None], w)[0],
        label="alone",
        input=f32(4, 9),
        weight=f32(6, 4, 3),
    ),
    case(
        "conv1d.padding",
        conv([1], [(1, 2)], [1]),
        input=LINE,
        weight=f32(6, 4, 4),
        bias=f32(6),
        padding="same",
    ),
    case(
        "conv2d.default",
        conv([2, 1], [(1, 1), (0, 0)], [1, 2], 2),
        input=IMAGE,
        weight=f32(6, 2, 3, 2),
        bias=f32(6),
        stride=[2, 1],
        padding=[1, 0],
        dilation=[1, 2],
        groups=2,
    ),
    case(
        "conv2d.default",
        conv([1, 1], [(0, 0), (0, 0)], [1, 1], 4),
        label="depthwise",
        input=IMAGE,
        weight=f32(4, 1, 3, 3),
        bias=None,
        groups=4,
    ),
    case(
        "conv2d.padding",
        conv([1, 1], [(2, 2), (1, 1)], [2, 1]),
        input=IMAGE,
        weight=f32(3, 4, 3, 3),
        padding="same",
        dilation=[2, 1],
    ),
    case(
        "conv2d.padding",
        conv([2, 2], [(0, 0), (0, 0)], [1, 1]),
        label="valid",
        input=IMAGE,
        weight=f32(3, 4, 3, 3),
        stride=[2, 2],
        padding="valid",
    ),
    case(
        "conv3d.default",
        conv([1, 2, 1], [(1, 1), (0, 0), (1, 1)], [1, 1, 1]),
        input=BLOCK,
        weight=f32(3, 2, 2, 3, 3),
        bias=f32(3),
        stride=[1, 2, 1],
        padding=[1, 0, 1],
    ),
    case(
        "convolution.default",
        conv([2, 1], [(1, 1), (2, 2)], [1, 1], 2),
        input=IMAGE,
        weight=f32(6, 2, 3, 3),
        bias=f32(6),
        stride=[2, 1],
        padding=[1, 2],
        dilation=[1, 1],
        transposed=False,
        output_padding=[0, 0],
        groups=2,
    ),
    case(
        "convolution.default",
        transposed([2, 1], [1, 0], [1, 2], [1, 0], 2),
        label="transposed",
        input=IMAGE,
        weight=f32(4, 3, 3, 2),
        bias=f32(6),
        stride=[2, 1],
        padding=[1, 0],
        dilation=[1, 2],
        transposed=True,
        output_padding=[1, 0],
        groups=2,
    ),
    case(
        "conv_transpose1d.default",
        transposed([3], [1], [2], [2]),
        input=LINE,
        weight=f32(4, 5, 3),
        bias=f32(5),
        stride=[3],
        padding=[1],
        output_padding=[2],
        groups=1,
        dilation=[2],
    ),
    case(
        "conv_transpose2d.input",
        transposed([2, 2], [1, 1], [1, 1], [0, 1], 2),
        input=IMAGE,
        weight=f32(4, 3, 3, 3),
        bias=f32(6),
        stride=[2, 2],
        padding=[1, 1],
        output_padding=[0, 1],
        groups=2,
    ),
    case(
        "conv_transpose3d.input",
        transposed([1, 2, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]),
        input=BLOCK,
        weight=f32(2, 3, 2, 3, 2),
        stride=[1, 2, 1],
        padding=[0, 1, 0],
    ),
    case(
        "im2col.default",
        lambda x: columns(x, (3, 2), 2, 1),
        self=IMAGE,
        kernel_size=[3, 2],
        dilation=[1, 1],
        padding=[1, 1],
        stride=[2, 2],
    ),
    case(
        "col2im.default",
        summed,
        self=f32("n", 8, 6),
        output_size=[3, 4],
        kernel_size=[2, 2],
        dilation=[1, 1],
        padding=[0, 0],
        stride=[1, 1],
    ),
    case(
        "conv_tbc.default",
        time_first,
        self=f32(9, "n", 4),
        weight=f32(3, 4, 5),
        bias=f32(5),
        pad=1,
    ),
)
