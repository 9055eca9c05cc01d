"""Symbols of dimensions, and their values."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from burn_ir.dim.formulas import Atom, Dim, Extremum, Poly, lower_bound, terms_of

#: Maximum number of values that a formula is computed for.
_MOST_VALUES = 64


def symbols(dim: Dim) -> Iterator[str]:
    """Yield the names that occur in ``dim``."""
    for product, _ in terms_of(dim):
        for atom in product:
            inner = () if isinstance(atom, str) else atom.operands
            yield from (atom,) if isinstance(atom, str) else ()
            yield from itertools.chain.from_iterable(map(symbols, inner))


def bind(dim: Dim, values: Mapping[str, Any]) -> Any:
    """Return ``dim`` with every symbol replaced by its value (integer or dimension).

    Raises:
        KeyError: a symbol has no value.
    """
    if not isinstance(dim, Poly):
        return dim
    total: Any = 0
    for product, coefficient in dim.terms:
        term: Any = coefficient
        for atom in product:
            if isinstance(atom, str):
                term = term * values[atom]
            else:
                term = term * atom.of(*(bind(x, values) for x in atom.operands))
        total = total + term
    return total


def without_extrema(dim: Dim) -> Dim:
    """Return ``max(n + min(n, 1) - 1, 0)`` as ``n``; others unchanged.

    ``n`` is a symbol or a quotient that is at least 0. Maxima and minima of sums of it
    are straight lines from the sum of the numbers in them on: a line that fits all
    values before, and two after, is equal to ``dim``.
    """
    factors: set[Atom] = set()
    numbers = _numbers(dim, factors)
    if len(factors) != 1 or not numbers or sum(numbers) > _MOST_VALUES:
        return dim
    (factor,) = factors
    variable = Poly((((factor,), 1),))
    least = lower_bound(variable)
    if not _has_extremum(dim) or least is None or least < 0:
        return dim
    values = [_value(dim, factor, number) for number in range(sum(numbers) + 3)]
    line = variable * (values[-1] - values[-2]) + values[0]
    fits = (_value(line, factor, n) == value for n, value in enumerate(values))
    return line if all(fits) else dim


def _has_extremum(dim: Dim) -> bool:
    products = (product for product, _ in terms_of(dim))
    return any(isinstance(atom, Extremum) for product in products for atom in product)


def _numbers(dim: Dim, factors: set[Atom]) -> list[int] | None:
    """Return the numbers in a sum, and add its factors; None if it has products."""
    numbers: list[int] = []
    for product, coefficient in terms_of(dim):
        if len(product) > 1:
            return None
        atom = product[0] if product else None
        if isinstance(atom, Extremum):
            for inner in (_numbers(operand, factors) for operand in atom.operands):
                if inner is None:
                    return None
                numbers += [abs(coefficient) * number for number in inner]
        elif atom is None:
            numbers.append(abs(coefficient))
        else:
            factors.add(atom)
    return numbers


def _value(dim: Dim, factor: Atom, number: int) -> int:
    """Return a sum with extrema for one value of its only factor."""
    total = 0
    for product, coefficient in terms_of(dim):
        atom = product[0] if product else None
        value = number if atom == factor else 1
        if isinstance(atom, Extremum):
            value = atom.of(*(_value(x, factor, number) for x in atom.operands))
        total += coefficient * value
    return total
