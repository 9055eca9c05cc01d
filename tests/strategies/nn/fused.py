"""Examples of the operators that passes make."""

from typing import Any

from hypothesis import strategies as st

from tests.strategies.nn.norm import attributes, example
from tests.strategies.registry import Draw, Example, case, extents, floats


@case("Linear", domain="burn")
def linear(draw: Draw, version: int) -> Example:
    inner, outer = extents(draw, 2, 2)
    x = (*extents(draw, 1, 3), inner)
    operands = [floats(draw, x), floats(draw, (outer, inner))]
    if draw(st.booleans()):
        operands.append(floats(draw, (outer,)))
    return Example({}, operands)


@case("Conv1D", domain="burn")
def unturned(draw: Draw, version: int) -> Example:
    inner, outer = extents(draw, 2, 2)
    x = (*extents(draw, 1, 3), inner)
    operands = [floats(draw, x), floats(draw, (inner, outer))]
    if draw(st.booleans()):
        operands.append(floats(draw, (outer,)))
    return Example({}, operands)


@case("LayerNorm", "RMSNorm", domain="burn")
def features(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    attrs: dict[str, Any] = attributes(draw, epsilon=0.03)
    attrs["axis"] = draw(st.integers(-len(shape), len(shape) - 1))
    return Example(attrs, [floats(draw, shape)], rtol=1e-4, atol=1e-5)


@case("GroupNorm", domain="burn")
def groups(draw: Draw, version: int) -> Example:
    count = draw(st.sampled_from([2, 3, 1]))
    channels = count * draw(st.sampled_from([2, 3, 1]))
    size = extents(draw, 1, 3, least=2, most=4)
    attrs = {**attributes(draw, epsilon=0.03), "num_groups": count}
    return example(attrs, [floats(draw, (2, channels, *size))])


@case("InstanceNorm", domain="burn")
def instances(draw: Draw, version: int) -> Example:
    size = extents(draw, 1, 3, least=2, most=4)
    return example(attributes(draw, epsilon=0.03), [floats(draw, (2, 3, *size))])


@case("BatchNorm", domain="burn")
def statistics(draw: Draw, version: int) -> Example:
    size = extents(draw, 0, 3, least=1, most=4)
    (channels,) = extents(draw, 1, 1)
    mean, var = floats(draw, (channels,)), abs(floats(draw, (channels,))) + 0.5
    attrs = attributes(draw, epsilon=0.03, momentum=0.8)
    return example(attrs, [floats(draw, (2, channels, *size)), mean, var])


@case("Roll", domain="burn")
def rolled(draw: Draw, version: int) -> Example:
    shape = extents(draw, 1, 4)
    axes = draw(
        st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3, unique=True)
    )
    shifts = tuple(draw(st.integers(-7, 7)) for _ in axes)
    attrs = {"axes": tuple(axes), "shifts": shifts}
    return Example(attrs, [floats(draw, shape)])
