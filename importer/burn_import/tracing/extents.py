"""Emission of dimensions: local variables for dimensions of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from burn_import.tracing.constructor_numbers import ParameterExtent
from burn_import.tracing.expression import Expression, atom
from burn_import.tracing.identifiers import Namespace, identifier
from burn_import.tracing.statements import dims_in, mentions, operands
from burn_import.tracing.trace import (
    Block,
    Derivation,
    Repetition,
    Statement,
    Symbol,
    blocks_of,
)
from burn_ir.dim import Atom, Dim, Extremum, FloorDiv, Poly, symbol, with_numbers_inside

COUNTERS = ("i", "j", "k")


def bindable(dim: Dim, extents: Collection[Dim]) -> bool:
    """Return whether ``dim`` can be computed from the dimensions ``extents``."""
    return all(piece in extents for piece in _pieces(dim, extents))


def _pieces(dim: Dim, extents: Collection[Dim]) -> Iterator[Dim]:
    """Yield the dimensions that ``dim`` needs; a missing one if it is not bindable."""
    if not isinstance(dim, Poly):
        return
    if dim in extents:
        yield dim
        return
    for product, _ in dim.terms:
        for factor in product:
            yield from _atom_pieces(factor, extents)


def _atom_pieces(factor: Atom, extents: Collection[Dim]) -> Iterator[Dim]:
    if _value(factor) in extents:
        yield _value(factor)
        return
    shifted = _shifted(factor, extents)
    if shifted is not None:
        yield shifted
        return
    if isinstance(factor, FloorDiv | Extremum):
        for operand in factor.operands:
            yield from _pieces(operand, extents)
        return
    if isinstance(factor, ParameterExtent):
        return
    plain = symbol(factor)
    multiple = _multiple(plain, extents)
    yield plain if multiple is None else multiple


def _multiple(plain: Poly, extents: Collection[Dim]) -> Poly | None:
    """Return a dimension that is a constant multiple of ``plain``, or None."""
    for extent in sorted((e for e in extents if isinstance(e, Poly)), key=str):
        if len(extent.terms) == 1 and extent.terms[0][0] == plain.terms[0][0]:
            return extent
    return None


def _shifted(factor: Atom, extents: Collection[Dim]) -> Poly | None:
    """Return an extent that is the sum of ``factor`` and a number, or None.

    None also if ``factor`` can be computed from other extents.
    """
    if isinstance(factor, ParameterExtent):
        return None
    if isinstance(factor, FloorDiv | Extremum):
        is_computable = all(bindable(one, extents) for one in factor.operands)
    else:
        plain = symbol(factor)
        is_computable = plain in extents or _multiple(plain, extents) is not None
    if is_computable:
        return None
    sums = (e for e in extents if isinstance(e, Poly) and len(e.terms) == 2)
    return next((e for e in sums if isinstance(e - _value(factor), int)), None)


def _shifts(
    dim: Dim, extents: Collection[Dim], settled: Collection[Atom]
) -> dict[Atom, Poly]:
    """Return the extents by the factors of ``dim`` that they are a number more than.

    The factors in ``settled`` are left out, as are those inside of ``extents``.
    """
    shifts: dict[Atom, Poly] = {}
    for inner in _nested(dim) if dim not in extents else ():
        for factor in (f for product, _ in inner.terms for f in product):
            if factor not in settled and _value(factor) not in extents:
                extent = _shifted(factor, extents)
                if extent is not None:
                    shifts[factor] = extent
    return shifts


def _nested(dim: Dim) -> Iterator[Poly]:
    """Yield a dimension and the operands of the quotients and maxima in it."""
    if isinstance(dim, Poly):
        yield dim
        for factor in (f for product, _ in dim.terms for f in product):
            if isinstance(factor, FloorDiv | Extremum):
                for operand in factor.operands:
                    yield from _nested(operand)


def _value(factor: Atom) -> Poly:
    return Poly((((factor,), 1),))


class MissingExtent(LookupError):  # noqa: N818  a request for another parameter
    """No available value has a dimension that the source needs."""

    def __init__(self, extent: Dim) -> None:
        super().__init__(f"no value has the extent {extent}")
        self.extent = extent


class Extents:
    """The dimensions that a function reads, each from the first value with it.

    ``reads`` lists, by symbol, the (axis, local name) pairs to assign where the
    value becomes available. Dimensions that no value has are an error, or left out if
    ``is_partial``: statements that nothing reads may mention them.
    """

    def __init__(self, names: Namespace, is_partial: bool = False) -> None:
        self.names = names
        self.is_partial = is_partial
        self.locals: dict[Dim, str] = {}
        self.reads: dict[Symbol, list[tuple[int, str]]] = {}
        self.source: dict[Dim, Symbol] = {}
        #: The extents less a number that factors are written as; a later read of what
        #: the factor consists of must not change earlier statements.
        self.shifts: dict[Atom, Poly] = {}
        #: Dimensions that statements spell out, and the operands in them.
        self.spelled: set[Dim] = set()
        #: Assignments of maxima and minima that are read several times.
        self.formulas: list[str] = []
        #: Loop counter names, by loop depth.
        self.counters: list[str] = []
        self.depth = 0

    def plan(self, parameters: list[Symbol], body: Block) -> None:
        """Decide where to read every dimension that the body mentions.

        Raises:
            MissingExtent: no parameter or earlier value has one of them.
        """
        available: list[Symbol] = []
        for parameter in parameters:
            available.append(parameter)
        self._plan_block(body, available)
        self._name_formulas(parameters, body)

    def _name_formulas(self, parameters: Collection[Symbol], body: Block) -> None:
        """Name the maxima and minima of the parameters' extents that occur again."""
        counts = Counter(one for dim in _dims_of(body) for one in _extrema(dim))
        for dim, count in counts.items():
            pieces = list(_pieces(dim, self.locals))
            given = all(self.source.get(piece) in parameters for piece in pieces)
            if count > 1 and given:
                text = self.write(dim).text
                self.locals[dim] = self.names.unique("size")
                self.formulas.append(f"{self.locals[dim]} = {text}")

    def _plan_block(self, block: Block, available: list[Symbol]) -> None:
        for statement in block.statements:
            self._plan_statement(statement, available)
        for result in block.results:
            self._bind_all(dims_in(result), available)

    def _plan_statement(self, statement: Statement, available: list[Symbol]) -> None:
        for operand in operands(statement):
            self._bind_all(dims_in(operand), available)
        state: list[Symbol] = []
        if isinstance(statement, Derivation):
            state = statement.state
        elif isinstance(statement, Repetition):
            state = [*statement.state, *(item for item, _ in statement.items)]
            self._name_integers(statement)
        outside = len(available)
        for block in blocks_of(statement):
            available += state
            self._plan_block(block, available)
            del available[outside:]
        if isinstance(statement, Repetition):
            self.depth -= 1
        available += statement.targets

    def _name_integers(self, loop: Repetition) -> None:
        """Name a loop's integers; its counter is ``i``, in a nested loop ``j``."""
        self.depth += 1
        for row in loop.numbers:
            row.static.text = self.names.unique(row.noun)
            self.locals[row.dim] = row.static.text
        if not mentions(loop.body, loop.counter):
            return
        while len(self.counters) < self.depth:
            letter = COUNTERS[min(len(self.counters), len(COUNTERS) - 1)]
            self.counters.append(self.names.unique(letter))
        self.locals[loop.counter] = self.counters[self.depth - 1]

    def _bind_all(self, dims: Iterator[Poly], available: list[Symbol]) -> None:
        for dim in dims:
            is_bound = bindable(dim, self.locals)
            # A new name would also apply to earlier statements that spell it out.
            if dim in self.locals or (is_bound and dim in self.spelled):
                continue
            if not is_bound or _shifts(dim, self.locals, ()):
                extents = {d: None for s in available for d in _extents(s)}
                if not is_bound:
                    for piece in _pieces(dim, extents):
                        self._bind(piece, available)
                elif dim in extents:
                    self._bind(dim, available)
            if dim not in self.locals:
                self.shifts.update(_shifts(dim, self.locals, self.shifts))
                self.spelled.update(_nested(dim))

    def _bind(self, extent: Dim, available: list[Symbol]) -> None:
        if extent in self.locals:
            return
        for value in available:
            extents = _extents(value)
            if extent in extents:
                name = self.names.unique(_name(extent))
                self.locals[extent] = name
                axis = value.shape.index(extent)
                self.source[extent] = value
                self.reads.setdefault(value, []).append((axis, name))
                return
        if not self.is_partial:
            raise MissingExtent(extent)

    def sources(self, value: Any) -> Iterator[Symbol]:
        """Yield the values from which the dimensions in ``value`` are read."""
        for dim in dims_in(value):
            for piece in _pieces(dim, self.locals):
                if piece in self.source:  # loop counters have none
                    yield self.source[piece]

    def write(self, dim: Dim) -> Expression:
        """Return ``dim`` in terms of the local names."""
        if not isinstance(dim, Poly):
            return atom(str(dim))
        if dim in self.locals:
            return atom(self.locals[dim])
        dim = self._solved(dim)
        if not any(_value(factor) in self.locals for p, _ in dim.terms for factor in p):
            dim = with_numbers_inside(dim)
        total: Expression | None = None
        terms = sorted(dim.terms, key=lambda term: not term[0])
        if terms[0][1] < 0:  # `256 - size` rather than `-size + 256`
            terms.sort(key=lambda term: term[1] < 0)
        for product, coefficient in terms:
            term = self._product(product, abs(coefficient))
            if total is None:
                total = term if coefficient > 0 else term.prefixed("-", 14)
            else:
                total = total.infix("+" if coefficient > 0 else "-", term, 12)
        assert total is not None
        return total

    def _solved(self, dim: Poly) -> Poly:
        """Return ``dim`` with extents less a number in place of some factors."""
        total: Dim = 0
        for product, coefficient in dim.terms:
            term: Dim = coefficient
            for factor in product:
                value: Dim = _value(factor)
                extent = self.shifts.get(factor)
                if extent is None:
                    extent = _shifted(factor, self.locals)
                if extent is not None:
                    local = _value(ParameterExtent(self.locals[extent]))
                    value = local - (extent - value)
                term = value * term
            total = total + term
        assert isinstance(total, Poly)
        return total

    def _product(self, product: tuple[Atom, ...], size: int) -> Expression:
        result = atom(str(size)) if size != 1 or not product else None
        for factor in product:
            text = self._factor(factor)
            result = text if result is None else text.infix("*", result, 13)
        assert result is not None
        return result

    def _factor(self, factor: Atom) -> Expression:
        if _value(factor) in self.locals:
            return atom(self.locals[_value(factor)])
        if isinstance(factor, FloorDiv):
            divisor = self.write(factor.divisor)
            return self.write(factor.numerator).infix("//", divisor, 13)
        if isinstance(factor, Extremum):
            operands = ", ".join(self.write(one).text for one in factor.operands)
            return atom(f"{factor.name}({operands})")
        if isinstance(factor, ParameterExtent):
            return atom(factor)
        multiple = _multiple(symbol(factor), self.locals)
        assert multiple is not None
        local = atom(self.locals[multiple])
        return local.infix("//", atom(str(multiple.terms[0][1])), 13)


def _dims_of(block: Block) -> Iterator[Poly]:
    """Yield the dimensions that statements mention, also in nested blocks."""
    for statement in block.statements:
        for operand in operands(statement):
            yield from dims_in(operand)
        for inner in blocks_of(statement):
            yield from _dims_of(inner)
    for result in block.results:
        yield from dims_in(result)


def _extrema(dim: Dim) -> Iterator[Poly]:
    """Yield the maxima and minima in a dimension, the inner ones first."""
    for product, _ in dim.terms if isinstance(dim, Poly) else ():
        for factor in product:
            if isinstance(factor, FloorDiv | Extremum):
                for operand in factor.operands:
                    yield from _extrema(operand)
            if isinstance(factor, Extremum):
                yield _value(factor)


def _extents(value: Symbol) -> dict[Dim, None]:
    if value.type is None or value.type.shape is None:
        return {}
    return {d: None for d in value.type.shape if isinstance(d, Poly)}


def _name(extent: Dim) -> str:
    text = str(extent)
    return identifier(text) if text.isidentifier() else "size"
