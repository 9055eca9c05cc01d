"""Quantiles, covariances, differences, and functions of integers and Bessel's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importer.aten.case import Case, case, f32, fixed, i64
from tests.importer.aten.inputs import F32, WHOLE, X, single

HOLES = fixed(
    "float32",
    [[1.5, np.nan, -2.0, 4.0], [np.nan, 6.0, 3.0, 0.5], [2.0, 1.0, 7.0, np.nan]],
)
FRACTIONS = fixed("float32", [0.1, 0.75])
ROWS = f32(3, "n")
WEIGHTS = fixed("float32", [0.5, 2.0, 1.0, 0.25])
COUNTS = fixed("int64", [1, 3, 2, 1])
ZEROS = fixed("float32", [[0.0, -0.0, 2.0, -3.0]])


def quantiles(
    compute: Callable[..., Any], q: float | None = None, **options: Any
) -> Callable[..., Any]:
    """Return the function of one quantile, or of those in its second argument."""

    def run(x: Any, several: Any = q) -> Any:
        return np.asarray(compute(x, several, **options), F32)

    return run


def bessel(order: int, is_scaled: bool) -> Callable[..., Any]:
    """Return the modified Bessel function as the mean of an integrand over angles."""

    def run(x: Any) -> Any:
        angle = (np.arange(512) + 0.5) * np.pi / 512
        x = x[..., None].astype(np.float64)
        power = x * np.cos(angle) - (np.abs(x) if is_scaled else 0.0)
        return (np.exp(power) * np.cos(order * angle)).mean(-1).astype(F32)

    return run


def derivatives(*axes: int, spacing: float = 1.0) -> Callable[..., Any]:
    """Return the function of central differences along axes."""
    return lambda x: [np.gradient(x, spacing, axis=n).astype(F32) for n in axes]


SCALARS: dict[str, dict[str, Any]] = {
    "all": {},
    "all kept": {"keepdim": True},
    "axis": {"dim": 1},
    "kept": {"dim": 0, "keepdim": True},
    "midpoint": {"dim": 1, "interpolation": "midpoint"},
    "higher": {"dim": 0, "interpolation": "higher"},
}
NUMPY = {"dim": "axis", "keepdim": "keepdims", "interpolation": "method"}


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as NumPy calls them."""
    return {NUMPY[name]: value for name, value in options.items()}


CASES: tuple[Case, ...] = (
    *(
        case(
            "nanquantile.scalar",
            quantiles(np.nanquantile, 0.3, **renamed(options)),
            label=label,
            self=HOLES,
            q=0.3,
            **options,
        )
        for label, options in SCALARS.items()
    ),
    *(
        case(
            "nanquantile.default",
            quantiles(np.nanquantile, **renamed(options)),
            label=label,
            self=HOLES,
            q=FRACTIONS,
            **options,
        )
        for label, options in SCALARS.items()
    ),
    case(
        "quantile.scalar",
        quantiles(np.quantile, 0.3, axis=1),
        label="nan",
        self=HOLES,
        q=0.3,
        dim=1,
    ),
    case(
        "median.default",
        lambda x: np.float32(np.nan) * x[0, 0],
        label="nan",
        self=HOLES,
    ),
    case("cov.default", single(np.cov), self=ROWS),
    case("cov.default", single(np.cov), label="one row", self=f32("n")),
    case(
        "cov.default",
        single(lambda x, f, a: np.cov(x, fweights=f, aweights=a)),
        label="weights",
        self=f32(3, 4),
        fweights=COUNTS,
        aweights=WEIGHTS,
    ),
    case(
        "cov.default",
        single(lambda x, a: np.cov(x, ddof=0, aweights=a)),
        label="uncorrected",
        self=f32(3, 4),
        correction=0,
        aweights=WEIGHTS,
    ),
    case("corrcoef.default", single(np.corrcoef), self=f32("n", 6)),
    case("combinations.default", lambda x: x[[[0, 1], [0, 2], [1, 2]]], self=f32(3)),
    case(
        "combinations.default",
        lambda x: x[[[0, 0], [0, 1], [1, 1]]],
        label="repeated",
        self=f32(2),
        with_replacement=True,
    ),
    case("gradient.scalarint", derivatives(1), self=X, dim=1),
    case(
        "gradient.scalararray",
        derivatives(1, 2, spacing=2.0),
        self=X,
        spacing=2.0,
        dim=[1, 2],
    ),
    case("gcd.default", np.gcd, self=WHOLE, other=i64(3, 4)),
    case("lcm.default", np.lcm, self=WHOLE, other=i64(3, 4)),
    case("i0.default", bessel(0, False), self=X),
    case("special_i0e.default", bessel(0, True), self=f32("n", low=-90.0, high=90.0)),
    case("special_i1.default", bessel(1, False), self=X),
    case("special_i1e.default", bessel(1, True), self=X),
    case("i0.default", bessel(0, False), label="whole", self=WHOLE),
    case(
        "mse_loss.default",
        single(lambda x, y: ((x - y) ** 2).mean()),
        label="promoted",
        self=i64(3, 4),
        target=f32(3, 4),
    ),
    case("rad2deg.default", single(np.rad2deg), label="whole", self=WHOLE),
    case("nansum.default", np.sum, label="whole", self=fixed("int32", [3, 4])),
    case(
        "trace.default", np.trace, label="whole", self=fixed("int32", [[3, 4], [1, 9]])
    ),
    case("sign.default", np.array, label="bool", self=fixed("bool", [True, False])),
    case(
        "outer.default",
        single(lambda x, y: np.outer(x, y)),
        label="promoted",
        self=i64("n"),
        vec2=f32(4),
    ),
    case(
        "kron.default",
        single(np.kron),
        label="promoted",
        self=i64(2, 3),
        other=f32(1, 2),
    ),
    case(
        "copysign.Tensor",
        single(np.copysign),
        label="whole",
        self=i64(3, 4),
        other=i64(3, 4, low=-4),
    ),
    case(
        "ldexp.Tensor",
        single(np.ldexp),
        label="whole",
        self=i64(3, 4),
        other=i64(3, 4),
    ),
    case(
        "bitwise_left_shift.Tensor",
        np.left_shift,
        label="promoted",
        self=fixed("uint8", [1, 2, 200]),
        other=i64(3, low=0),
    ),
    case("isreal.default", np.isreal, self=WHOLE),
    case("signbit.default", np.signbit, label="zeros", self=ZEROS),
    case(
        "copysign.Tensor",
        np.copysign,
        label="zeros",
        self=f32(3, 4),
        other=ZEROS,
    ),
    case(
        "trapezoid.dx",
        lambda y: np.asarray(np.trapezoid(y), F32),
        label="whole",
        y=WHOLE,
        dx=1,
    ),
)
