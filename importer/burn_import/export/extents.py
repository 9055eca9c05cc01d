"""Formulas for integers that vary with the sizes of named dimensions.

Each run of a function has a size for every named dimension. An integer in a run (a
dimension of a result, a bound of a slice) becomes the simplest formula that gives its
value in all runs: a product, a linear formula, or the quotient of one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

from burn_ir.dim import Dim, bind, floor_div, symbol

Sizes = Mapping[str, int]
#: The largest divisor that is tried.
_LARGEST = 128


def fit_dim(values: Sequence[int], runs: Sequence[Sizes]) -> Dim | None:
    """Return the formula that has ``values`` in ``runs``, or None."""
    if len(set(values)) == 1:
        return int(values[0])
    names = tuple(runs[0])
    for candidate in (_product(values, runs, names), _linear(values, runs, names)):
        if candidate is not None:
            return candidate
    return _quotient(values, runs, names)


def _holds(dim: Dim, values: Sequence[int], runs: Sequence[Sizes]) -> bool:
    return all(bind(dim, run) == v for v, run in zip(values, runs, strict=True))


def _product(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``c * a * b``, or ``a * b // c`` where the division is exact."""
    for count in range(1, len(names) + 1):
        for chosen in combinations(names, count):
            total = prod((symbol(n) for n in chosen), start=1)
            base = [prod(run[name] for name in chosen) for run in runs]
            if all(v and b % v == 0 for v, b in zip(values, base, strict=True)):
                candidate = floor_div(total, base[0] // values[0])
            elif base[0] and values[0] % base[0] == 0:
                candidate = total * (values[0] // base[0])
            else:
                continue
            if _holds(candidate, values, runs):
                return candidate
    return None


def _linear(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``c + k * a + m * b``; the run n + 1 changes only the n-th name."""
    total: Dim = values[0]
    for number, name in enumerate(names, 1):
        change = runs[number][name] - runs[0][name]
        slope, rest = divmod(values[number] - values[0], change)
        if rest:
            return None
        total = total + (symbol(name) - runs[0][name]) * slope
    return total if _holds(total, values, runs) else None


def _quotient(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``(a + r) // d * k``, the form of strided window counts."""
    for name in names:
        extent = symbol(name)
        for divisor in range(2, _LARGEST + 1):
            first = values[0] * divisor - runs[0][name]
            for rest in range(first, first + divisor):
                candidate = floor_div(extent + rest, divisor)
                if _holds(candidate, values, runs):
                    return candidate
    return None
