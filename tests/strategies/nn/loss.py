"""Examples of losses."""

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


def classified(draw: Draw, outputs: int, *, logs: bool) -> Example:
    """Scores of rank 2 to 5, targets of which some may be ignored, perhaps weights."""
    batch, classes, *space = extents(draw, 2, 5, least=2, most=4)
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
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
    sizes = tuple(f"size{i}" for i in range(len(space)))
    return Example(
        attrs,
        operands,
        outputs,
        expected=(
            None
            if dtype is not np.float16
            else expectation(attrs, operands, logs)[:outputs]
        ),
        resizable=len(operands) == 2,
        symbols={
            0: ("batch", "classes", *sizes),
            1: ("batch", *sizes),
            2: ("classes",),
        },
        rtol=1e-4,
        atol=1e-5,
    )


def expectation(
    attrs: dict[str, Any], operands: list[Array], logs: bool
) -> list[Array]:
    """The results by the specification, in float32 and rounded at the end."""
    work = operands[0].astype(np.float32)
    if not logs:
        work = work - np.log(np.exp(work).sum(1, keepdims=True))
    target = operands[1].astype(np.int64)
    kept = target != attrs.get("ignore_index", -(2**40))
    index = np.expand_dims(np.where(kept, target, 0), 1)
    weight = kept.astype(np.float32)
    if len(operands) > 2:
        weight = weight * operands[2].astype(np.float32)[index[:, 0]]
    loss = -np.take_along_axis(work, index, 1)[:, 0] * weight
    reduction = attrs.get("reduction", "mean")
    if reduction != "none":
        loss = loss.sum() / (weight.sum() if reduction == "mean" else 1)
    return [np.asarray(y).astype(operands[0].dtype) for y in (loss, work)]


@case("NegativeLogLikelihoodLoss")
def nll(draw: Draw, version: int) -> Example:
    return classified(draw, 1, logs=True)


@case("SoftmaxCrossEntropyLoss")
def cross_entropy(draw: Draw, version: int) -> Example:
    return classified(draw, draw(st.integers(1, 2)), logs=False)
