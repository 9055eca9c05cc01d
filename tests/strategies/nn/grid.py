"""Examples of sampling at the points of a grid."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    floats,
    generator,
    integers,
)
from tests.strategies.shape import vector


def sizes(draw: Draw, rank: int, least: int = 1, most: int = 5) -> tuple[int, ...]:
    """Extents of ``rank`` axes."""
    return tuple(draw(st.lists(st.integers(least, most), min_size=rank, max_size=rank)))


def points(draw: Draw, shape: tuple[int, ...], exact: bool) -> Array:
    """Places in and around an image; ``exact`` ones lie on elements and borders."""
    if exact:
        return integers(draw, shape, -6, 6).astype(np.float32) / np.float32(4)
    return generator(draw).uniform(-1.7, 1.7, shape).astype(np.float32)


@case("GridSample")
def grid_sample(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(2, 3)) if version >= 20 else 2
    size, count = sizes(draw, rank, 2), sizes(draw, rank, 1, 3)
    batch, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    modes = ["linear", "nearest"] + ["cubic"] * (rank == 2)
    mode = draw(st.sampled_from(modes))
    attrs: dict[str, Any] = {
        "mode": mode,
        "padding_mode": draw(st.sampled_from(["zeros", "border", "reflection"])),
        "align_corners": draw(st.integers(0, 1)),
    }
    newest = dict(attrs)
    if version == 16:
        old = {"linear": "bilinear", "cubic": "bicubic"}
        attrs["mode"] = old.get(mode, mode)
    exact = draw(st.booleans())
    shape = (batch, channels, *size)
    grid = points(draw, (batch, *count, rank), exact)
    x: Array = floats(draw, shape)
    kind = draw(st.sampled_from(["float32", "float32", "float64", "int"]))
    if kind == "int" and mode == "nearest":
        x = integers(draw, shape, -9, 9, np.int32)
    if kind == "float64":
        x, grid = x.astype(np.float64), grid.astype(np.float64)
    space, out = "dhw"[-rank:], "tuv"[-rank:]
    return Example(
        attrs,
        [x, grid],
        smooth=not exact,
        # onnxruntime has a kernel for float32 alone, and the reference none of 16.
        newer=(20, newest) if version == 16 and kind != "float32" else None,
        symbols={0: ("n", "c", *space), 1: ("n", *out, rank)},
        rtol=1e-4,
        atol=1e-4,
    )


@case("GridSample", domain="com.microsoft")
def early_grid_sample(draw: Draw, version: int) -> Example:
    size, count = sizes(draw, 2, 2), sizes(draw, 2, 1, 3)
    exact = draw(st.booleans())
    attrs: dict[str, Any] = {
        "mode": draw(st.sampled_from(["bilinear", "nearest", "bicubic"])),
        "padding_mode": draw(st.sampled_from(["zeros", "border", "reflection"])),
        "align_corners": draw(st.integers(0, 1)),
    }
    x, grid = floats(draw, (2, 3, *size)), points(draw, (2, *count, 2), exact)
    symbols: Any = {0: ("n", "c", "h", "w"), 1: ("n", "u", "v", 2)}
    smooth = not exact
    return Example(
        attrs, [x, grid], smooth=smooth, symbols=symbols, rtol=1e-4, atol=1e-4
    )


@case("AffineGrid")
def affine_grid(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(2, 3))
    batch = draw(st.integers(1, 3))
    theta = floats(draw, (batch, rank, rank + 1))
    if draw(st.booleans()):
        theta = theta.astype(np.float64)
    attrs = {"align_corners": draw(st.integers(0, 1))}
    size = vector([batch, 2, *sizes(draw, rank, 2)])
    return Example(attrs, [theta, size], resizable=False, symbols={0: theta.shape})
