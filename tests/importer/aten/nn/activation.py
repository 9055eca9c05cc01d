"""Activations and softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, fixed, i64
from tests.importer.aten.inputs import F32, WHOLE, X, single

#: Values at which bounds are ambiguous.
ENDS = fixed("float32", [np.nan, -np.inf, np.inf, 1.0, -2.0])
PASSING_NAN: list[tuple[str, dict[str, Any]]] = [
    ("hardshrink", {"lambd": 0.7}),
    ("softshrink", {"lambd": 0.0}),
    ("threshold", {"threshold": -np.inf, "value": -np.inf}),
]


def sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array, axis: int) -> Any:
    exps = np.exp(x - x.max(axis, keepdims=True))
    return exps / exps.sum(axis, keepdims=True)


def log_softmax(x: Array, axis: int) -> Any:
    return np.log(softmax(x, axis))


def elu(x: Array, alpha: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Any:
    return np.where(x > 0, x, F32(alpha) * np.expm1(x * F32(inner))) * F32(scale)


def gelu(x: Array) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def gelu_tanh(x: Array) -> Any:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def leaky(x: Array, slope: Any) -> Any:
    return np.where(x > 0, x, x * F32(slope))


def glu(x: Array) -> Any:
    a, b = np.split(x, 2, -1)
    return a * sigmoid(b)


def shrunk(x: Array, by: float) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - F32(by), 0)


def softplus(x: Array) -> Any:
    return np.where(x * 2 > 3, x, np.log1p(np.exp(x * 2)) / 2)


CASES: tuple[Case, ...] = (
    case("relu.default", lambda x: np.maximum(x, 0), self=X),
    case("relu.default", lambda x: np.maximum(x, 0), label="int", self=WHOLE),
    case("relu6.default", lambda x: np.clip(x, 0, 6), self=f32("n", 3, low=-8, high=9)),
    case("silu.default", lambda x: x * sigmoid(x), self=X),
    case("gelu.default", single(gelu), self=X),
    case("gelu.default", single(gelu_tanh), label="tanh", self=X, approximate="tanh"),
    case("mish.default", lambda x: x * np.tanh(np.log1p(np.exp(x))), self=X),
    case("elu.default", elu, self=X),
    case("elu.default", lambda x: elu(x, 0.7), label="alpha", self=X, alpha=0.7),
    case(
        "elu.default",
        lambda x: elu(x, 0.7, 1.3, 0.5),
        label="scales",
        self=X,
        alpha=0.7,
        scale=1.3,
        input_scale=0.5,
    ),
    case(
        "elu.default",
        lambda x: elu(x, 0.7, 1.3),
        label="scale",
        self=X,
        alpha=0.7,
        scale=1.3,
    ),
    case(
        "selu.default", lambda x: elu(x, 1.6732632423543772, 1.0507009873554805), self=X
    ),
    case(
        "celu.default",
        lambda x: np.maximum(x, 0) + np.minimum(0, F32(1.5) * np.expm1(x / F32(1.5))),
        self=X,
        alpha=1.5,
    ),
    case("leaky_relu.default", lambda x: leaky(x, 0.2), self=X, negative_slope=0.2),
    case("rrelu.default", lambda x: leaky(x, 0.3), self=X, lower=0.2, upper=0.4),
    case(
        "prelu.default",
        lambda x, w: np.where(x > 0, x, x * w[:, None]),
        self=X,
        weight=f32(3),
    ),
    case(
        "prelu.default",
        lambda x, w: np.where(x > 0, x, x * w),
        label="one",
        self=X,
        weight=f32(1),
    ),
    case(
        "_prelu_kernel.default",
        lambda x, w: np.where(x > 0, x, x * w),
        self=X,
        weight=f32(1, 3, 1),
    ),
    case(
        "hardsigmoid.default",
        lambda x: np.clip(x / 6 + F32(0.5), 0, 1),
        self=f32("n", 3, low=-5, high=5),
    ),
    case(
        "hardswish.default",
        lambda x: x * np.clip(x / 6 + F32(0.5), 0, 1),
        self=f32("n", 3, low=-5, high=5),
    ),
    case(
        "hardtanh.default",
        lambda x: np.clip(x, F32(-0.5), F32(1.5)),
        self=X,
        min_val=-0.5,
        max_val=1.5,
    ),
    case(
        "hardshrink.default",
        lambda x: np.where(np.abs(x) > 0.7, x, F32(0)),
        self=X,
        lambd=0.7,
    ),
    case("softshrink.default", lambda x: shrunk(x, 0.7), self=X, lambd=0.7),
    case(
        "threshold.default",
        lambda x: np.where(x > 0.5, x, F32(-3)),
        self=X,
        threshold=0.5,
        value=-3.0,
    ),
    *(
        case(f"{name}.default", lambda x: x, label="nan", self=ENDS, **options)
        for name, options in PASSING_NAN
    ),
    case("softplus.default", lambda x: np.log1p(np.exp(x)), self=X),
    case(
        "softplus.default",
        single(softplus),
        label="beta",
        self=X,
        beta=2.0,
        threshold=3.0,
    ),
    case("log_sigmoid.default", lambda x: np.log(sigmoid(x)), self=X),
    case("glu.default", glu, self=X, dim=-1),
    case("softmax.int", lambda x: softmax(x, 1), self=X, dim=-2),
    case(
        "softmax.int",
        lambda x: softmax(x.astype(np.float64), 0),
        label="dtype",
        self=X,
        dim=0,
        dtype=np.dtype("float64"),
    ),
    case(
        "_softmax.default", lambda x: softmax(x, 1), self=X, dim=1, half_to_float=False
    ),
    case("log_softmax.int", lambda x: log_softmax(x, 2), self=X, dim=-1),
    case(
        "log_softmax.int",
        lambda x: log_softmax(x.astype(F32), 1),
        label="int",
        self=i64("n", 3),
        dim=1,
        dtype=np.dtype("float32"),
    ),
    case(
        "_log_softmax.default",
        lambda x: log_softmax(x, 0),
        self=X,
        dim=0,
        half_to_float=False,
    ),
    case("dropout.default", lambda x: x, input=X, p=0.5, train=False),
    case("feature_dropout.default", lambda x: x, input=X, p=0.5, train=False),
    case("alpha_dropout.default", lambda x: x, input=X, p=0.5, train=False),
    case(
        "native_dropout.default",
        lambda x: (x, np.ones(x.shape, bool)),
        input=X,
        p=0.5,
        train=False,
    ),
)
