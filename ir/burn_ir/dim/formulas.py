"""Polynomials with quotients, maxima and minima, in a normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import gcd
from typing import Any, TypeAlias, Union

from burn_ir.errors import Undecided

#: Maximum size of a polynomial, in symbols; larger ones are never useful types.
LARGEST = 512
_TOO_LARGE = f"an extent is a formula of more than {LARGEST} symbols"

Monomial: TypeAlias = tuple["Atom", ...]
Atom: TypeAlias = Union[str, "FloorDiv", "Extremum"]
Dim: TypeAlias = Union[int, "Poly"]


@dataclass(frozen=True)
class FloorDiv:
    """The quotient of a polynomial by an integer or polynomial, rounded down."""

    numerator: Poly
    divisor: Dim

    @property
    def operands(self) -> tuple[Dim, Dim]:
        return self.numerator, self.divisor

    def of(self, a: Any, b: Any) -> Any:
        """Return the quotient of other operands."""
        return a // b

    def __str__(self) -> str:
        return f"{_factor(self.numerator)} // {_factor(self.divisor)}"


@dataclass(frozen=True)
class Extremum:
    """The larger or the smaller of two dimensions; ``name`` is ``max`` or ``min``."""

    name: str
    operands: tuple[Dim, Dim]

    def of(self, a: Any, b: Any) -> Any:
        """Return the larger or the smaller of other operands."""
        return maximum(a, b) if self.name == "max" else minimum(a, b)

    def __str__(self) -> str:
        return f"{self.name}({self.operands[0]}, {self.operands[1]})"


def _factor(dim: Dim | Atom) -> str:
    text = str(dim)
    whole = dim.terms[0][0] if isinstance(dim, Poly) and len(dim.terms) == 1 else (dim,)
    is_call = len(whole) == 1 and isinstance(whole[0], Extremum)
    return text if text.isidentifier() or text.isdigit() or is_call else f"({text})"


@dataclass(frozen=True)
class Poly:
    """A sum of products of symbols and quotients, with integer coefficients.

    ``terms`` are (product, coefficient) pairs in a fixed order, without zeros. Never a
    plain number: arithmetic returns an ``int`` when the symbols cancel.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        if not isinstance(other, int | Poly):
            return NotImplemented
        total = dict(self.terms)
        for product, coefficient in terms_of(other):
            total[product] = total.get(product, 0) + coefficient
        return _poly(total)

    def __mul__(self, other: Dim) -> Dim:
        if not isinstance(other, int | Poly):
            return NotImplemented
        if len(self.terms) * len(terms_of(other)) > LARGEST:
            raise Undecided(_TOO_LARGE)
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in terms_of(other):
                product = tuple(sorted(left + right, key=_atom_key))
                total[product] = total.get(product, 0) + a * b
        return _poly(total)

    def __floordiv__(self, other: Dim) -> Dim:
        return floor_div(self, other)

    def __mod__(self, other: Dim) -> Dim:
        return self - floor_div(self, other) * other

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floor_div(other, self)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Dim) -> bool:
        return not at_least(self, other)

    def __gt__(self, other: Dim) -> bool:
        return not at_least(other, self)

    def __le__(self, other: Dim) -> bool:
        return at_least(other, self)

    def __ge__(self, other: Dim) -> bool:
        return at_least(self, other)

    def __bool__(self) -> bool:
        return not same(self, 0)

    def __int__(self) -> int:
        raise Undecided(f"{self} is not known before the model runs")

    __index__ = __int__

    def __str__(self) -> str:
        text = ""
        terms = with_numbers_inside(self).terms
        for product, coefficient in sorted(terms, key=lambda t: not t[0]):
            size = abs(coefficient)
            alone = size == len(product) == 1 and (coefficient > 0 or text != "")
            factors = [str(atom) if alone else _factor(atom) for atom in product]
            body = " * ".join(
                ([str(size)] if size != 1 or not factors else []) + factors
            )
            sign = "-" if coefficient < 0 else "+"
            lead = "-" if coefficient < 0 else ""
            text += f" {sign} {body}" if text else lead + body
        return text

    __repr__ = __str__


def symbol(name: str) -> Poly:
    """Return the dimension ``name``; names with ``?`` in front are no input's."""
    return Poly((((name,), 1),))


