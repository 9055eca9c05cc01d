"""Examples of linear attention, causal convolution and gated activation."""

import numpy as np
from hypothesis import strategies as st

from tests.strategies.nn.norm import attributes
from tests.strategies.registry import Array, Draw, Example, case, extents, floats


@case("LinearAttention")
def linear_attention(draw: Draw, version: int) -> Example:
    batch, length, size, out = extents(draw, 4, 4, most=4)
    groups = draw(st.sampled_from([1, 2, 3]))
    heads = groups * draw(st.sampled_from([1, 2]))
    rule = draw(st.sampled_from(["linear", "gated", "delta", "gated_delta"]))
    attrs = attributes(draw, scale=0.7, chunk_size=2)
    attrs |= {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule}
    inputs: list[Array | None] = [
        floats(draw, (batch, length, heads * size)),
        floats(draw, (batch, length, groups * size)) * np.float32(0.5),
        floats(draw, (batch, length, groups * out)),
        None,
        None,
        None,
    ]
    if draw(st.booleans()):
        inputs[3] = floats(draw, (batch, groups, size, out))
    if "gated" in rule:
        width = groups * draw(st.sampled_from([1, size]))
        inputs[4] = -np.abs(floats(draw, (batch, length, width)))
    if "delta" in rule:
        width = draw(st.sampled_from([1, groups]))
        inputs[5] = np.abs(floats(draw, (batch, length, width)))
    names = {
        i: (
            "batch",
            *(("length",) if x.ndim == 3 else ()),
            *x.shape[2 - (x.ndim > 3) :],
        )
        for i, x in enumerate(inputs)
        if x is not None
    }
    outputs = draw(st.integers(1, 2))
    return Example(attrs, inputs, outputs, symbols=names, rtol=1e-4, atol=1e-5)


@case("CausalConvWithState")
def causal_conv(draw: Draw, version: int) -> Example:
    batch, channels, length, width = extents(draw, 4, 4)
    attrs = attributes(draw, activation=draw(st.sampled_from(["silu", "swish"])))
    inputs: list[Array | None] = [
        floats(draw, (batch, channels, length)),
        floats(draw, (channels, 1, width)),
        floats(draw, (channels,)) if draw(st.booleans()) else None,
        floats(draw, (batch, channels, width - 1)) if draw(st.booleans()) else None,
    ]
    names: dict[int, tuple[str | int, ...]] = {
        0: ("batch", channels, "length"),
        1: (channels, 1, width),
        2: (channels,),
        3: ("batch", channels, width - 1),
    }
    outputs = draw(st.integers(1, 2))
    return Example(attrs, inputs, outputs, symbols=names, rtol=1e-4, atol=1e-5)


@case("SwiGLU")
def swiglu(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    dtype = draw(st.sampled_from([np.float32, np.float16, np.float64]))
    attrs = attributes(draw, alpha=1.7)
    return Example(attrs, [floats(draw, shape, dtype), floats(draw, shape, dtype)])
