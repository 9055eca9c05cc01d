"""Helpers of several families of cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import f32, fixed, i64

F32 = np.float32


def single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with its result in float32."""
    return lambda *xs: np.asarray(function(*xs)).astype(np.float32)


def after(function: Callable[..., Any], *rest: Any) -> Callable[..., Any]:
    """Return ``function`` of one operand, with these other operands."""
    return lambda x: function(x, *rest)


X = f32("n", 3, 4)
WHOLE = i64("n", 3, 4)
POSITIVE = f32("n", 3, 4, low=0.1)
UNIT = f32("n", 3, 4, low=-0.9, high=0.9)
SPECIAL = fixed("float32", [[[-1.5, math.inf], [math.nan, -math.inf], [0.0, 2.0]]])