def terms_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """Return the products of a dimension, with their coefficients."""
    if isinstance(dim, Poly):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def _atom_key(atom: Atom) -> tuple[bool, str]:
    return (not isinstance(atom, str), str(atom))


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[tuple[bool, str]]]:
    return (-len(term[0]), [_atom_key(atom) for atom in term[0]])


def _poly(total: Mapping[Monomial, int]) -> Dim:
    terms = tuple(sorted(((p, c) for p, c in total.items() if c), key=_term_key))
    pair = _both_extrema(dict(terms))
    if pair is not None:
        return _poly({**dict(terms), **pair[0]}) + pair[1]
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    if _size(terms) > LARGEST:
        raise Undecided(_TOO_LARGE)
    return Poly(terms)


def _both_extrema(
    terms: Mapping[Monomial, int],
) -> tuple[dict[Monomial, int], Dim] | None:
    """Return new coefficients and a sum for ``min(a, b) + max(a, b)``: ``a + b``.

    The operands of both may differ by a number. None if there is no such pair.
    """
    extrema: dict[Monomial, Extremum] = {}
    for product in terms:
        atom = product[0] if len(product) == 1 else None
        if isinstance(atom, Extremum):
            extrema[product] = atom
    for one, other in combinations(extrema, 2):
        least, most = extrema[one].operands, extrema[other].operands
        a, b = (x - y for x, y in zip(least, most, strict=True))
        of_both = min(terms[one], terms[other], key=abs)
        is_pair = extrema[one].name != extrema[other].name and a == b
        if is_pair and isinstance(a, int) and terms[one] * terms[other] > 0:
            left = {one: terms[one] - of_both, other: terms[other] - of_both}
            return left, (least[0] + most[1]) * of_both
    return None


def _size(terms: tuple[tuple[Monomial, int], ...]) -> int:
    """Return the number of symbols, quotients and coefficient bytes."""
    return sum(
        1 + size.bit_length() // 8 + sum(map(_atom_size, product))
        for product, size in terms
    )


def _atom_size(atom: Atom) -> int:
    if isinstance(atom, str):
        return 1
    return 1 + sum(_size(terms_of(operand)) for operand in atom.operands)


def maximum(a: Dim, b: Dim) -> Dim:
    """Return the larger of two dimensions."""
    return _extremum("max", a, b)


def minimum(a: Dim, b: Dim) -> Dim:
    """Return the smaller of two dimensions."""
    return _extremum("min", a, b)


def _extremum(name: str, a: Dim, b: Dim) -> Dim:
    for larger, smaller in ((a, b), (b, a)):
        difference = lower_bound(larger - smaller)
        if difference is not None and difference >= 0:
            return larger if name == "max" else smaller
    x, y = sorted((a, b), key=lambda dim: (isinstance(dim, int), str(dim)))
    return _poly({(Extremum(name, (x, y)),): 1})


