"""Examples of operators on bits."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.strategies.elementwise import broadcastable, together
from tests.strategies.registry import Draw, Example, case, extents, integers

UNSIGNED = (np.uint8, np.uint32, np.uint64)
ANY = (*UNSIGNED, np.int8, np.int16, np.int32, np.int64)


@case("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(ANY))
    shape = extents(draw)
    x = integers(draw, shape, 0, 120, dtype)
    return together(x, integers(draw, broadcastable(draw, shape), 0, 120, dtype))


@case("BitwiseNot")
def bitwise_not(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(ANY))
    return Example({}, [integers(draw, extents(draw), 0, 120, dtype)])


@case("BitShift")
def bit_shift(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(UNSIGNED))
    shape = extents(draw)
    attrs = {"direction": draw(st.sampled_from(["LEFT", "RIGHT"]))}
    x = integers(draw, shape, 0, 120, dtype)
    y = integers(draw, broadcastable(draw, shape), 0, 7, dtype)
    return replace(together(x, y), attrs=attrs)
