"""Examples of operators that select boxes or elements."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.ordering import distinct
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
from tests.strategies.shape import axis_of


@case("NonMaxSuppression")
def non_max_suppression(draw: Draw, version: int) -> Example:
    images, labels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    count = draw(st.integers(1, 30))
    attrs = {"center_point_box": draw(st.integers(0, 1))}
    boxes = generator(draw).uniform(0, 1, (images, count, 4)).astype(np.float32)
    scores = floats(draw, (images, labels, count))
    if draw(st.booleans()):
        scores = np.round(scores * 2) / np.float32(2)  # equal ones
    inputs: list[Array | None] = [boxes, scores, None, None, None]
    shape = draw(st.sampled_from([(), (1,)]))
    if draw(st.integers(0, 5)):
        inputs[2] = np.full(shape, draw(st.integers(0, 12)), np.int64)
    if draw(st.booleans()):
        inputs[3] = np.full(shape, draw(st.sampled_from([0.0, 0.2, 0.5])), np.float32)
    if draw(st.booleans()):
        inputs[4] = np.full(shape, draw(st.sampled_from([-0.5, 0.3])), np.float32)
    while inputs[-1] is None:
        inputs.pop()
    return Example(
        attrs,
        inputs,
        symbols={0: ("n", "b", 4), 1: ("n", "k", "b")},
        discrete=frozenset({3, 4}),
    )


@case("Unique")
def unique(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 4, most=4)
    attrs: dict[str, Any] = {"sorted": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        attrs["axis"] = axis_of(draw, len(shape))
    kind = draw(st.sampled_from(["distinct", "float", "int64", "int8", "string"]))
    x: Array = integers(draw, shape, -1, 1)
    if kind == "distinct":
        x = distinct(draw, shape)
    elif kind == "string":
        x = np.array(["b", "a", "ab"], object)[x]
    else:
        x = x.astype({"float": np.float32}.get(kind, kind))
    outputs = draw(st.integers(1, 4))
    # Version 28 adds dtypes alone; nobody else runs it rightly when not sorted.
    same = (11, attrs) if version == 28 else None
    return Example(attrs, [x], outputs, smooth=kind == "distinct", newer=same)