def floor_div(numerator: Dim, divisor: Dim) -> Dim:
    """Return ``numerator // divisor``, exact where every term divides.

    Nested quotients are normalized to one by the product, so that equal quotients
    have equal forms.
    """
    if isinstance(numerator, int) and isinstance(divisor, int):
        return numerator // divisor
    if isinstance(divisor, Poly):
        return _divide_by_poly(numerator, divisor)
    if divisor == 1:
        return numerator
    if divisor <= 0:
        raise Undecided(f"cannot divide {numerator} by {divisor}")
    whole = {p: c // divisor for p, c in terms_of(numerator) if p and c % divisor == 0}
    rest = _poly({p: c for p, c in terms_of(numerator) if p not in whole})
    return _poly(whole) + _rounded(rest, divisor)


def _rounded(rest: Dim, divisor: int) -> Dim:
    """Return ``rest // divisor``, where the divisor divides no coefficient.

    The first coefficient of a quotient is positive, and its number at least 0 and less
    than the divisor: ``-(-n // 2)`` is ``(n + 1) // 2``.
    """
    if not isinstance(rest, Poly):
        return rest // divisor
    if rest.terms[0][1] < 0:
        return -floor_div(-rest + (divisor - 1), divisor)
    inner_quotient = _quotient_and_number(rest)
    if inner_quotient is not None:
        atom, number = inner_quotient
        once = atom.numerator + number * atom.divisor
        return floor_div(once, atom.divisor * divisor)
    common = reduce(gcd, (c for p, c in rest.terms if p), divisor)
    if common > 1:  # the number is rounded down, too
        shorter = _poly({p: c // common for p, c in rest.terms})
        return floor_div(shorter, divisor // common)
    number = dict(rest.terms).get((), 0)
    numerator = rest - (number - number % divisor)
    assert isinstance(numerator, Poly)
    return _poly({(FloorDiv(numerator, divisor),): 1}) + number // divisor


def _quotient_and_number(dim: Dim) -> tuple[FloorDiv, int] | None:
    """Return the parts of ``quotient + number``, None for other forms."""
    terms = dict(terms_of(dim))
    number = terms.pop((), 0)
    for product, coefficient in terms.items():
        atom = product[0]
        if len(terms) > 1 or len(product) > 1 or coefficient != 1:
            return None
        if isinstance(atom, FloorDiv) and isinstance(atom.divisor, int):
            return atom, number
    return None


def with_numbers_inside(dim: Poly) -> Poly:
    """Return ``(n + 1) // 3 - 1`` as ``(n - 2) // 3``, but ``n // 3 - 1`` as it is."""
    parts = _quotient_and_number(dim)
    if parts is None or () not in dict(parts[0].numerator.terms):
        return dim
    atom, number = parts
    numerator = atom.numerator + number * atom.divisor
    assert isinstance(numerator, Poly)
    return Poly((((FloorDiv(numerator, atom.divisor),), 1),))


def _divide_by_poly(numerator: Dim, divisor: Poly) -> Dim:
    quotient = exact_div(numerator, divisor)
    if quotient is not None:
        return quotient
    if isinstance(numerator, int):
        raise Undecided(f"cannot divide {numerator} by {divisor}")
    return _poly({(FloorDiv(numerator, divisor),): 1})


def exact_div(numerator: Dim, divisor: Dim) -> Dim | None:
    """Return ``numerator / divisor`` if it is exact for all symbol values, or None."""
    if numerator == divisor:
        return 1
    if len(terms_of(divisor)) != 1:
        return None
    ((factors, size),) = terms_of(divisor)
    total: dict[Monomial, int] = {}
    for product, coefficient in terms_of(numerator):
        left = list(product)
        for atom in factors:
            if atom not in left:
                return None
            left.remove(atom)
        if coefficient % size:
            return None
        total[tuple(left)] = coefficient // size
    return _poly(total)


def lower_bound(dim: Dim) -> int | None:
    """Return a lower bound of ``dim`` for symbols of at least 0, or None."""
    if not isinstance(dim, Poly):
        return int(dim)
    bound = 0
    for product, coefficient in dim.terms:
        least = 1
        for atom in product:
            factor = _atom_bound(atom)
            if factor is None or factor < 0 or coefficient < 0:
                return None
            least *= factor
        bound += coefficient * least
    return bound


def _atom_bound(atom: Atom) -> int | None:
    if isinstance(atom, str):
        return 0
    if isinstance(atom, FloorDiv):
        bound = lower_bound(atom.numerator)
        if bound is None or not isinstance(atom.divisor, int):
            return None
        return bound // atom.divisor
    bounds = [lower_bound(operand) for operand in atom.operands]
    known = [bound for bound in bounds if bound is not None]
    if atom.name == "max":
        return max(known, default=None)
    return min(known) if len(known) == len(bounds) else None


def at_least(a: Dim, b: Dim) -> bool:
    """Return whether ``a >= b`` for every value of their symbols.

    Raises:
        Undecided: it depends on the values.
    """
    above, below = lower_bound(a - b), lower_bound(b - a)
    if above is not None and above >= 0:
        return True
    if below is not None and below > 0:
        return False
    raise Undecided(f"whether {a} is at least {b} depends on the input")


def same(a: Dim, b: Dim) -> bool:
    """Return whether ``a`` and ``b`` are equal for every value of their symbols.

    Raises:
        Undecided: it depends on the values.
    """
    if isinstance(a - b, int):
        return a == b
    for bound in (lower_bound(a - b), lower_bound(b - a)):
        if bound is not None and bound > 0:
            return False
    raise Undecided(f"whether {a} equals {b} depends on the input")
