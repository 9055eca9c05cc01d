"""Comparisons, logical and bitwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import (
    Case,
    bools,
    case,
    fixed,
    i32,
    i64,
)
from tests.importer.aten.inputs import SPECIAL, WHOLE, X, after

COMPARISONS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("eq", np.equal),
    ("ne", np.not_equal),
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
)
LOGICAL: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("and", np.logical_and),
    ("or", np.logical_or),
    ("xor", np.logical_xor),
)
BITS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("and", np.bitwise_and),
    ("or", np.bitwise_or),
    ("xor", np.bitwise_xor),
)

SMALL = i64("n", 3, 4, low=0, high=2)
BINARY = i64("n", 3, 4, low=0, high=1)
STEPS = fixed("float32", [[0.5], [1.0], [2.0]])
MASK = bools("n", 3, 4)
COLUMN = bools(3, 1)
SHIFT = i64(3, 1, low=0, high=3)


def compared(name: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a comparison."""
    scalar, tensor = f"{name}.Scalar", f"{name}.Tensor"
    return [
        case(tensor, f, self=SMALL, other=STEPS),
        case(tensor, f, label="bool", self=MASK, other=COLUMN),
        case(scalar, after(f, 1), self=SMALL, other=1),
        case(scalar, after(f, 0.5), label="float", self=SMALL, other=0.5),
    ]


def combined(name: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a logical operator."""
    target = f"logical_{name}.default"
    return [
        case(target, f, self=BINARY, other=COLUMN),
        case(target, f, label="float", self=BINARY, other=X),
    ]


def bits(name: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a bitwise operator."""
    of_five = after(f, 5)
    return [
        case(f"bitwise_{name}.Tensor", f, self=WHOLE, other=i32(3, 1)),
        case(f"bitwise_{name}.Tensor", f, label="bool", self=MASK, other=COLUMN),
        case(f"bitwise_{name}.Scalar", of_five, self=WHOLE, other=5),
        case(f"bitwise_{name}.Scalar_Tensor", of_five, self=5, other=WHOLE),
        case(f"__{name}__.Tensor", f, self=WHOLE, other=i64(3, 1)),
        case(f"__{name}__.Scalar", of_five, self=WHOLE, other=5),
    ]


def shifted(name: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a shift of bits."""
    by_two = after(f, 2)
    long, short = f"bitwise_{name}_shift", f"__{name[0]}shift__"
    return [
        case(f"{long}.Tensor", f, self=WHOLE, other=SHIFT),
        case(f"{long}.Tensor_Scalar", by_two, self=WHOLE, other=2),
        case(f"{short}.Scalar", by_two, self=WHOLE, other=2),
        case(f"{short}.Tensor", f, self=WHOLE, other=SHIFT),
    ]


CASES: tuple[Case, ...] = (
    *(c for name, f in COMPARISONS for c in compared(name, f)),
    *(c for name, f in LOGICAL for c in combined(name, f)),
    *(c for name, f in BITS for c in bits(name, f)),
    *shifted("left", np.left_shift),
    *shifted("right", np.right_shift),
    case("bitwise_not.default", np.invert, self=WHOLE),
    case("bitwise_not.default", np.invert, label="bool", self=bools("n", 3)),
    case("logical_not.default", np.logical_not, self=i64("n", 3, low=0, high=1)),
    case("isnan.default", np.isnan, self=SPECIAL),
    case("isnan.default", np.isnan, label="int", self=WHOLE),
    case("isinf.default", np.isinf, self=SPECIAL),
    case("isinf.default", np.isinf, label="int", self=WHOLE),
    case("isfinite.default", np.isfinite, self=SPECIAL),
    case("isposinf.default", np.isposinf, self=SPECIAL),
    case("isneginf.default", np.isneginf, self=SPECIAL),
    case("signbit.default", np.signbit, self=X),
    case("signbit.default", np.signbit, label="int", self=WHOLE),
)
