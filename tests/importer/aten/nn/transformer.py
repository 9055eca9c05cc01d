"""Fused attention and encoder layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, InputSpec, case, f32, fixed
from tests.importer.aten.inputs import F32
from tests.importer.aten.nn.activation import softmax

WIDTH, HEADS, ROWS = 8, 2, 5
SOURCE = f32("n", ROWS, WIDTH)
CAUSAL = np.triu(np.ones((ROWS, ROWS), dtype=bool), 1)


def small(*dims: int) -> InputSpec:
    return f32(*dims, low=-0.5, high=0.5)


PROJECTIONS: dict[str, Any] = {
    "qkv_weight": small(3 * WIDTH, WIDTH),
    "qkv_bias": small(3 * WIDTH),
    "proj_weight": small(WIDTH, WIDTH),
    "proj_bias": small(WIDTH),
}


def attended(
    operands: Sequence[Array], w: Array, b: Array, hidden: Array | None = None
) -> Any:
    """Return the joined results of the heads, and their weights."""
    shape = (*operands[0].shape[:2], HEADS, WIDTH // HEADS)
    q, k, v = (
        (x @ part.T + shift).reshape(shape).swapaxes(1, 2)
        for x, part, shift in zip(operands, np.split(w, 3), np.split(b, 3), strict=True)
    )
    scores = q @ k.swapaxes(2, 3) / np.sqrt(F32(WIDTH // HEADS))
    if hidden is not None:
        scores = np.where(hidden, F32(-np.inf), scores)
    weights = softmax(scores, -1)
    return (weights @ v).swapaxes(1, 2).reshape(operands[0].shape), weights


def attention(average: bool = True, spread: Any = None) -> Any:
    """Return attention and its weights; ``spread`` expands a mask to the scores."""

    def run(*given: Array) -> Any:
        (w, b, p, c), masks = given[3:7], given[7:]
        hidden = spread(masks[0] != 0) if masks else None
        result, weights = attended(given[:3], w, b, hidden)
        return result @ p.T + c, weights.mean(1) if average else weights

    return run


def norm(x: Array, w: Array, b: Array) -> Array:
    deviation = x - x.mean(-1, keepdims=True)
    spread = np.sqrt(x.var(-1, keepdims=True) + F32(1e-5))
    return np.asarray(deviation / spread * w + b)


def layer(norm_first: bool) -> Any:
    def run(x: Array, w: Array, b: Array, p: Array, c: Array, *rest: Array) -> Array:
        first, second = rest[0:2], rest[2:4]
        w1, b1, w2, b2 = rest[4:8]

        def attend(x: Array) -> Array:
            return np.asarray(attended([x] * 3, w, b)[0] @ p.T + c)

        def feed(x: Array) -> Array:
            return np.asarray(np.maximum(x @ w1.T + b1, 0) @ w2.T + b2)

        if norm_first:
            x = x + attend(norm(x, *first))
            return np.asarray(x + feed(norm(x, *second)))
        x = norm(x + attend(x), *first)
        return norm(x + feed(x), *second)

    return run


def called(expected: Any, label: str, **options: Any) -> Case:
    """Return a case of attention."""
    return case(
        "_native_multi_head_attention.default",
        expected,
        label=label,
        tolerance=1e-4,
        query=SOURCE,
        key=SOURCE,
        value=SOURCE,
        embed_dim=WIDTH,
        num_head=HEADS,
        **PROJECTIONS,
        **options,
    )


NORMS: dict[str, Any] = {
    f"norm_{kind}_{place}": f32(WIDTH)
    for place in (1, 2)
    for kind in ("weight", "bias")
}
FEED: dict[str, Any] = {
    "ffn_weight_1": small(12, WIDTH),
    "ffn_bias_1": small(12),
    "ffn_weight_2": small(WIDTH, 12),
    "ffn_bias_2": small(WIDTH),
}

LAYERS = tuple(
    case(
        "_transformer_encoder_layer_fwd.default",
        layer(norm_first),
        label="before" if norm_first else "after",
        tolerance=1e-4,
        src=SOURCE,
        embed_dim=WIDTH,
        num_heads=HEADS,
        **PROJECTIONS,
        use_gelu=False,
        norm_first=norm_first,
        eps=1e-5,
        **NORMS,
        **FEED,
    )
    for norm_first in (False, True)
)

PADDED = np.arange(ROWS) > 2
CASES: tuple[Case, ...] = (
    *LAYERS,
    called(attention(), "weights"),
    called(attention(False), "heads", average_attn_weights=False),
    called(
        attention(spread=lambda mask: mask),
        "causal",
        mask=fixed("bool", CAUSAL),
        mask_type=0,
    ),
    called(
        attention(spread=lambda mask: mask[:, None, None]),
        "padding",
        mask=InputSpec(
            "bool", ("n", ROWS), lambda rng, shape: np.broadcast_to(PADDED, shape)
        ),
        mask_type=1,
    ),
    called(
        attention(spread=lambda mask: mask),
        "both",
        mask=InputSpec(
            "bool",
            ("n", HEADS, ROWS, ROWS),
            lambda rng, shape: np.broadcast_to(CAUSAL | PADDED, shape),
        ),
        mask_type=2,
    ),
)
