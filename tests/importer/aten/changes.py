"""Operators that write to an operand, and normalization in training."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, f64, i64, with_changed
from tests.importer.aten.nn.norm import (
    EPS,
    IMAGE,
    POSITIVE,
    SIX,
    instance,
    own_statistics,
)

MOMENTUM = 0.3
STATISTICS = "running_mean running_var"
OPTIONS: dict[str, Any] = {"momentum": MOMENTUM, "eps": EPS}
GIVEN: dict[str, Any] = {
    "input": IMAGE,
    "weight": SIX,
    "bias": SIX,
    "running_mean": SIX,
    "running_var": POSITIVE,
}


def kept(x: Array, mean: Array, var: Array) -> list[Array]:
    """Return the running statistics after another batch."""
    axes = (0, 2, 3)
    new = x.mean(axes), x.var(axes, ddof=1)
    return averages((mean, var), new)


def averages(old: Any, new: Any) -> list[Array]:
    pairs = zip(old, new, strict=True)
    return [(1 - MOMENTUM) * a + MOMENTUM * b for a, b in pairs]


def training(x: Array, w: Array, b: Array, mean: Array, var: Array) -> list[Array]:
    return [*own_statistics(x, w, b), *kept(x, mean, var)]


def layer(x: Array, w: Array, b: Array, mean: Array, var: Array) -> list[Array]:
    return [own_statistics(x, w, b)[0], *kept(x, mean, var)]


def instances(x: Array, w: Array, b: Array, mean: Array, var: Array) -> list[Array]:
    means, spreads = x.mean((2, 3)).mean(0), x.var((2, 3), ddof=1).mean(0)
    return [instance(x, w, b), *averages((mean, var), (means, spreads))]


def twice(function: Any) -> Any:
    """Return a result that is also written to an operand."""

    def run(*arrays: Array) -> Any:
        result = np.asarray(function(*arrays[:-1])).astype(arrays[-1].dtype)
        return result, result

    return run


CASES: tuple[Case, ...] = (
    with_changed(
        STATISTICS,
        case(
            "_native_batch_norm_legit.default",
            lambda *given: tuple(training(*given)),
            **GIVEN,
            training=True,
            **OPTIONS,
        ),
    ),
    with_changed(
        STATISTICS,
        case(
            "native_batch_norm.default",
            lambda *given: tuple(training(*given)),
            **GIVEN,
            training=True,
            **OPTIONS,
        ),
    ),
    case(
        "_native_batch_norm_legit_functional.default",
        lambda *given: tuple(training(*given)),
        **GIVEN,
        training=True,
        **OPTIONS,
    ),
    with_changed(
        STATISTICS,
        case(
            "batch_norm.default",
            lambda *given: tuple(layer(*given)),
            label="training",
            **GIVEN,
            training=True,
            **OPTIONS,
            cudnn_enabled=False,
        ),
    ),
    with_changed(
        STATISTICS,
        case(
            "instance_norm.default",
            lambda *given: tuple(instances(*given)),
            label="training",
            **GIVEN,
            use_input_stats=True,
            **OPTIONS,
            cudnn_enabled=False,
        ),
    ),
    *(
        with_changed(
            "out",
            case(
                "atan2.out",
                twice(np.arctan2),
                label=label,
                self=left("n", 3, 4),
                other=f32("n", 3, 4),
                out=out("n", 3, 4),
            ),
        )
        for label, left, out in (("same", f32, f32), ("wider", f32, f64))
    ),
    with_changed(
        "out",
        case(
            "atan2.out",
            twice(lambda y, x: np.arctan2(y.astype(np.float32), x.astype(np.float32))),
            label="whole",
            self=i64("n", 3),
            other=i64(3, low=1),
            out=f32("n", 3),
        ),
    ),
    with_changed(
        "out",
        case(
            "pow.Tensor_Scalar_out",
            twice(lambda x: x ** np.float32(1.5)),
            self=POSITIVE,
            exponent=1.5,
            out=f64(6),
        ),
    ),
    with_changed(
        "out",
        case(
            "pow.Tensor_Scalar_out",
            twice(lambda x: x**3),
            label="whole",
            self=i64("n", 3),
            exponent=3,
            out=f32("n", 3),
        ),
    ),
    *(
        with_changed(
            "out",
            case(
                f"{name}.out",
                twice(function),
                label="wider",
                self=f32("n", 3),
                other=f32(3, low=0.5),
                out=f64("n", 3),
            ),
        )
        for name, function in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("div", np.divide),
            ("maximum", np.maximum),
            ("minimum", np.minimum),
            ("max", np.maximum),
            ("min", np.minimum),
        )
    ),
    *(
        with_changed(
            "out",
            case(
                f"{name}.out",
                twice(function),
                label=label,
                self=given("n", 3),
                out=out("n", 3),
            ),
        )
        for name, function, label, given, out in (
            ("exp", np.exp, "wider", f32, f64),
            ("abs", np.abs, "same", f32, f32),
            ("neg", np.negative, "same", f32, f32),
            ("sin", lambda x: np.sin(x.astype(np.float32)), "whole", i64, f64),
        )
    ),
    with_changed(
        "out",
        case(
            "div.out",
            twice(lambda x, y: x.astype(np.float32) / y.astype(np.float32)),
            label="whole",
            self=i64("n", 3),
            other=i64(3, low=1),
            out=f32("n", 3),
        ),
    ),
    with_changed(
        "out",
        case(
            "add.out",
            twice(lambda x, y: x - 2 * y),
            label="multiple",
            self=f32("n", 3),
            other=f32(3),
            alpha=-2,
            out=f32("n", 3),
        ),
    ),
)
