"""Examples of losses."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)


def classified(draw: Draw, outputs: int, *, logs: bool) -> Example:
    """Scores of rank 2 to 5, targets of which some may be ignored, perhaps weights."""
    batch, classes, *space = extents(draw, 2, 5, least=2, most=4)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = floats(draw, (batch, classes, *space), dtype)
    if logs:
        scores = -np.abs(scores) - np.asarray(0.1, dtype)
    index = draw(st.sampled_from([np.int32, np.int64]))
    target = integers(draw, (batch, *space), 0, classes - 1, index)
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        attrs["reduction"] = draw(st.sampled_from(["none", "sum", "mean"]))
    if draw(st.booleans()):
        ignored = draw(st.sampled_from([0, 1, -1, -100, classes + 3]))
        attrs["ignore_index"] = ignored
        target.flat[1:][generator(draw).random(target.size - 1) < 0.3] = ignored
        target.flat[0] = (ignored + 1) % classes  # nobody agrees on a mean of nothing
    weights = [np.abs(floats(draw, (classes,), dtype)) + np.asarray(0.2, dtype)]
    operands = [scores, target, *(weights if draw(st.booleans()) else [])]
    resizable = len(operands) == 2
    return Example(attrs, operands, outputs, resizable=resizable, rtol=1e-4, atol=1e-5)


@case("NegativeLogLikelihoodLoss")
def nll(draw: Draw, version: int) -> Example:
    return classified(draw, 1, logs=True)


@case("SoftmaxCrossEntropyLoss")
def cross_entropy(draw: Draw, version: int) -> Example:
    return classified(draw, draw(st.integers(1, 2)), logs=False)
