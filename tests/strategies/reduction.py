"""Examples of reductions."""

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

#: The version from which the axes are an operand.
OPERAND = {"ReduceSum": 13}


def axes_of(draw: Draw, rank: int, negative: bool) -> list[int]:
    """Some of the axes, in any order."""
    chosen = draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=rank))
    return [a - rank if negative and draw(st.booleans()) else a for a in chosen]


def reduction(name: str) -> None:
    """Declare the strategy of a reduction."""

    @case(name)
    def reduced(draw: Draw, version: int) -> Example:
        x = _operand(draw, name)
        attrs: dict[str, Any] = {"keepdims": draw(st.sampled_from([0, 1]))}
        axes = axes_of(draw, x.ndim, negative=version >= 11)
        apart = np.diff(np.sort(x.astype(np.float64), axis=None))
        smooth = bool((np.abs(x) > 1e-3).all() and (apart > 1e-5).all())
        if version < OPERAND.get(name, 18):
            if axes:
                attrs["axes"] = tuple(axes)
            return Example(attrs, [x], smooth=smooth, rtol=1e-4)
        attrs["noop_with_empty_axes"] = draw(st.sampled_from([0, 1]))
        given = draw(st.sampled_from([None, np.array(axes, np.int64)]))
        return Example(attrs, [x, given], smooth=smooth, rtol=1e-4)


def _operand(draw: Draw, name: str) -> Array:
    shape = extents(draw, least=2, most=4)
    if name in ("ReduceLogSum", "ReduceProd"):
        return np.asarray(generator(draw).uniform(0.5, 1.5, shape), np.float32)
    if name in ("ReduceSum", "ReduceMax", "ReduceSumSquare") and draw(st.booleans()):
        return integers(draw, shape, -9, 9, np.int32)
    return floats(draw, shape)


for _name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare"):
    reduction(f"Reduce{_name}")
for _name in ("LogSum", "LogSumExp"):
    reduction(f"Reduce{_name}")


@case("ArgMax", "ArgMin")
def position(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    x = integers(draw, shape, -3, 3, np.float32)  # equal elements are likely
    low = -x.ndim if version >= 11 else 0
    attrs = {
        "axis": draw(st.integers(low, x.ndim - 1)),
        "keepdims": draw(st.sampled_from([0, 1])),
    }
    if version >= 12:
        attrs["select_last_index"] = draw(st.sampled_from([0, 1]))
    return Example(attrs, [x], smooth=False)
