"""Examples of operators that make tensors, resample them, or choose between graphs."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn_ir import RawGraph, RawNode
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)
from tests.strategies.shape import vector

#: Regions and scales of a resize.
DISCRETE = frozenset({1, 2})


@case("ConstantOfShape")
def constant_of_shape(draw: Draw, version: int) -> Example:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from([np.float32, np.int64, np.int8, np.bool_]))
    number = draw(st.sampled_from([0, 1, 3] if dtype is np.bool_ else [0, -2, 7]))
    value = np.array([number], dtype)
    return Example(
        {"value": value} if draw(st.booleans()) else {},
        [vector(shape)],
        stored=frozenset({0}),
        resizable=False,
    )


@case("Range")
def range_(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from([np.int64, np.int32, np.float32]))
    start, limit = draw(st.integers(-8, 8)), draw(st.integers(-8, 8))
    delta = draw(st.sampled_from([-3, -1, 1, 2]))
    # The end of floats is nowhere near one of them.
    scale, more = (1, 0) if dtype is not np.float32 else (0.5, 0.2)
    given = start * scale, limit * scale + more, delta * scale
    numbers = [np.array(n, dtype) for n in given]
    expected = [np.arange(*given, dtype=dtype)]
    stored = frozenset({0, 1, 2} if draw(st.booleans()) else {0, 2})
    return Example({}, numbers, stored=stored, expected=expected)


@case("Range", domain="com.microsoft")
def early_range(draw: Draw, version: int) -> Example:
    example = range_(draw, version)
    if draw(st.booleans()):
        shape = (1,) if draw(st.booleans()) else ()
        numbers = [np.asarray(x).reshape(shape) for x in example.inputs]
        return replace(example, inputs=numbers)
    start, limit = (np.asarray(x) for x in example.inputs[:2])
    expected = [np.arange(start.item(), limit.item(), dtype=start.dtype)]
    stored = frozenset({1}) if 1 in (example.stored or ()) else frozenset[int]()
    return Example({}, [start, limit], stored=stored, expected=expected)


@case("EyeLike")
def eye_like(draw: Draw, version: int) -> Example:
    x = integers(draw, extents(draw, 2, 2), -9, 9, np.int32)
    attrs = {"k": draw(st.integers(-4, 4))}
    if draw(st.booleans()):
        attrs["dtype"] = draw(st.sampled_from([1, 7, 11]))
    return Example(attrs, [x])


@case("Upsample")
def upsample(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw, 4, 4, most=4))
    height, width = (float(draw(st.integers(1, 3))) for _ in range(2))
    mode = draw(st.sampled_from(["nearest", "linear"]))
    scales = np.array([1, 1, height, width], np.float32)
    if version == 1:
        attrs = {"height_scale": height, "width_scale": width, "mode": "nearest"}
        y = x.repeat(int(height), 2).repeat(int(width), 3)
        return Example(attrs, [x], expected=[y])
    attrs = {"mode": mode}
    if version == 7:
        return Example(attrs | {"scales": tuple(scales.tolist())}, [x])
    return Example(attrs, [x, scales], discrete=frozenset({1}))


@case("Resize")
def resize(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw, 4, 4, least=2, most=4))
    attrs: dict[str, Any] = {"mode": draw(st.sampled_from(["nearest", "linear"]))}
    ratios = st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5])
    if version == 10:
        scales = np.array([1, 1, draw(ratios), draw(ratios)], np.float32)
        return Example(
            attrs, [x, scales], always_stored=frozenset({1}), discrete=frozenset({1})
        )
    attrs |= _interpolation(draw, attrs["mode"])
    axes = [0, 1, 2, 3]
    if version >= 18 and draw(st.booleans()):
        axes = [2, 3]
        attrs["axes"] = (2, 3)
    roi = np.zeros(0, np.float32)
    if draw(st.booleans()):
        by = {0: 1.0, 1: 1.0, 2: draw(ratios), 3: draw(ratios)}
        scales = np.array([by[a] for a in axes], np.float32)
        return Example(attrs, [x, roi, scales], discrete=DISCRETE, rtol=1e-4, atol=1e-5)
    to = {0: x.shape[0], 1: x.shape[1], 2: draw(st.integers(1, 6))}
    to[3] = draw(st.integers(1, 6))
    if len(axes) == 2 and draw(st.booleans()):
        policies = ["not_larger", "not_smaller"]
        attrs["keep_aspect_ratio_policy"] = draw(st.sampled_from(policies))
    no_scales = None if version >= 13 else np.zeros(0, np.float32)
    inputs = [x, roi, no_scales, vector([to[a] for a in axes])]
    return Example(
        attrs, inputs, discrete=DISCRETE, resizable=False, rtol=1e-4, atol=1e-5
    )


def _interpolation(draw: Draw, mode: str) -> dict[str, Any]:
    """Return the attributes of Resize for coordinates and weights."""
    attrs: dict[str, Any] = {}
    if mode == "nearest":
        modes = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attrs["nearest_mode"] = draw(st.sampled_from(modes))
    elif draw(st.booleans()):
        attrs["mode"] = "cubic"
        attrs["cubic_coeff_a"] = draw(st.sampled_from([-0.5, -0.75]))
        attrs["exclude_outside"] = draw(st.integers(0, 1))
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    attrs["coordinate_transformation_mode"] = draw(st.sampled_from(modes))
    return attrs


@case("If")
def if_(draw: Draw, version: int) -> Example:
    """The branches use two values from outside, of which one is a constant."""
    shape = extents(draw)
    condition = np.array(draw(st.booleans()))
    x, y = floats(draw, shape), floats(draw, shape)
    inner = floats(draw, shape)
    attrs = {
        "then_branch": branch("then", "Mul", ("x1", "x2"), {}),
        "else_branch": branch("else", "Sub", ("x1", "inner"), {"inner": inner}),
    }
    return Example(
        attrs,
        [condition, x, y],
        captured=frozenset({1, 2}),
        stored=frozenset({2}),
        resizable=False,
    )


def branch(
    name: str, operator: str, operands: tuple[str, str], constants: dict[str, Array]
) -> RawGraph:
    """A body of one node."""
    node = RawNode(operator, "", {}, operands, (f"{name}_y",), name)
    return RawGraph(name, {}, (f"{name}_y",), (node,), constants)
