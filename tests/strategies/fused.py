"""Examples of the operators that passes make."""

from hypothesis import strategies as st

from tests.strategies.registry import Draw, Example, case, extents, floats


@case("Linear", domain="burn")
def linear(draw: Draw, version: int) -> Example:
    inner, outer = extents(draw, 2, 2)
    x = (*extents(draw, 1, 3), inner)
    operands = [floats(draw, x), floats(draw, (outer, inner))]
    if draw(st.booleans()):
        operands.append(floats(draw, (outer,)))
    return Example({}, operands)
