"""Integers that differ from round to round, in terms of those of the loop."""

from collections.abc import Callable, Sequence

from burn_import.codegen.loops.equal_statements import Shape
from burn_import.tracing.constructor_numbers import ParameterInt
from burn_import.tracing.trace import NumberRow
from burn_ir.dim import Dim, Poly


class RoundNumbers:
    """The integers of a loop over rounds: their number, and rows of other integers."""

    def __init__(self, counter: Poly, new_dim: Callable[[str], Poly]) -> None:
        self.counter = counter
        self.new_dim = new_dim
        self.rows: list[NumberRow] = []

    def dims(self, shapes: Sequence[Shape]) -> list[Dim]:
        """Return the integers of a statement, whose ``shapes`` are one per round."""
        per_round = zip(*(shape.numbers for shape in shapes), strict=True)
        pairs = zip(per_round, shapes[0].arguments, strict=True)
        return [self.static(v, name) if name else self.dim(v) for v, name in pairs]

    def dim(self, values: Sequence[int]) -> Dim:
        """Return the dimension that is one of ``values`` in each round.

        A row of integers that depends on the number of the round, or on another row,
        is computed from it.
        """
        known = [(self.counter, tuple(range(len(values))))]
        known += [(row.dim, row.values) for row in self.rows]
        for dim, others in known:
            line = _line(others, values)
            if line is not None:
                return dim * line[0] + line[1]
        return self._row(values, "number").dim

    def static(self, values: Sequence[int], argument: str) -> int:
        """Return the integer of a static argument that is one of ``values``."""
        is_constant = len(set(values)) == 1
        return values[0] if is_constant else self._row(values, argument).static

    def _row(self, values: Sequence[int], noun: str) -> NumberRow:
        """Return the row with these values, a new one if there is none."""
        for row in self.rows:
            if row.values == tuple(values):
                return row
        number = ParameterInt(values[0], noun)
        row = NumberRow(self.new_dim(noun), noun, number, tuple(values))
        self.rows.append(row)
        return row


def _line(one: Sequence[int], other: Sequence[int]) -> tuple[int, int] | None:
    """Return a and b if all ``other`` are a times ``one`` plus b, or None."""
    pairs = list(zip(one, other, strict=True))
    (x, y), (end, last) = pairs[0], next((p for p in pairs if p[0] != one[0]), pairs[0])
    slope = (last - y) // (end - x) if end != x else 0
    offset = y - slope * x
    are_equal = all(slope * a + offset == b for a, b in pairs)
    return (slope, offset) if are_equal else None
