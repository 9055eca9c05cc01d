"""Examples of pooling over regions."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.nn.grid import sizes
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    floats,
    generator,
    integers,
)


def regions(draw: Draw, count: int, extent: float) -> Array:
    """Corners of regions, some of them partly outside or turned over."""
    rng = generator(draw)
    first = rng.uniform(-0.3, 0.8, (count, 2)) * extent
    span = rng.uniform(-0.1, 0.9, (count, 2)) * extent
    return np.concatenate([first, first + span], 1).astype(np.float32)


@case("RoiAlign")
def roi_align(draw: Draw, version: int) -> Example:
    shape = (*sizes(draw, 2, 1, 3), *sizes(draw, 2, 3, 7))
    count = draw(st.integers(1, 4))
    scale = draw(st.sampled_from([1.0, 0.5, 0.3]))
    attrs: dict[str, Any] = {
        "output_height": draw(st.integers(1, 3)),
        "output_width": draw(st.integers(1, 3)),
        "sampling_ratio": draw(st.integers(0, 3)),
        "spatial_scale": scale,
        "mode": draw(st.sampled_from(["avg", "avg", "max"])),
    }
    if version >= 16:
        modes = ["half_pixel", "output_half_pixel"]
        attrs["coordinate_transformation_mode"] = draw(st.sampled_from(modes))
    x, rois = floats(draw, shape), regions(draw, count, 6 / scale)
    if draw(st.booleans()):
        x, rois = x.astype(np.float64), rois.astype(np.float64)
    images = integers(draw, (count,), 0, shape[0] - 1)
    return Example(
        attrs,
        [x, rois, images],
        symbols={0: ("n", "c", "h", "w"), 1: ("r", 4), 2: ("r",)},
        rtol=1e-4,
        atol=1e-4,
    )


@case("MaxRoiPool")
def max_roi_pool(draw: Draw, version: int) -> Example:
    shape = (*sizes(draw, 2, 1, 3), *sizes(draw, 2, 3, 7))
    count = draw(st.integers(1, 4))
    scale = draw(st.sampled_from([1.0, 0.5]))
    attrs = {
        "pooled_shape": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "spatial_scale": scale,
    }
    images = integers(draw, (count, 1), 0, shape[0] - 1)
    corners = regions(draw, count, 6 / scale)
    rois = np.concatenate([images, corners], 1).astype(np.float32)
    return Example(
        attrs,
        [floats(draw, shape), rois],
        discrete=frozenset({1}),
        symbols={0: ("n", "c", "h", "w"), 1: ("r", 5)},
        newer=(1, attrs),  # the same for fewer dtypes
    )
