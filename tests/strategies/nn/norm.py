"""Examples of normalization."""

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
)


def positive(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Numbers between a half and 2."""
    return np.asarray(generator(draw).uniform(0.5, 2.0, shape), np.float32)


def attributes(draw: Draw, **values: Any) -> dict[str, Any]:
    """Some of the attributes."""
    return {name: v for name, v in values.items() if draw(st.booleans())}


def example(
    attrs: dict[str, Any], inputs: list[Array], outputs: int = 1, **more: Any
) -> Example:
    """An example in which all but the data have fixed extents."""
    x = inputs[0]
    first = ("batch", x.shape[1], *(f"size{i}" for i in range(x.ndim - 2)))
    names = {i: v.shape for i, v in enumerate(inputs)} | {0: first}
    more = {"rtol": 1e-4, "atol": 1e-5, **more}
    return Example(attrs, inputs, outputs, symbols=names, **more)


@case("BatchNormalization")
def batch(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 5, least=2, most=4)
    attrs = attributes(draw, epsilon=0.03)
    spatial = not (version < 9 and draw(st.booleans()))
    training = draw(st.booleans())
    if version < 7 and not training:
        attrs["is_test"] = 1
    if version == 1:
        attrs["consumed_inputs"] = (0,) * 5
    statistics = shape[1:2] if spatial else shape[1:]
    outputs = 1
    if not spatial:
        attrs["spatial"] = 0
    if training:
        attrs |= {"momentum": 0.7} | ({"training_mode": 1} if version >= 14 else {})
        outputs = 3 if version >= 14 else 5
    x, scale, bias = floats(draw, shape), *(floats(draw, statistics) for _ in "sb")
    inputs = [x, scale, bias, floats(draw, statistics), positive(draw, statistics)]
    expected = batch_expected(attrs, inputs, training)[:outputs]
    return example(
        attrs,
        inputs,
        outputs,
        expected=expected if version < (14 if training else 9) else None,
        resizable=spatial and outputs == 1,
    )


def batch_expected(
    attrs: dict[str, Any], inputs: list[Array], training: bool
) -> list[Array]:
    """The results as versions before 14 describe them."""
    x, scale, bias, mean, var = inputs
    spatial = attrs.get("spatial", 1)
    axes = (0, *range(2, x.ndim)) if spatial else (0,)
    now, spread = (x.mean(axes), x.var(axes)) if training else (mean, var)
    wide = (-1, *(1 for _ in x.shape[2:])) if spatial else scale.shape
    s, b, m, v = (a.reshape(wide) for a in (scale, bias, now, spread))
    y = (x - m) / np.sqrt(v + attrs.get("epsilon", 1e-5)) * s + b
    kept = np.float32(attrs.get("momentum", 0.9))
    averages = [mean * kept + now * (1 - kept), var * kept + spread * (1 - kept)]
    return [y, *averages, now, spread]


@case("InstanceNormalization")
def instance(draw: Draw, version: int) -> Example:
    shape = extents(draw, 3, 5, least=2, most=4)
    attrs = attributes(draw, epsilon=0.03)
    x, scale, bias = floats(draw, shape), *(floats(draw, shape[1:2]) for _ in "sb")
    wide = (-1, *(1 for _ in shape[2:]))
    axes = tuple(range(2, len(shape)))
    work = x - x.mean(axes, keepdims=True)
    var = (work * work).mean(axes, keepdims=True) + attrs.get("epsilon", 1e-5)
    out = work / np.sqrt(var) * scale.reshape(wide) + bias.reshape(wide)
    return example(attrs, [x, scale, bias], expected=[out.astype(np.float32)])


@case("LayerNormalization")
def layer(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    attrs = attributes(draw, epsilon=0.03)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    if axis != -1 or draw(st.booleans()):
        attrs["axis"] = axis
    inner = shape[axis:]
    weights = [floats(draw, inner) for _ in range(draw(st.integers(1, 2)))]
    outputs = draw(st.integers(1, 3))
    x = floats(draw, shape)
    # The statistics are float32 whatever the data are, too coarse to differentiate.
    smooth = outputs == 1
    newer = (17, attrs) if version == 1 else None
    inputs = [x, *weights]
    return Example(
        attrs, inputs, outputs, smooth=smooth, newer=newer, rtol=1e-4, atol=1e-5
    )


@case("RMSNormalization")
def root_mean_square(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    attrs = attributes(draw, epsilon=0.03)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    attrs["axis"] = axis
    operands = [floats(draw, shape), floats(draw, shape[axis:])]
    return Example(attrs, operands, rtol=1e-4, atol=1e-5)


@case("GroupNormalization")
def group(draw: Draw, version: int) -> Example:
    groups = draw(st.sampled_from([2, 3, 1]))
    channels = groups * draw(st.sampled_from([2, 3, 1]))
    size = extents(draw, 1, 3, least=2, most=4)
    attrs = attributes(draw, epsilon=0.03) | {"num_groups": groups}
    x = floats(draw, (2, channels, *size))
    weights = (groups,) if version < 21 else (channels,)
    return example(attrs, [x, floats(draw, weights), floats(draw, weights)])


@case("LRN")
def local_response(draw: Draw, version: int) -> Example:
    shape = extents(draw, 4, 4, least=2)
    attrs = attributes(draw, alpha=0.3, beta=0.6, bias=1.7)
    attrs["size"] = draw(st.sampled_from([1, 3, 5]))
    return Example(attrs, [floats(draw, shape)], rtol=1e-4)


@case("MeanVarianceNormalization")
def mean_variance(draw: Draw, version: int) -> Example:
    shape = extents(draw, 4, 4, least=2)
    attrs = attributes(draw, axes=draw(st.sampled_from([(0, 1, 2, 3), (2, 3), (0, 2)])))
    return Example(attrs, [floats(draw, shape)], rtol=1e-3, atol=1e-4)


@case("LpNormalization")
def norm_of_axis(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    attrs = attributes(draw, p=1, axis=draw(st.integers(-len(shape), len(shape) - 1)))
    return Example(attrs, [floats(draw, shape)], rtol=1e-4)
