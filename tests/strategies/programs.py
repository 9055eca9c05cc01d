"""Examples of the operators of programs that ONNX has not."""

import numpy as np
from hypothesis import strategies as st

from tests.strategies.elementwise import broadcastable, nonzero
from tests.strategies.registry import Draw, Example, case, extents, floats


@case("Trunc", domain="burn")
def without_fraction(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw)) * 3], smooth=False)


@case("FloorDiv", domain="burn")
def quotient(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    dtype = draw(st.sampled_from([np.float32, np.int64, np.int32]))
    x = nonzero(draw, shape, dtype) * 3
    y = nonzero(draw, broadcastable(draw, shape), dtype)
    return Example({}, [x.astype(dtype), y], smooth=False)


@case("AdaptiveAvgPool", domain="burn")
def windows(draw: Draw, version: int) -> Example:
    rank = draw(st.integers(1, 3))
    sizes = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    shape = (2, 3, *extents(draw, rank, rank, least=2, most=6))
    return Example({"output_size": sizes}, [floats(draw, shape)])
