"""Dimensions of tensors: integers, or polynomials in named symbols.

``batch * 4``, ``past + seq`` and ``(sequence - 192) // 128 + 1`` are dimensions.
Equality of dimensions is structural; whether two of them are equal for every value of
their symbols is a question for :func:`same`, which may be undecided.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from math import gcd
from typing import Any, TypeAlias, Union

from burn_ir.errors import Undecided

#: Maximum size of a polynomial, in symbols; larger ones are never useful types.
LARGEST = 512
_TOO_LARGE = f"an extent is a formula of more than {LARGEST} symbols"

#: Prefix of symbols for broadcast dimensions.
JOINT = "?|"

Monomial: TypeAlias = tuple["Atom", ...]
Atom: TypeAlias = Union[str, "FloorDiv"]
Dim: TypeAlias = Union[int, "Poly"]


@dataclass(frozen=True)
class FloorDiv:
    """The quotient of a polynomial by an integer or polynomial, rounded down."""

    numerator: Poly
    divisor: Dim

    def __str__(self) -> str:
        return f"{_factor(self.numerator)} // {_factor(self.divisor)}"


def _factor(dim: Dim | Atom) -> str:
    text = str(dim)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


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
        for product, coefficient in _terms(other):
            total[product] = total.get(product, 0) + coefficient
        return _poly(total)

    def __mul__(self, other: Dim) -> Dim:
        if not isinstance(other, int | Poly):
            return NotImplemented
        if len(self.terms) * len(_terms(other)) > LARGEST:
            raise Undecided(_TOO_LARGE)
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
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
        for product, coefficient in sorted(self.terms, key=lambda t: not t[0]):
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


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, Poly):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def _atom_key(atom: Atom) -> tuple[bool, str]:
    return (not isinstance(atom, str), str(atom))


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[tuple[bool, str]]]:
    return (-len(term[0]), [_atom_key(atom) for atom in term[0]])


def _poly(total: Mapping[Monomial, int]) -> Dim:
    terms = tuple(sorted(((p, c) for p, c in total.items() if c), key=_term_key))
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    if _size(terms) > LARGEST:
        raise Undecided(_TOO_LARGE)
    return Poly(terms)


def _size(terms: tuple[tuple[Monomial, int], ...]) -> int:
    """Return the number of symbols, quotients and coefficient bytes."""
    return sum(
        1 + size.bit_length() // 8 + sum(map(_atom_size, product))
        for product, size in terms
    )


def _atom_size(atom: Atom) -> int:
    if isinstance(atom, str):
        return 1
    return 1 + _size(_terms(atom.numerator)) + _size(_terms(atom.divisor))


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
    whole = {p: c // divisor for p, c in _terms(numerator) if c % divisor == 0}
    rest = _poly({p: c for p, c in _terms(numerator) if c % divisor})
    inner_quotient = _quotient_and_number(rest)
    if inner_quotient is not None:
        atom, number = inner_quotient
        once = atom.numerator + number * atom.divisor
        rest = floor_div(once, atom.divisor * divisor)
    elif isinstance(rest, Poly):
        common = reduce(gcd, (c for _, c in rest.terms), divisor)
        inner = _poly({p: c // common for p, c in rest.terms})
        assert isinstance(inner, Poly)
        rest = _poly({(FloorDiv(inner, divisor // common),): 1})
    else:
        rest //= divisor
    return _poly(whole) + rest


def _quotient_and_number(dim: Dim) -> tuple[FloorDiv, int] | None:
    """Return the parts of ``quotient + number``, None for other forms."""
    terms = dict(_terms(dim))
    number = terms.pop((), 0)
    for product, coefficient in terms.items():
        atom = product[0]
        if len(terms) > 1 or len(product) > 1 or coefficient != 1:
            return None
        if isinstance(atom, FloorDiv) and isinstance(atom.divisor, int):
            return atom, number
    return None


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
    if len(_terms(divisor)) != 1:
        return None
    ((factors, size),) = _terms(divisor)
    total: dict[Monomial, int] = {}
    for product, coefficient in _terms(numerator):
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
        if not product:
            bound += coefficient
        elif coefficient < 0 or not all(isinstance(atom, str) for atom in product):
            return None  # a quotient may be 0 or negative
    return bound


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


def symbols(dim: Dim) -> Iterator[str]:
    """Yield the names that occur in ``dim``."""
    for product, _ in _terms(dim):
        for atom in product:
            if isinstance(atom, str):
                yield atom
            else:
                yield from symbols(atom.numerator)
                yield from symbols(atom.divisor)


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
                term = term * (
                    bind(atom.numerator, values) // bind(atom.divisor, values)
                )
        total = total + term
    return total


def joint(dims: Sequence[Poly]) -> Poly:
    """Return the broadcast result of symbolic dimensions on one axis.

    It is the one that is never 1, or the common one. Otherwise it is a new symbol
    that does not depend on the order and grouping of ``dims``.
    """
    for dim in dims:
        if _is_never_one(dim):
            return dim
    if len(set(dims)) == 1:
        return dims[0]
    parts = {part for dim in dims for part in str(dim).removeprefix(JOINT).split("|")}
    text = "|".join(sorted(parts))
    if len(text) > LARGEST:  # unbounded names would take quadratic time in a chain
        text = sha256(text.encode()).hexdigest()
    return symbol(JOINT + text)


def _is_never_one(dim: Poly) -> bool:
    bound = lower_bound(dim)
    divisor = gcd(*(size for _, size in dim.terms))
    return divisor > 1 or (bound is not None and bound > 1)


_counter: ContextVar[Iterator[int]] = ContextVar("burn_ir.unnamed")


def unnamed() -> Poly:
    """Return a fresh symbol for a data-dependent dimension.

    Raises:
        Undecided: called outside of type inference.
    """
    counter = _counter.get(None)
    if counter is None:
        raise Undecided("the extent depends on the data")
    return symbol(f"?{next(counter)}")


@contextmanager
def counting_unnamed() -> Iterator[None]:
    """Number fresh symbols from 0 in this context, for equal names in each run."""
    token = _counter.set(itertools.count())
    try:
        yield
    finally:
        _counter.reset(token)
