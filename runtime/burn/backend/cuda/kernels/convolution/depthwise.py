"""Depthwise convolutions of channels-last images.

cuDNN has no fusion for them, and is slow for kernels larger than 3 x 3. A thread
computes a pack of channels of several rows and columns, which share loads.
"""

from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.choices import choice_of
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.convolution import (
    Geometry,
    are_convolved,
    conv,
    with_geometry,
)
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.kernels.convolution.patches import are_patches, convolve_patches
from burn.backend.cuda.kernels.elementwise.epilogues import (
    TYPES,
    has_residual,
    header,
    statements,
)
from burn.backend.cuda.libraries import pack_once
from burn.backend.cuda.tuning import compile_all, is_tuning, quickest
from burn.ops.conv import conv as conv_op
from burn.ops.fused import After
from burn.ops.support import Array

_LAYOUT = Layout(channels_last=True)
_SOURCE = """
#define SPAN ((EACH - 1) * STEP_W + (WIDE - 1) * GAP_W + 1)
#define REACH ((ROWS - 1) * STEP_H + (TALL - 1) * GAP_H + 1)
extern "C" __global__ void __launch_bounds__(128) depthwise(
    const Pack* __restrict__ x, const Pack* __restrict__ weight, const T* bias,
    const Pack* residual, Pack* y,
    int height, int width, int packs, int rows, int columns, long long count
) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= count) return;
    const int strips = (columns + EACH - 1) / EACH, bands = (rows + ROWS - 1) / ROWS;
    const int c = i % packs, column = i / packs % strips * EACH;
    const int row = i / packs / strips % bands * ROWS;
    const long long image = i / packs / strips / bands;
    W sum[ROWS][EACH][SIZE];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {
        const W start = bias ? (W)bias[c * SIZE + k] : W(0);
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            #pragma unroll
            for (int e = 0; e < EACH; e++) sum[r][e][k] = start;
    }
    const int left = column * STEP_W - PAD_W;
    #pragma unroll UNROLL
    for (int t = 0; t < REACH; t += ROWS == 1 ? GAP_H : 1) {
        const int h = row * STEP_H + t - PAD_H;
        const bool is_row = h >= 0 && h < height;  // no branch: loads do not wait
        const Pack* line = x + ((image * height + h) * width + left) * packs + c;
        Pack part[SPAN];
        #pragma unroll
        for (int s = 0; s < SPAN; s++) {
            if (is_row && left + s >= 0 && left + s < width) part[s] = line[s * packs];
            else {
                #pragma unroll
                for (int k = 0; k < SIZE; k++) part[s].at[k] = (T)0.0f;
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int reach = t - r * STEP_H;
            if (reach < 0 || reach % GAP_H || reach >= TALL * GAP_H) continue;
            #pragma unroll
            for (int q = 0; q < WIDE; q++) {
                const Pack factor = weight[(reach / GAP_H * WIDE + q) * packs + c];
                #pragma unroll
                for (int e = 0; e < EACH; e++) {
                    #pragma unroll
                    for (int k = 0; k < SIZE; k++)
                        sum[r][e][k] += (W)part[e * STEP_W + q * GAP_W].at[k]
                            * (W)factor.at[k];
                }
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (row + r >= rows) break;
        const long long first =
            ((image * rows + row + r) * columns + column) * packs + c;
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (column + e >= columns) break;
            Pack out, more;
            if (HAS_RESIDUAL) more = residual[first + e * packs];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                W v = sum[r][e][k];
                const W r = HAS_RESIDUAL ? (W)more.at[k] : W(0);
                EPILOGUE
                out.at[k] = (T)v;
            }
            y[first + e * packs] = out;
        }
    }
}
"""
#: The number of threads that fill a device; below it threads have fewer columns.
_FULL = 1 << 16
#: The most registers of weights of a thread that loads them all at once.
_UNROLLED = 64


#: The most registers of weights of a thread that computes several rows.
_REGISTERS = 200
#: The least number of threads for a tile to be measured.
_LEAST = 4000


@dataclass(frozen=True)
class Tile:
    """The part of the result that a thread computes.

    It has ``size`` neighboring channels of several rows and columns. A row of the image
    is read once for all rows of the result.
    """

    size: int
    rows: int
    columns: int


#: The tiles that are measured: the fastest ones on one H100 for kernels of 3 x 3 to
#: 7 x 7, images of 7 x 7 to 112 x 112 and batches of 1 to 64.
_TILES = tuple(
    Tile(*extents)
    for extents in (
        *((4, 2, 4), (1, 1, 4), (1, 7, 7), (1, 4, 4)),
        *((4, 4, 2), (4, 2, 1), (2, 2, 7), (1, 7, 1)),
    )
)


