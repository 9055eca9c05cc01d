"""Examples of the operators of programs that ONNX has not."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from burn_ir.types import Array
from tests.strategies.elementwise import broadcastable, nonzero, together
from tests.strategies.ordering import distinct
from tests.strategies.registry import Draw, Example, case, extents, floats, integers


@case("Trunc", domain="burn")
def without_fraction(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw)) * 3], smooth=False)


@case("Lgamma", domain="burn")
def logarithm_of_gamma(draw: Draw, version: int) -> Example:
    return Example({}, [positive(floats(draw, extents(draw)))])


@case("Polygamma", domain="burn")
def derivative_of_gamma(draw: Draw, version: int) -> Example:
    order = draw(st.integers(0, 3))
    return Example({"n": order}, [positive(floats(draw, extents(draw)))])


@case("Erfinv", domain="burn")
def inverse_error(draw: Draw, version: int) -> Example:
    return Example({}, [np.tanh(floats(draw, extents(draw))) * np.float32(0.9)])


@case("Expm1", domain="burn")
def exponential_less_one(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw))])


@case("Log1p", domain="burn")
def logarithm_of_one_more(draw: Draw, version: int) -> Example:
    return Example({}, [positive(floats(draw, extents(draw))) - np.float32(0.8)])


@case("ScaledBesselI", domain="burn")
def bessel(draw: Draw, version: int) -> Example:
    order = draw(st.integers(0, 3))
    return Example({"order": order}, [floats(draw, extents(draw)) * np.float32(5)])


@case("Gcd", domain="burn")
def divisor(draw: Draw, version: int) -> Example:
    shape, dtype = extents(draw), draw(st.sampled_from([np.int32, np.int64, np.uint8]))
    x = integers(draw, shape, 0, 120, dtype)
    return together(x, integers(draw, broadcastable(draw, shape), 0, 120, dtype))


def positive(x: Array) -> Array:
    """Numbers from 0.3 to 4."""
    return (1.0 / (1.0 + np.exp(-x)) * 3.7 + 0.3).astype(np.float32)


@case("Atan2", domain="burn")
def angles(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    return Example({}, [floats(draw, shape), floats(draw, broadcastable(draw, shape))])


@case("LogCumSumExp", domain="burn")
def running(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=1)
    axis = draw(st.integers(-len(shape), len(shape) - 1)) if shape else 0
    x = floats(draw, shape or (3,)) * np.float32(draw(st.sampled_from([1.0, 20.0])))
    return Example({"axis": axis}, [x])


@case("Detach", domain="burn")
def detached(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw))])


@case("FloorDiv", domain="burn")
def quotient(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    dtype = draw(st.sampled_from([np.float32, np.int64, np.int32]))
    x = nonzero(draw, shape, dtype) * 3
    y = nonzero(draw, broadcastable(draw, shape), dtype)
    return replace(together(x.astype(dtype), y), smooth=False)


@case("AdaptiveAvgPool", domain="burn")
def windows(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(1, 3))
    sizes = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    x = floats(draw, (2, 3, *extents(draw, rank, rank, least=2, most=6)))
    if draw(st.booleans()):
        return Example({}, [x, np.array(sizes, np.int64)], always_stored=frozenset({1}))
    return Example({"output_size": sizes}, [x])


@case("AdaptiveMaxPool", domain="burn")
def windows_with_maxima(draw: Draw, version: int) -> Example:
    example: Example = windows(draw, version)
    maxima = draw(st.sampled_from([1, 2]))
    return replace(example, outputs=maxima, smooth=False)


@case("Var", "Std", domain="burn")
def spread(draw: Draw, version: int) -> Example:
    attrs = {**reduced(draw), "correction": draw(st.sampled_from([1, 0, 0.5]))}
    return Example(attrs, [floats(draw, extents(draw, 3, 3, least=2))])


@case("Any", "All", domain="burn")
def truth(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw, 3, 3)) > 0
    return Example(reduced(draw), [x])


def reduced(draw: Draw) -> dict[str, object]:
    """Axes of three, and whether they are kept."""
    axes = draw(st.sampled_from([None, (1,), (0, -1), (-2,)]))
    results = {"keepdims": draw(st.booleans()), "axes": axes}
    return {name: value for name, value in results.items() if value is not None}


@case("Sort", domain="burn")
def ordered(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=1)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    attrs = {"axis": axis, "descending": draw(st.booleans())}
    return Example(attrs, [distinct(draw, shape)])


@case("Flip", domain="burn")
def mirrored(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 4)
    axes = draw(st.sampled_from([(0,), (-1,), (0, 1), (-2, 0)]))
    return Example(
        {"axes": axes if len(shape) > 2 else axes[:1]}, [floats(draw, shape)]
    )


@case("Im2Col", domain="burn")
def columns(draw: Draw, version: int) -> Example:
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(2))
    attrs = {
        "kernel_shape": kernel,
        "pads": tuple(draw(st.integers(0, 2)) for _ in range(4)),
        "strides": tuple(draw(st.integers(1, 2)) for _ in range(2)),
        "dilations": tuple(draw(st.integers(1, 2)) for _ in range(2)),
    }
    shape = (2, 3, *extents(draw, 2, 2, least=5, most=7))
    return Example(attrs, [floats(draw, shape)])


@case("FakeQuantize", domain="burn")
def rounded(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 3)
    per_row = shape[:1] + (1,) * (len(shape) - 1) if draw(st.booleans()) else ()
    scale = np.asarray(np.abs(floats(draw, per_row)) + np.float32(0.1))
    shift = np.asarray(np.rint(floats(draw, per_row) * 3))
    x, attrs = floats(draw, shape) * 4, {"low": -5, "high": 9}
    # Its gradient is not the derivative, but one that passes through the rounding.
    return Example(attrs, [x, scale, shift], discrete=frozenset({0, 1, 2}))
