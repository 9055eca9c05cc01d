"""Examples of operators that order, run along an axis, or pad."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)
from tests.strategies.shape import axis_of, data, some_axes, vector


def distinct(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Numbers of which no two are near each other."""
    numbers = generator(draw).permutation(int(np.prod(shape)))
    return (numbers.reshape(shape) * 0.25 - 3).astype(np.float32)


@case("TopK")
def topk(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axis = axis_of(draw, len(shape)) if version >= 11 else len(shape) - 2
    attrs = {"axis": axis}
    k = draw(st.integers(1, shape[axis]))
    if version >= 11:
        attrs["largest"] = draw(st.integers(0, 1))
    if version < 10:
        return Example(attrs | {"k": k}, [distinct(draw, shape)], 2)
    return Example(attrs, [distinct(draw, shape), vector([k])], 2)


@case("CumSum")
def cumsum(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs = {n: draw(st.integers(0, 1)) for n in ("exclusive", "reverse")}
    axis = np.array(axis_of(draw, len(shape)), draw(st.sampled_from(["i4", "i8"])))
    if draw(st.booleans()):
        return Example(attrs, [floats(draw, shape), axis])
    return Example(attrs, [integers(draw, shape, -9, 9), axis])


@case("CumProd")
def cumprod(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs = {n: draw(st.integers(0, 1)) for n in ("exclusive", "reverse")}
    axis = np.array(axis_of(draw, len(shape)), draw(st.sampled_from(["i4", "i8"])))
    if draw(st.booleans()):
        x = floats(draw, shape, draw(st.sampled_from([np.float32, np.float64])))
        x[x < -1.0] = 0.0
        return Example(attrs, [x, axis], smooth=True)
    return Example(attrs, [integers(draw, shape, -3, 3, np.int32), axis])


@case("Trilu")
def trilu(draw: Draw, version: int) -> Example:
    attrs = {"upper": draw(st.integers(0, 1))}
    inputs = [data(draw, extents(draw))]
    if draw(st.booleans()):
        inputs.append(np.array(draw(st.integers(-4, 4)), np.int64))
    return Example(attrs, inputs)


@case("ReverseSequence")
def reverse_sequence(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    batch = draw(st.integers(0, 1))
    lengths = integers(draw, (shape[batch],), 1, shape[1 - batch])
    attrs = {"batch_axis": batch, "time_axis": 1 - batch}
    return Example(attrs, [data(draw, shape), lengths], resizable=False)


@case("Pad")
def pad(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    modes = ["constant", "constant", "reflect", "edge"]
    mode = draw(st.sampled_from(modes + ["wrap"] * (version >= 19)))
    axes = list(range(len(shape)))
    named = version >= 18 and draw(st.booleans())
    if named:
        axes = some_axes(draw, len(shape), 1, len(shape))
    pads = widths(draw, [shape[a] for a in axes], mode, version >= 11)
    attrs: dict[str, Any] = {"mode": mode}
    x = floats(draw, shape)
    if version < 11:
        attrs["paddings" if version == 1 else "pads"] = tuple(pads)
        attrs["value"] = draw(st.sampled_from([0.0, 1.5]))
        widened = list(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
        fill: Any = {"constant_values": attrs["value"]} if mode == "constant" else {}
        return Example(attrs, [x], expected=[np.pad(x, widened, mode, **fill)])
    inputs: list[Any] = [x, vector(pads), None, None]
    if draw(st.booleans()):
        inputs[2] = np.array(draw(st.sampled_from([-2.0, 0.5])), np.float32)
    if named:
        inputs[3] = vector(axes)
    while inputs[-1] is None:
        inputs.pop()
    return Example(attrs, inputs)


def widths(draw: Draw, shape: list[int], mode: str, crop: bool) -> list[int]:
    """Counts before every axis, then behind; negative ones crop constants."""
    least = -1 if crop and mode == "constant" else 0
    most = [min(n - 1, 3) if mode in ("reflect", "wrap") else 3 for n in shape]
    return [
        draw(st.integers(least if n > 2 else 0, m))
        for n, m in zip(shape * 2, most * 2, strict=True)
    ]