@conv_op.on(Cuda)
def conv_or_depthwise(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Compute :func:`burn.ops.conv`, with special kernels for depthwise and patches."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    if x.ndim == 4 and are_convolved(x, weight, bias):
        channels, outputs = x.shape[1], weight.shape[0]
        image, geometry, _ = with_geometry(x, weight, groups=groups, **steps)
        out = None
        if geometry is None or not prod(geometry.result):
            return conv(x, weight, bias, groups=groups, **steps)
        if groups == 1 and weight.shape[1] == channels and are_patches(geometry):
            out = convolve_patches(image, weight, bias, geometry)
        elif 1 < groups == channels == outputs and weight.shape[1] == 1:
            operands = (image, weight, bias, None)
            out = depthwise(operands, geometry, geometry.result, ())
        if out is not None:
            return out
    return conv(x, weight, bias, groups=groups, **steps)


def depthwise(
    operands: tuple[Any, ...], geometry: Geometry, shape: tuple[int, ...], after: After
) -> Array | None:
    """Return the convolution of image, weight, bias and residual; None if unsupported.

    The image and the weight have as many channels as there are groups.
    """
    x, weight, bias, residual = operands
    if x.dtype not in TYPES or len(geometry.stride) != 2 or not prod(shape):
        return None
    widest = TYPES[x.dtype][1]
    if geometry.image[1] % widest or weight.dtype != x.dtype:
        return None
    others: list[Any] = [np.uint64(0), np.uint64(0)]
    if bias is not None:
        others[0] = contiguous(bias)
    if has_residual(after):
        if residual is None or residual.dtype != x.dtype or residual.shape != shape:
            return None
        others[1] = _LAYOUT.of(residual)
    out = _LAYOUT.empty(shape, x.dtype)
    arrays = (_LAYOUT.of(x), pack_once(weight, "depthwise", _taps_first), *others, out)
    if is_tuning(x.device.id):
        tile = _quickest(arrays, geometry, after)
    else:
        tile = first_tile(widest, geometry)
    launch(tile, arrays, geometry, after)
    return out


def first_tile(widest: int, geometry: Geometry) -> Tile:
    """Return the part of a thread that fills a device; it has one row.

    Packs of channels are as wide as memory allows, and the columns several, unless
    threads are too few.
    """
    count, size, columns = prod(geometry.result), widest, 4
    while size > 1 and count < size * _FULL:
        size //= 2
    threads = count // size
    while columns > 1 and (
        threads < columns * _FULL or geometry.stride[1] * columns > 4
    ):
        columns //= 2
    return Tile(size, 1, columns)


def tiles(dtype: Any, geometry: Geometry) -> list[Tile]:
    """Return the parts of a thread that are measured for a convolution in a plan."""
    widest = TYPES[dtype][1]
    first = first_tile(widest, geometry)
    fitting = (tile for tile in _TILES if _is_fitting(tile, widest, geometry))
    return [first, *(tile for tile in fitting if tile != first)]


def _is_fitting(tile: Tile, widest: int, geometry: Geometry) -> bool:
    """Return whether a tile fits into registers, with enough threads for a device."""
    (rows, columns), taps = geometry.result[2:], prod(geometry.weight[2:])
    if tile.rows > rows or tile.columns > columns or tile.size > widest:
        return False
    if tile.rows > 1 and taps * tile.size > _REGISTERS:
        return False
    return prod(geometry.result) >= _LEAST * tile.size * tile.rows * tile.columns


def _quickest(arrays: tuple[Any, ...], geometry: Geometry, after: After) -> Tile:
    """Return the fastest tile on these operands, measured once."""
    dtype, device = arrays[0].dtype, arrays[0].device.id
    choices = tiles(dtype, geometry)

    def choose() -> int:
        kernels = [_kernel(dtype, tile, geometry, after) for tile in choices]
        compile_all(kernels, device)
        run = partial(launch, arrays=arrays, geometry=geometry, after=after)
        return choices.index(quickest(choices, run, device))

    key = ("depthwise", dtype, geometry, after)
    return choices[choice_of(device, key, len(choices), choose)]


def launch(
    tile: Tile, arrays: tuple[Any, ...], geometry: Geometry, after: After
) -> None:
    """Launch the kernel on image, packed weight, bias, residual and result."""
    channels, height, width = geometry.image[1:]
    batch, _, rows, columns = geometry.result
    packs = channels // tile.size
    count = batch * packs * -(-rows // tile.rows) * -(-columns // tile.columns)
    kernel = _kernel(arrays[0].dtype, tile, geometry, after)
    numbers = map(np.int32, (height, width, packs, rows, columns))
    kernel((-(-count // 128),), (128,), (*arrays, *numbers, np.int64(count)))


def _kernel(dtype: Any, tile: Tile, geometry: Geometry, after: After) -> Any:
    steps = (geometry.stride, geometry.dilation, geometry.padding)
    return _compiled(dtype, tile, geometry.weight[2:], steps, after)


def contiguous(array: Array) -> Array:
    """Return ``array`` without gaps between its elements, in C order."""
    import cupy

    return cupy.ascontiguousarray(array)


def _taps_first(weight: Array) -> Array:
    """Return ``weight`` [channels, 1, *taps] as [*taps, channels]."""
    return contiguous(weight.reshape(weight.shape[0], -1).T)


@cache
def _compiled(
    dtype: Any, tile: Tile, taps: tuple[int, ...], steps: Any, after: After
) -> Any:
    import cupy

    return cupy.RawKernel(source(dtype, tile, taps, steps, after), "depthwise")


def source(
    dtype: Any, tile: Tile, taps: tuple[int, ...], steps: Any, after: After
) -> str:
    """Return CUDA C of the kernel; ``steps`` are strides, dilations and padding."""
    (step_h, step_w), (gap_h, gap_w), (pad_h, pad_w) = steps
    numbers = {
        "TALL": taps[0],
        "WIDE": taps[1],
        "STEP_H": step_h,
        "STEP_W": step_w,
        "GAP_H": gap_h,
        "GAP_W": gap_w,
        "PAD_H": pad_h,
        "PAD_W": pad_w,
        "ROWS": tile.rows,
        "EACH": tile.columns,
        "HAS_RESIDUAL": int(has_residual(after)),
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    registers = taps[0] * taps[1] * tile.size * dtype.itemsize // 4
    unrolled = "1" if tile.rows == 1 and registers > _UNROLLED else "REACH"
    code = _SOURCE.replace("EPILOGUE", statements(after)).replace("UNROLL", unrolled)
    return defines + header(dtype, tile.size) + code
