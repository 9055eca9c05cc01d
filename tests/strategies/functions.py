"""Examples of functions of one operand."""

import numpy as np

from tests.strategies.registry import Draw, Example, case, extents, floats, generator

#: Where functions are defined, and away from where they are too steep to compare.
RANGES = {
    "Log": (0.1, 4.0),
    "Sqrt": (0.1, 4.0),
    "Reciprocal": (0.3, 3.0),
    "Tan": (-1.2, 1.2),
    "Asin": (-0.9, 0.9),
    "Acos": (-0.9, 0.9),
    "Acosh": (1.2, 4.0),
    "Atanh": (-0.9, 0.9),
}


@case("Neg", "Exp", "Erf", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh")
def unary(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw))])


@case("Abs")
def magnitude(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw))
    return Example({}, [x], smooth=bool((np.abs(x) > 1e-3).all()))


@case("Sign", "Floor", "Ceil", "Round")
def kinked(draw: Draw, version: int) -> Example:
    x = 3 * floats(draw, extents(draw))
    x.ravel()[::3] = np.round(2 * x.ravel()[::3]) / 2  # halves and whole numbers too
    return Example({}, [x], smooth=False)


def bounded(name: str) -> None:
    """Declare the strategy of a function that is defined on an interval."""
    low, high = RANGES[name]

    @case(name)
    def within(draw: Draw, version: int) -> Example:
        x = generator(draw).uniform(low, high, extents(draw))
        return Example({}, [np.asarray(x, np.float32)])


for _name in RANGES:
    bounded(_name)
