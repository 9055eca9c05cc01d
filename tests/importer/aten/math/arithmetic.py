"""Sums, products, quotients and remainders, with every type promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import (
    Case,
    bools,
    case,
    f16,
    f32,
    f64,
    fixed,
    i32,
    i64,
)
from tests.importer.aten.inputs import F32, POSITIVE, WHOLE, X, single

y, small = f32(3, 1), i32(4)
BY, BELOW = fixed("float32", [[1.5], [-0.7], [2.0]]), fixed("int64", [[3], [-2], [4]])


def rounded(mode: str, f: Callable[..., Any]) -> list[Case]:
    """Return the cases of a division with rounding."""

    def quotient(x: Any, y: Any) -> Any:
        return f(np.float64(x) / np.float64(y)).astype(np.result_type(x, y))

    def third(x: Any) -> Any:
        return quotient(x, np.int64(-3))

    target, how = "div.Tensor_mode", {"rounding_mode": mode}
    whole: dict[str, Any] = {"self": WHOLE, "other": BELOW, **how}
    floating: dict[str, Any] = {"self": X, "other": BY, **how}
    number: dict[str, Any] = {"self": WHOLE, "other": -3, **how}
    return [
        case(target, quotient, label=mode, **floating),
        case(target, quotient, label=f"{mode}-int", **whole),
        case("div.Scalar_mode", third, label=mode, **number),
    ]


CASES: tuple[Case, ...] = (
    *rounded("floor", np.floor),
    *rounded("trunc", np.trunc),
    case("add.Tensor", lambda x, y: x + 2 * y, self=X, other=y, alpha=2),
    case(
        "add.Tensor",
        lambda x, y: (x + F32(0.5) * y).astype(F32),
        label="float-alpha",
        self=X,
        other=WHOLE,
        alpha=0.5,
    ),
    case("add.Tensor", lambda x, y: x + y, label="int", self=WHOLE, other=small),
    case(
        "add.Tensor",
        lambda x, y: x + np.float16(y),
        label="half",
        self=f16("n", 3),
        other=f64(),
    ),
    case("add.Scalar", lambda x: x + 6, self=WHOLE, other=2, alpha=3),
    case(
        "add.Scalar",
        single(lambda x: x + 1.5),
        label="float",
        self=WHOLE,
        other=1.5,
    ),
    case(
        "add.Tensor",
        np.logical_or,
        label="bool",
        self=bools("n", 3),
        other=bools(3),
    ),
    case("sub.Tensor", lambda x, y: x - 3 * y, self=WHOLE, other=i64(3, 1), alpha=3),
    case("sub.Scalar", lambda x: x - 3, self=X, other=1.5, alpha=2),
    case("rsub.Scalar", lambda x: 1 - 2 * x, self=X, other=1, alpha=2),
    case("rsub.Tensor", lambda x, y: y - 2 * x, self=X, other=y, alpha=2),
    case("mul.Tensor", lambda x, y: x * y, self=X, other=y),
    case("mul.Tensor", single(np.multiply), label="mixed", self=WHOLE, other=y),
    case(
        "mul.Tensor",
        np.logical_and,
        label="bool",
        self=bools("n", 3),
        other=bools(3),
    ),
    case("mul.Tensor", lambda x, y: x * y, label="mask", self=X, other=bools(3, 1)),
    case("mul.Scalar", single(lambda x: x * 2.5), self=WHOLE, other=2.5),
    case("div.Tensor", lambda x, y: x / y, self=X, other=POSITIVE),
    case(
        "div.Tensor",
        single(np.divide),
        label="int",
        self=WHOLE,
        other=i64(3, 1, low=1),
    ),
    case("div.Scalar", single(lambda x: x / 4), self=WHOLE, other=4),
    case("div.Scalar", lambda x: x / F32(4), label="float", self=X, other=4),
    case("true_divide.Tensor", single(np.divide), self=WHOLE, other=i64(4, low=1)),
    case(
        "div.Tensor_mode",
        lambda x, y: x / y,
        self=X,
        other=BY,
        rounding_mode=None,
    ),
    case("floor_divide.default", np.floor_divide, self=WHOLE, other=BELOW),
    case("floor_divide.default", np.floor_divide, label="float", self=X, other=BY),
    case("floor_divide.Scalar", lambda x: x // -3, self=WHOLE, other=-3),
    case("remainder.Tensor", np.mod, self=WHOLE, other=BELOW),
    case("remainder.Tensor", np.mod, label="float", self=X, other=BY),
    case("remainder.Scalar", lambda x: x % -3, self=WHOLE, other=-3),
    case("remainder.Scalar", lambda x: x % F32(0.7), label="float", self=X, other=0.7),
    case("remainder.Scalar_Tensor", lambda x: 7 % x, self=7, other=BELOW),
    case("fmod.Tensor", np.fmod, self=WHOLE, other=BELOW),
    case("fmod.Tensor", np.fmod, label="float", self=X, other=BY),
    case("fmod.Scalar", lambda x: np.fmod(x, -3), self=WHOLE, other=-3),
    case(
        "fmod.Scalar",
        lambda x: np.fmod(x, F32(0.7)),
        label="float",
        self=X,
        other=0.7,
    ),
)
