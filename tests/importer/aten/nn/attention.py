"""Scaled dot-product attention of ranks 2 to 6, with masks that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32
from tests.importer.aten.inputs import F32
from tests.importer.aten.nn.activation import softmax

HEADS = f32("n", 4, 5, 6)
#: Shapes of masks of scores [n, 3, 3, 5, 5].
MASKS: tuple[tuple[int | str, ...], ...] = (
    (5, 5),
    (3, 1, 5),
    (3, 1, 1, 5),
    (1, 1, 3, 5, 5),
    ("n", 3, 1, 5, 5),
    ("n", 1, 3, 1, 5),
)


def attended(
    scale: float | None = None, causal: bool = False, is_grouped: bool = False
) -> Any:
    """Return attention; a bool mask hides scores, a float mask is added."""

    def run(q: Array, k: Array, v: Array, mask: Array | None = None) -> Any:
        factor = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
        repeated = q.shape[-3] // k.shape[-3] if is_grouped else 1
        k, v = (np.repeat(x, repeated, -3) if is_grouped else x for x in (k, v))
        scores = q @ np.swapaxes(k, -1, -2) * F32(factor)
        if causal:
            mask = np.tri(*scores.shape[-2:], dtype=bool)
        if mask is not None and mask.dtype == bool:
            scores = np.where(mask, scores, F32(-np.inf))
        elif mask is not None:
            scores = scores + mask
        return softmax(scores, -1) @ v

    return run


CASES: tuple[Case, ...] = (
    case(
        "scaled_dot_product_attention.default",
        attended(),
        query=HEADS,
        key=f32("n", 4, 3, 6),
        value=f32("n", 4, 3, 2),
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(causal=True),
        label="causal",
        query=HEADS,
        key=HEADS,
        value=HEADS,
        is_causal=True,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(0.3),
        label="added",
        query=HEADS,
        key=HEADS,
        value=HEADS,
        attn_mask=f32(5, 5),
        scale=0.3,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(is_grouped=True),
        label="groups",
        query=HEADS,
        key=f32("n", 2, 5, 6),
        value=f32("n", 2, 5, 6),
        enable_gqa=True,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(),
        label="rows",
        query=f32("n", 5, 6),
        key=f32("n", 4, 6),
        value=f32("n", 4, 6),
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(is_grouped=True),
        label="groups_of_rank_3",
        query=f32(4, "n", 6),
        key=f32(2, 3, 6),
        value=f32(2, 3, 5),
        enable_gqa=True,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(causal=True),
        label="rank_2",
        query=f32("n", 6),
        key=f32(3, 6),
        value=f32(3, 5),
        is_causal=True,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(0.3, True, True),
        label="windows",
        query=f32("n", 3, 4, 5, 6),
        key=f32("n", 3, 2, 7, 6),
        value=f32("n", 3, 2, 7, 8),
        is_causal=True,
        scale=0.3,
        enable_gqa=True,
    ),
    case(
        "scaled_dot_product_attention.default",
        attended(),
        label="rank_6",
        query=f32(2, "n", 3, 4, 5, 6),
        key=f32(2, "n", 3, 4, 5, 6),
        value=f32(2, "n", 3, 4, 5, 6),
        attn_mask=f32(1, 3, 1, 5, 5),
    ),
    *(
        case(
            "scaled_dot_product_attention.default",
            attended(),
            label=f"windows_masked_{number}",
            query=f32("n", 3, 3, 5, 6),
            key=f32("n", 3, 3, 5, 6),
            value=f32("n", 3, 3, 5, 6),
            attn_mask=f32(*shape),
        )
        for number, shape in enumerate(MASKS)
    ),
)
