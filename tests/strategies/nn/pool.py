"""Examples of pooling."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, floats, integers


def windowed(
    draw: Draw, version: int, dilated_since: int, ceil_since: int
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Attributes of windows, and a shape that they fit into."""
    rank = draw(st.integers(1, 3))
    several = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    kernel = tuple(draw(several))
    attrs: dict[str, Any] = {"kernel_shape": kernel}
    if draw(st.booleans()):
        attrs["strides"] = tuple(draw(several))
    dilations = (1,) * rank
    if version >= dilated_since and draw(st.booleans()):
        dilations = attrs["dilations"] = tuple(draw(several))
    auto = draw(st.sampled_from(["", "", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto and set(dilations) == {1}:
        attrs["auto_pad"] = auto
        # onnxruntime refuses to pad where no window overlaps the next.
        if "strides" in attrs:
            pairs = zip(attrs["strides"], kernel, strict=True)
            attrs["strides"] = tuple(min(pair) for pair in pairs)
    elif draw(st.booleans()):
        attrs["pads"] = tuple(draw(st.integers(0, k - 1)) for k in kernel * 2)
    if version >= ceil_since and "auto_pad" not in attrs:
        attrs["ceil_mode"] = draw(st.sampled_from([0, 1]))
    size = [
        (k - 1) * d + 1 + draw(st.integers(0, 4))
        for k, d in zip(kernel, dilations, strict=True)
    ]
    return attrs, (draw(st.integers(1, 2)), draw(st.integers(2, 3)), *size)


@case("MaxPool")
def max_pool(draw: Draw, version: int) -> Example:
    attrs, shape = windowed(draw, version, 10, 10)
    outputs = draw(st.sampled_from([1, 2])) if version >= 8 else 1
    if outputs == 2:
        attrs["storage_order"] = draw(st.sampled_from([0, 1]))
    return Example(attrs, [floats(draw, shape)], outputs=outputs)


@case("NhwcMaxPool", domain="com.microsoft")
def channels_last(draw: Draw, version: int) -> Example:
    attrs, shape = windowed(draw, 22, 10, 10)
    images = integers(draw, shape, -9, 9, np.int8)
    return Example(attrs, [np.moveaxis(images, 1, -1)])


@case("AveragePool")
def average_pool(draw: Draw, version: int) -> Example:
    attrs, shape = windowed(draw, version, 19, 10)
    x = floats(draw, shape)
    if version == 1:
        if attrs.get("auto_pad", "").startswith("SAME"):
            del attrs["auto_pad"]
        return Example(attrs, [x], expected=[_mean_of_real(x, attrs)])
    attrs["count_include_pad"] = draw(st.sampled_from([0, 1]))
    return Example(attrs, [x])


def _mean_of_real(x: Array, attrs: dict[str, Any]) -> Array:
    """The mean of every window, padding left out."""
    kernel = attrs["kernel_shape"]
    rank = len(kernel)
    pads = attrs.get("pads", (0,) * 2 * rank)
    strides = attrs.get("strides", (1,) * rank)
    around = ((0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True))
    padded = np.pad(x.astype(np.float64), around, constant_values=np.nan)
    axes = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axes)
    steps = tuple(slice(None, None, s) for s in (1, 1, *strides))
    inner = tuple(range(x.ndim, x.ndim + rank))
    return np.asarray(np.nanmean(windows[steps], axis=inner), x.dtype)


@case("LpPool")
def lp_pool(draw: Draw, version: int) -> Example:
    attrs, shape = windowed(draw, version, 18, 18)
    if draw(st.booleans()):
        power = draw(st.integers(1, 3))
        attrs["p"] = float(power) if version == 1 else power
    return Example(attrs, [np.abs(floats(draw, shape)) + np.float32(0.1)], rtol=1e-4)


@case("GlobalAveragePool", "GlobalMaxPool")
def whole(draw: Draw, version: int) -> Example:
    shape = draw(st.lists(st.integers(2, 4), min_size=3, max_size=5))
    return Example({}, [floats(draw, shape)])


@case("GlobalLpPool")
def whole_norm(draw: Draw, version: int) -> Example:
    shape = draw(st.lists(st.integers(2, 4), min_size=3, max_size=5))
    power = draw(st.sampled_from([None, 1, 2, 3]))
    attrs = {} if power is None else {"p": float(power) if version == 1 else power}
    x = floats(draw, shape)
    total = (np.abs(x.astype(np.float64)) ** (power or 2)).sum(
        tuple(range(2, x.ndim)), keepdims=True
    )
    expected = [np.asarray(total ** (1 / (power or 2)), x.dtype)]
    return Example(attrs, [x], expected=expected, rtol=1e-4)
