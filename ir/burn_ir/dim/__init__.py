"""Dimensions of tensors: integers, or polynomials in named symbols.

``batch * 4``, ``past + seq`` and ``(sequence - 192) // 128 + 1`` are dimensions.
Equality of dimensions is structural; whether two of them are equal for every value of
their symbols is a question for :func:`same`, which may be undecided.
"""

from burn_ir.dim.formulas import (
    LARGEST as LARGEST,
    Atom as Atom,
    Dim as Dim,
    Extremum as Extremum,
    FloorDiv as FloorDiv,
    Monomial as Monomial,
    Poly as Poly,
    at_least as at_least,
    exact_div as exact_div,
    floor_div as floor_div,
    lower_bound as lower_bound,
    maximum as maximum,
    minimum as minimum,
    same as same,
    symbol as symbol,
    with_numbers_inside as with_numbers_inside,
)
from burn_ir.dim.slices import FAR as FAR, span as span
from burn_ir.dim.substitution import (
    bind as bind,
    symbols as symbols,
    without_extrema as without_extrema,
)
from burn_ir.dim.unnamed import counting_unnamed as counting_unnamed, unnamed as unnamed
