"""Examples of activations."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, extents, floats

#: The attributes of each activation, with values that are not the default.
ALPHAS: dict[str, dict[str, float]] = {
    "Relu": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 1.7},
    "Selu": {"alpha": 1.3, "gamma": 1.9},
    "Celu": {"alpha": 1.7},
    "Sigmoid": {},
    "Tanh": {},
    "Softplus": {},
    "Softsign": {},
    "HardSigmoid": {"alpha": 0.4, "beta": 0.3},
    "HardSwish": {},
    "Mish": {},
    "Gelu": {},
    "Swish": {"alpha": 1.7},
    "ThresholdedRelu": {"alpha": 0.4},
}
#: Where activations have a kink or jump, with attributes as in ALPHAS or not.
KINKS: dict[str, tuple[float, ...]] = {
    "Relu": (0.0,),
    "LeakyRelu": (0.0,),
    "Elu": (0.0,),
    "Selu": (0.0,),
    "HardSigmoid": (-2.5, 2.5, -1.25, 1.25, -0.75, 1.75, -1.5, 3.5),
    "HardSwish": (-3.0, 3.0),
    "ThresholdedRelu": (0.4, 1.0),
}


def is_smooth(x: Array, kinks: tuple[float, ...]) -> bool:
    """Return whether no number is near one of ``kinks``."""
    return all(bool((np.abs(x - kink) > 1e-3).all()) for kink in kinks)


def spread(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Numbers of either sign, of which some are far from 0."""
    return 2 * floats(draw, shape)


def pointwise(name: str) -> None:
    """Declare the strategy of an activation."""

    @case(name)
    def activation(draw: Draw, version: int) -> Example:
        attrs: dict[str, Any] = {
            k: v for k, v in ALPHAS[name].items() if draw(st.booleans())
        }
        if name == "Gelu":
            attrs["approximate"] = draw(st.sampled_from(["none", "tanh"]))
        x = spread(draw, extents(draw))
        expected = [_old_selu(x, attrs)] if (name, version) == ("Selu", 1) else None
        smooth = is_smooth(x, KINKS.get(name, ()))
        return Example(attrs, [x], smooth=smooth, expected=expected)


def _old_selu(x: Array, attrs: dict[str, float]) -> Array:
    """Version 1 had fewer digits in its defaults."""
    alpha, gamma = attrs.get("alpha", 1.6732), attrs.get("gamma", 1.0507)
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(x)), x.dtype)


for _name in ALPHAS:
    pointwise(_name)


@case("PRelu")
def prelu(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    if version < 7:
        slope: tuple[int, ...] = draw(st.sampled_from([(1,), shape[1:2]]))
    else:
        tail = draw(st.integers(0, len(shape)))
        slope = tuple(n if draw(st.booleans()) else 1 for n in shape[tail:])
    x = spread(draw, shape)
    s = floats(draw, slope)
    along = s.reshape(-1, *(1 for _ in shape[2:])) if version < 7 else s
    expected = [np.where(x > 0, x, along * x)] if version < 7 else None
    return Example(
        {},
        [x, s],
        smooth=is_smooth(x, (0,)),
        resizable=version >= 7,
        expected=expected,
    )


@case("Shrink")
def shrink(draw: Draw, version: int) -> Example:
    values = {"bias": 0.3, "lambd": 0.9}
    attrs = {k: v for k, v in values.items() if draw(st.booleans())}
    x = spread(draw, extents(draw))
    return Example(attrs, [x], smooth=is_smooth(x, (-0.5, 0.5, -0.9, 0.9)))


@case("Softmax", "LogSoftmax")
def softmax(draw: Draw, version: int) -> Example:
    return _along_axis(draw, version, smooth=True)


@case("Hardmax")
def hardmax(draw: Draw, version: int) -> Example:
    return _along_axis(draw, version, smooth=False)


def _along_axis(draw: Draw, version: int, smooth: bool) -> Example:
    x = spread(draw, extents(draw, least=2))
    low = -x.ndim if version >= 11 else 0
    axis = draw(st.one_of(st.none(), st.integers(low, x.ndim - 1)))
    return Example({} if axis is None else {"axis": axis}, [x], smooth=smooth)
