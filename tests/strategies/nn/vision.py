"""Examples of operators on images and their windows."""

import io
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image

from tests.strategies.nn.grid import sizes
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
)
from tests.strategies.shape import data, some_axes, vector


@case("CenterCropPad")
def center_crop_pad(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axes = list(range(len(shape)))
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        axes = some_axes(draw, len(shape), 1, len(shape))
        attrs["axes"] = tuple(axes)
    wanted = vector([draw(st.integers(1, 8)) for _ in axes])
    return Example(attrs, [data(draw, shape), wanted])


def stepped(draw: Draw, rank: int) -> dict[str, Any]:
    """Strides, dilations and pads, some left out."""
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        attrs["strides"] = sizes(draw, rank, 1, 3)
    if draw(st.booleans()):
        attrs["dilations"] = sizes(draw, rank, 1, 2)
    if draw(st.booleans()):
        attrs["pads"] = sizes(draw, 2 * rank, 0, 2)
    return attrs


def counts(attrs: dict[str, Any], size: Any, kernel: Any) -> tuple[int, ...]:
    """The number of windows along every axis."""
    rank = len(kernel)
    pads = attrs.get("pads", (0,) * 2 * rank)
    strides = attrs.get("strides", (1,) * rank)
    dilations = attrs.get("dilations", (1,) * rank)
    return tuple(
        (size[a] + pads[a] + pads[a + rank] - dilations[a] * (kernel[a] - 1) - 1)
        // strides[a]
        + 1
        for a in range(rank)
    )


def fitting(draw: Draw, attrs: dict[str, Any], kernel: Any) -> tuple[int, ...]:
    """Extents into which a window fits."""
    dilations = attrs.get("dilations", (1,) * len(kernel))
    return tuple(
        d * (k - 1) + 1 + draw(st.integers(0, 4))
        for k, d in zip(kernel, dilations, strict=True)
    )


@case("Col2Im")
def col2im(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(2, 3))
    kernel = sizes(draw, rank, 1, 3)
    attrs = stepped(draw, rank)
    size = fitting(draw, attrs, kernel)
    batch, channels = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows, length = channels * prod(kernel), prod(counts(attrs, size, kernel))
    x = floats(draw, (batch, rows, length))
    # onnxruntime forgets the dilation of volumes.
    wrong = rank == 3 and "dilations" in attrs
    return Example(
        attrs,
        [x, vector(size), vector(kernel)],
        symbols={0: ("n", rows, length)},
        expected=[_folded(x, attrs, size, kernel)] if wrong else None,
    )


def _folded(x: Array, attrs: dict[str, Any], size: Any, kernel: Any) -> Array:
    """Every column added to its window, one element at a time."""
    rank, windows = len(kernel), counts(attrs, size, kernel)
    pads = attrs.get("pads", (0,) * 2 * rank)
    strides, dilations = (attrs.get(n, (1,) * rank) for n in ("strides", "dilations"))
    columns = x.reshape(len(x), -1, *kernel, *windows)
    out = np.zeros((*columns.shape[:2], *size), x.dtype)
    for key in np.ndindex(*kernel, *windows):
        at = tuple(
            key[a] * dilations[a] + key[a + rank] * strides[a] - pads[a]
            for a in range(rank)
        )
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            out[(..., *at)] += columns[(..., *key)]
    return out


@case("MaxUnpool")
def max_unpool(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(1, 3))
    kernel = sizes(draw, rank, 2, 3)
    attrs: dict[str, Any] = {"kernel_shape": kernel}
    if draw(st.booleans()):
        attrs["strides"] = sizes(draw, rank, 1, 3)
    if draw(st.booleans()):
        attrs["pads"] = sizes(draw, 2 * rank, 0, 1)
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *sizes(draw, rank, 2, 3))
    pads = attrs.get("pads", (0,) * 2 * rank)
    strides = attrs.get("strides", (1,) * rank)
    space = tuple(
        max((shape[a + 2] - 1) * strides[a] - pads[a] - pads[a + rank] + kernel[a], 0)
        for a in range(rank)
    )
    pooled = (*shape[:2], *space)
    if prod(pooled) < prod(shape):  # with wide pads
        attrs["strides"] = (3,) * rank
        attrs.pop("pads", None)
        inner = zip(shape[2:], kernel, strict=True)
        pooled = (*shape[:2], *((n - 1) * 3 + k for n, k in inner))
    x = floats(draw, shape)
    index = generator(draw).permutation(prod(pooled))[: x.size].reshape(shape)
    if not draw(st.booleans()):
        return Example(attrs, [x, index.astype(np.int64)], resizable=False)
    # "it produces output tensor of known/predictable size": the indices still count
    # what had been pooled, as ONNX's own cases have it.
    wanted = tuple(n + draw(st.integers(0, 2)) * (a > 1) for a, n in enumerate(pooled))
    y = np.zeros(prod(pooled), x.dtype)
    y[index.ravel()] = x.ravel()
    behind = [(0, m - n) for n, m in zip(pooled, wanted, strict=True)]
    return Example(
        attrs,
        [x, index.astype(np.int64), vector(wanted)],
        resizable=False,
        expected=[np.pad(y.reshape(pooled), behind)],
    )


