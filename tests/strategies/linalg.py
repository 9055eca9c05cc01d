"""Examples of functions of square matrices."""

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Draw, Example, case, extents, floats


@case("Det")
def determinant(draw: Draw, version: int) -> Example:
    size = draw(st.integers(1, 4))
    batch = extents(draw, 1, 2, most=3)
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    x = floats(draw, (*batch, size, size), dtype)
    expected = None
    if dtype is np.float16:
        expected = [np.linalg.det(x.astype(np.float32)).astype(dtype)]
    return Example({}, [x], expected=expected, rtol=1e-4)
