"""Examples of onnxruntime's mixtures of experts and layers of bitsandbytes."""

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
    integers,
)

DOMAIN = "com.microsoft"
ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")


@case("MoE", domain=DOMAIN)
def experts(draw: Draw, version: int) -> Example:
    count, hidden, inner = (draw(st.integers(2, 4)) for _ in range(3))
    batch = extents(draw, 1, 2)
    activation = draw(st.sampled_from(ACTIVATIONS))
    attrs: dict[str, Any] = {
        "activation_type": activation,
        "k": draw(st.integers(1, count)),
        "normalize_routing_weights": draw(st.integers(0, 1)),
    }
    width = inner
    if activation == "swiglu":
        width = 2 * inner
        attrs |= {"swiglu_fusion": 1, "activation_alpha": 1.5, "activation_beta": 1.0}
        if draw(st.booleans()):
            attrs["swiglu_limit"] = 0.5
    has_bias = draw(st.booleans())
    operands: list[Array | None] = [
        floats(draw, (*batch, hidden)),
        distinct(draw, (int(np.prod(batch)), count)) * np.float32(0.2),
        floats(draw, (count, width, hidden)),
        floats(draw, (count, width)) if has_bias else None,
        floats(draw, (count, hidden, inner)),
    ]
    if has_bias:
        operands.append(floats(draw, (count, hidden)))
    return Example(attrs, operands, resizable=False, smooth=False, rtol=1e-4, atol=1e-4)


@case("MatMulBnb4", domain=DOMAIN)
def matmul_bnb4(draw: Draw, version: int) -> Example:
    rows, columns = draw(st.integers(1, 5)), draw(st.sampled_from([16, 24, 32]))
    size = 16
    operands: list[Array | None] = [
        floats(draw, (*extents(draw, 1, 2), columns)),
        integers(draw, (rows * columns // 2,), 0, 255, np.uint8),
        np.abs(floats(draw, (-(-rows * columns // size),))) + np.float32(0.1),
    ]
    attrs = {"K": columns, "N": rows, "block_size": size}
    attrs["quant_type"] = draw(st.integers(0, 1))
    names: Any = {0: ("a", "b", columns)[-operands[0].ndim :]}  # type: ignore[union-attr]
    names |= {i: operands[i].shape for i in (1, 2)}  # type: ignore[union-attr]
    return Example(attrs, operands, symbols=names, rtol=1e-4, atol=1e-4)