@case("DeformConv")
def deform_conv(draw: Draw, version: int) -> Example:
    kernel = sizes(draw, 2, 1, 3)
    attrs = stepped(draw, 2)
    size = fitting(draw, attrs, kernel)
    batch, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    parts = draw(st.sampled_from([1, 2]))
    attrs |= {"group": groups, "offset_group": parts}
    channels, out = 2 * groups, groups * draw(st.integers(1, 2))
    count, places = counts(attrs, size, kernel), parts * prod(kernel)
    inputs = [
        floats(draw, (batch, channels, *size)),
        floats(draw, (out, channels // groups, *kernel)),
        floats(draw, (batch, places * 2, *count)),
        floats(draw, (out,)) if draw(st.booleans()) else None,
        floats(draw, (batch, places, *count)) if draw(st.booleans()) else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    symbols: dict[int, tuple[str | int, ...]] = {0: ("n", channels, *size)}
    for position in (2, 4):
        if position < len(inputs) and (operand := inputs[position]) is not None:
            symbols[position] = ("n", *operand.shape[1:])
    symbols |= {
        i: x.shape for i in (1, 3) if i < len(inputs) and (x := inputs[i]) is not None
    }
    stored = frozenset(i for i in (1, 3) if i < len(inputs))
    return Example(attrs, inputs, stored=stored, symbols=symbols, rtol=1e-4, atol=1e-4)


@case("ImageDecoder")
def image_decoder(draw: Draw, version: int) -> Example:
    """Files without loss: the pixels are those that were stored."""
    kind = draw(st.sampled_from(["BMP", "PNG", "PPM", "TIFF", "WEBP", "JPEG2000"]))
    shape = (draw(st.integers(16, 20)), draw(st.integers(16, 20)), 3)
    pixels = generator(draw).integers(0, 256, shape).astype(np.uint8)
    file = io.BytesIO()
    options = {"lossless": True} if kind == "WEBP" else {}
    Image.fromarray(pixels).save(file, kind, **options)
    content = np.frombuffer(file.getvalue(), np.uint8)
    expected = pixels
    attrs = {"pixel_format": draw(st.sampled_from(["RGB", "BGR", "Grayscale"]))}
    if draw(st.integers(0, 4)) == 0:
        content, expected = content[5:], pixels[:0, :0]
    if attrs["pixel_format"] == "BGR":
        expected = expected[:, :, ::-1]
    if attrs["pixel_format"] == "Grayscale":
        weighted = expected.astype(np.int64) @ np.array([19595, 38470, 7471])
        expected = ((weighted + 32768) >> 16).astype(np.uint8)[:, :, None]
    return Example(attrs, [content], expected=[expected], resizable=False)
