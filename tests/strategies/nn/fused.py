"""Examples of the operators that passes make."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.nn.norm import attributes, example
from tests.strategies.registry import Array, Draw, Example, case, extents, floats


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


@case("MultiheadAttention", domain="burn")
def module_of_heads(draw: Draw, version: int) -> Example:
    """An attention whose masks show the first key to all rows."""
    batch, rows, columns, heads, size = (draw(st.integers(1, 3)) for _ in range(5))
    embed = heads * size
    attrs = {"num_heads": heads, "is_causal": draw(st.booleans())}
    attrs |= {name: draw(st.booleans()) for name in ("batch_first", "need_weights")}
    both, biased = draw(st.booleans()), draw(st.booleans())
    widths = (embed, *(draw(st.integers(1, 3)) if both else embed for _ in "kv"))
    lengths = (rows, columns, columns)
    inputs: list[Array | None] = [
        floats(draw, (batch, n, w) if attrs["batch_first"] else (n, batch, w))
        for n, w in zip(lengths, widths, strict=True)
    ]
    hidden = np.zeros((batch, columns), np.bool_)
    hidden[:, 1:] = draw(st.booleans())
    inputs.append(hidden if draw(st.booleans()) else None)
    inputs.append(floats(draw, (rows, columns)) if draw(st.booleans()) else None)
    inputs += [floats(draw, (embed, embed)), floats(draw, (embed,)) if biased else None]
    inputs.append(floats(draw, (3 * embed,)) if biased else None)
    shapes = [(embed, w) for w in widths] if both else [(3 * embed, embed)]
    inputs += [floats(draw, shape) for shape in shapes]
    return Example(
        attrs,
        inputs,
        outputs=2 if attrs["need_weights"] and draw(st.booleans()) else 1,
        stored=frozenset(range(5, len(inputs))),
        resizable=False,
        rtol=1e-4,
        atol=1e-5,
    )
