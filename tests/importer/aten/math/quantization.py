"""Fake quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, fixed
from tests.importer.aten.inputs import F32

LOW, HIGH = -6, 9
LIMITS: dict[str, Any] = {"quant_min": LOW, "quant_max": HIGH}
X = f32("n", 3, 4, low=-3, high=3)
SCALES, SHIFTS = fixed("float32", [0.25, 0.5, 0.125]), fixed("int32", [0, 2, -3])


def rounded(x: Array, scale: Any, shift: Any) -> Array:
    whole = np.clip(np.rint(x * (F32(1) / F32(scale))) + shift, LOW, HIGH)
    return np.asarray(((whole - shift) * F32(scale)).astype(x.dtype))


def by_rows(x: Array, scale: Array, shift: Array) -> Array:
    return rounded(x, scale[:, None], shift[:, None].astype(F32))


CASES: tuple[Case, ...] = (
    case(
        "fake_quantize_per_tensor_affine.default",
        lambda x: rounded(x, 0.25, 2),
        self=X,
        scale=0.25,
        zero_point=2,
        **LIMITS,
    ),
    case(
        "fake_quantize_per_tensor_affine.tensor_qparams",
        lambda x, s, z: rounded(x, s, z.astype(F32)),
        self=X,
        scale=fixed("float32", [0.25]),
        zero_point=fixed("int32", [1]),
        **LIMITS,
    ),
    case(
        "fake_quantize_per_channel_affine.default",
        by_rows,
        self=X,
        scale=SCALES,
        zero_point=SHIFTS,
        axis=1,
        **LIMITS,
    ),
)
