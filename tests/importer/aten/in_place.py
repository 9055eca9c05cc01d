"""In-place operators whose schema differs from the functional one."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, f64, i32
from tests.importer.aten.inputs import X

Y = f32("n", 3, 4)


def as_float(function: Any) -> Any:
    """Return a NumPy predicate whose result has the dtype of the first operand."""
    return lambda x, *rest: np.asarray(function(x, *rest)).astype(x.dtype)


def with_diagonal(x: Array) -> Array:
    out = x.copy()
    places = np.arange(min(x.shape))
    out[(places,) * x.ndim] = 3
    return out


COMPARISONS = {
    "gt_": np.greater,
    "greater_": np.greater,
    "less_": np.less,
    "less_equal_": np.less_equal,
    "greater_equal_": np.greater_equal,
    "not_equal_": np.not_equal,
}
BITWISE = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}

CASES: tuple[Case, ...] = (
    *(
        case(f"{name}.default", lambda x: x, self=X, p=0.5, train=False)
        for name in (
            *("dropout_", "alpha_dropout_", "feature_dropout_"),
            "feature_alpha_dropout_",
        )
    ),
    *(
        case(f"{name}.Tensor", as_float(test), self=X, other=Y)
        for name, test in COMPARISONS.items()
    ),
    case("eq_.Scalar", as_float(lambda x: x == 2), self=f32("n", 2), other=2),
    *(
        case(f"__i{name}__.Tensor", function, self=whole, other=i32(4, low=0, high=4))
        for name, function in BITWISE.items()
        for whole in (i32("n", 4, low=0, high=9),)
    ),
    case("__iand__.Scalar", lambda x: x & 6, self=i32("n", 4, low=-9), other=6),
    case("logical_not_.default", as_float(np.logical_not), self=i32("n", 4, low=-1)),
    case("logical_and_.default", as_float(np.logical_and), self=X, other=Y),
    case("less.Tensor", np.less, self=X, other=Y),
    case("greater_equal.Scalar", lambda x: x >= 1, self=X, other=1),
    case("not_equal.Tensor", np.not_equal, self=X, other=Y),
    case("floor_divide_.Tensor", np.floor_divide, self=X, other=f32("n", 3, 1, low=1)),
    case("pow_.Tensor", np.power, self=f32("n", 3, low=0.5), exponent=f32(3)),
    case("float_power_.Tensor", np.power, self=f64("n", 3, low=0.5), exponent=f64(3)),
    case("ldexp_.default", np.ldexp, self=X, other=i32(4, low=-2, high=3)),
    case("fill_diagonal_.default", with_diagonal, self=f32(5, 4), fill_value=3),
    case(
        "fill_diagonal_.default",
        with_diagonal,
        label="cube",
        self=f32(3, 3, 3),
        fill_value=3.0,
    ),
    case(
        "linalg_diagonal.default",
        lambda x: np.diagonal(x, 1, -2, -1),
        A=f32("n", 3, 4),
        offset=1,
    ),
)
