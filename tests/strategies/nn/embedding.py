"""Examples of lookups in tables."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)


@case("Embedding", domain="burn")
def embedding(draw: Draw, version: int) -> Example:
    rows, features = extents(draw, 2, 2)
    indices = integers(draw, extents(draw, 0, 3), 0, rows - 1, np.int64)
    attrs: dict[str, Any] = {"scale_grad_by_freq": draw(st.sampled_from([0, 1]))}
    if draw(st.booleans()):
        attrs["padding_idx"] = draw(st.integers(0, rows - 1))
    # The gradient differs from the derivative on purpose where it is masked or divided:
    # tests/runtime/nn/test_embedding.py has it.
    repeats = len(np.unique(indices)) < indices.size
    differs = attrs.get("padding_idx") in indices or (
        repeats and attrs["scale_grad_by_freq"]
    )
    return Example(
        attrs,
        [floats(draw, (rows, features)), indices],
        stored=frozenset({0}),
        discrete=frozenset({0} if differs else ()),
        resizable=False,
    )
