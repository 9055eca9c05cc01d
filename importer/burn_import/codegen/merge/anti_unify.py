"""What the bodies of several classes have in common: one body for all of them.

Bodies are compared from their results backwards, by what is computed and not by the
order in which it is. They may differ in numbers, which a constructor can be given; in
what they are called with, where one is given a value twice or not at all; and in
modules that some have and others do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from burn import Tensor
from burn_import.codegen.merge.expression_slots import (
    DifferError,
    Place,
    can_infer,
    equal,
    is_inside,
    items_of,
    makers,
    padded,
)
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_import.tracing.trace import (
    Apply,
    ModuleCall,
    Repetition,
    Symbol,
)
from burn_ir.dim import Poly

#: The operands that are extents, by primitive and position: they may differ.
EXTENTS = frozenset(
    {("reshape", 1), ("expand", 1), ("tile", 1), ("split", 1), ("resize", "sizes")}
)


@dataclass(frozen=True)
class Body:
    """One of the bodies, and what stored arrays and modules are called in it."""

    trace: FunctionTrace
    attribute: Callable[[str], str]
    fields: frozenset[str]
    #: The attributes of arrays that the body reads itself.
    stored: frozenset[str] = frozenset()


@dataclass
class Union:
    """What several bodies are one body with."""

    #: For each parameter of the one body, the place of the parameter in each.
    parameters: list[tuple[int | None, ...]] = field(default_factory=list)
    #: Operands of the first body, and which of those parameters stands there.
    operands: dict[Place, tuple[int | None, ...]] = field(default_factory=dict)
    #: Numbers of the first body, and what they are in each.
    numbers: dict[Place, tuple[Any, ...]] = field(default_factory=dict)
    #: Extents that follow from the others.
    inferred: set[Place] = field(default_factory=set)
    #: Modules that some bodies do without.
    optional: set[str] = field(default_factory=set)


def unite(bodies: Sequence[Body]) -> Union:
    """What the bodies are one with; the first has every module that another has.

    Raises:
        DifferError: they are not one.
    """
    run = _Union(bodies)
    results = list(zip(*(body.trace.body.results for body in bodies), strict=False))
    if len({len(body.trace.body.results) for body in bodies}) > 1:
        raise DifferError
    if any(body.trace.states for body in bodies):
        raise DifferError  # what is replaced is each one's own
    for number, values in enumerate(results):
        run.operand(values, ("result", number))
    run.check_extents()
    run.check_inside()
    run.found.parameters.sort(key=lambda places: (None in places, _rank(places)))
    return run.found


def _rank(places: tuple[int | None, ...]) -> tuple[int, ...]:
    """Those of the first body come in its order, others behind."""
    return tuple(10**6 if place is None else place for place in places)


class _Union:
    def __init__(self, bodies: Sequence[Body]) -> None:
        self.bodies = bodies
        self.found = Union()
        self.makers = [makers(body.trace.body) for body in bodies]
        self.given = [
            {symbol: i for i, symbol in enumerate(body.trace.parameters)}
            for body in bodies
        ]
        every = frozenset.intersection(*(body.fields for body in bodies))
        self.optional = {name for body in bodies for name in body.fields - every}
        self.known: set[tuple[Symbol, ...]] = set()
        #: What loops carry: the same in each body, by the loop and the position.
        self.carried: dict[Symbol, tuple[int | str, ...]] = {}
        self.dims: dict[Place, tuple[Any, ...]] = {}

    def operand(self, values: Sequence[Any], place: Place) -> None:
        """Compare what stands at one place of each body."""
        values, place = self.skipped(values, place)
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not tensors:
            self.plain(values, place)
        elif len(tensors) < len(values):
            self.absent(values, place)
        else:
            self.symbols(tuple(value.data for value in tensors), place)

    def skipped(
        self, values: Sequence[Any], place: Place
    ) -> tuple[Sequence[Any], Place]:
        """What the modules that only some have are called with, in place of theirs."""
        while True:
            calls = [self.optional_call(value, i) for i, value in enumerate(values)]
            names = {call.path[0] for call in calls if call is not None}
            if not names:
                return values, place
            name = names.pop()
            having = [name in body.fields for body in self.bodies]
            if names or having != [call is not None for call in calls] or not having[0]:
                raise DifferError
            self.found.optional.add(name)
            first = self.makers[0][values[0].data][0]
            values = [
                value if call is None else call.args[0]
                for value, call in zip(values, calls, strict=True)
            ]
            place = (first, 0)

    def optional_call(self, value: Any, number: int) -> ModuleCall | None:
        """The call of a module that not all have, if it makes ``value``."""
        if not isinstance(value, Tensor):
            return None
        _, maker = self.makers[number].get(value.data, (0, None))
        if not isinstance(maker, ModuleCall) or maker.path[0] not in self.optional:
            return None
        single = len(maker.args) == len(maker.targets) == len(maker.path) == 1
        if not single or maker.results is not None:
            raise DifferError
        return maker

    def absent(self, values: Sequence[Any], place: Place) -> None:
        """A tensor that some are not given: a parameter that may be None."""
        for number, value in enumerate(values):
            if isinstance(value, Tensor) and value.data not in self.given[number]:
                raise DifferError
            if not isinstance(value, Tensor) and value is not None:
                raise DifferError
        self.parameter([None if v is None else v.data for v in values], place)

    def parameter(self, symbols: Sequence[Symbol | None], place: Place) -> None:
        """Note which parameters stand at one place of each body."""
        places = tuple(
            None if symbol is None else given[symbol]
            for symbol, given in zip(symbols, self.given, strict=True)
        )
        if len(set(self.kinds(places))) > 1:
            raise DifferError
        if places not in self.found.parameters:
            self.found.parameters.append(places)
        if self.found.operands.setdefault(place, places) != places:
            raise DifferError

    def kinds(self, places: Sequence[int | None]) -> Iterator[tuple[Any, ...]]:
        """The dtype and rank of a parameter in each body."""
        for body, place in zip(self.bodies, places, strict=True):
            if place is not None:
                known = body.trace.parameters[place].type
                shape = None if known is None else known.shape
                dtype = None if known is None else (type(known), known.dtype)
                yield dtype, None if shape is None else len(shape)

    def symbols(self, symbols: tuple[Symbol, ...], place: Place) -> None:
        """Compare tensors: parameters, constants, or what statements make."""
        kinds = {self.kind(i, s) for i, s in enumerate(symbols)}
        if len(kinds) > 1:
            raise DifferError
        kind = kinds.pop()
        if kind == "carried" and len({self.carried[s] for s in symbols}) > 1:
            raise DifferError
        if kind == "given":
            self.parameter(symbols, place)
        elif kind == "made" and symbols not in self.known:
            self.known.add(symbols)
            self.statements(symbols)
        elif kind == "known":
            self.constants(symbols, place)

    def kind(self, number: int, symbol: Symbol) -> str:
        """Where a value comes from in one of the bodies."""
        if symbol in self.carried:
            return "carried"
        if symbol in self.given[number]:
            return "given"
        return "made" if symbol in self.makers[number] else "known"

    def constants(self, symbols: Sequence[Symbol], place: Place) -> None:
        """Compare stored arrays by their attributes, known numbers one by one."""
        stored = {
            body.attribute(s.constant) if s.constant else ""
            for body, s in zip(self.bodies, symbols, strict=True)
        }
        if len(stored) > 1:
            raise DifferError
        if stored != {""}:
            return
        arrays = [s.known for s in symbols if s.known is not None]
        kinds = {(array.shape, array.dtype) for array in arrays}
        if len(arrays) < len(symbols) or len(kinds) > 1:
            raise DifferError
        if arrays[0].size > INLINE_LIMIT:
            self.plain(arrays, place)
            return
        items = zip(*(array.ravel().tolist() for array in arrays), strict=True)
        for position, values in enumerate(items):
            self.plain(values, (*place, position))

    def statements(self, symbols: tuple[Symbol, ...]) -> None:
        """Compare the statements that make values, and what they read."""
        made = [self.makers[i][s] for i, s in enumerate(symbols)]
        number, first = made[0]
        others = [statement for _, statement in made]
        outs = {s.targets.index(t) for s, t in zip(others, symbols, strict=True)}
        if len({type(s) for s in others}) > 1 or len(outs) > 1:
            raise DifferError
        if isinstance(first, Apply):
            self.applications(number, others)
        elif isinstance(first, ModuleCall):
            self.calls(number, others)
        elif isinstance(first, Repetition):
            self.loops(number, others)
        else:
            raise DifferError

    def loops(self, number: int | str, loops: list[Any]) -> None:
        """Compare loops through whole lists of modules, whose lengths may differ."""
        about = {
            (len(s.initial), len(s.body.results), len(s.targets), len(s.members))
            for s in loops
        }
        paths = {tuple(member.path for member in s.members) for s in loops}
        if len(about) > 1 or len(paths) > 1 or paths == {()}:
            raise DifferError
        if any(s.items or not all(m.whole for m in s.members) for s in loops):
            raise DifferError
        for i, loop in enumerate(loops):
            for at, inner in enumerate(loop.body.statements):
                place = f"{number}.{at}"
                self.makers[i].update({t: (place, inner) for t in inner.targets})
            for position, symbol in enumerate(loop.state):
                self.carried[symbol] = (number, position)
        for position, values in enumerate(
            zip(*(s.initial for s in loops), strict=True)
        ):
            self.operand(values, (f"{number}.initial", position))
        made = zip(*(s.body.results for s in loops), strict=True)
        for position, values in enumerate(made):
            self.operand(values, (f"{number}.result", position))

    def calls(self, number: int | str, calls: list[Any]) -> None:
        shapes = {(c.path, len(c.args), len(c.targets), c.results) for c in calls}
        if len(shapes) > 1:
            raise DifferError
        for position, values in enumerate(zip(*(c.args for c in calls), strict=True)):
            self.operand(values, (number, position))

    def applications(self, number: int | str, calls: list[Any]) -> None:
        primitive = calls[0].primitive
        if any(call.primitive is not primitive for call in calls):
            raise DifferError
        names = dict.fromkeys(name for call in calls for name in call.static)
        usual = {p.name: p.default for p in parameters(primitive)}
        length = max(len(call.args) for call in calls)
        args = [padded(primitive, call.args, length) for call in calls]
        for position, values in enumerate(zip(*args, strict=True)):
            self.operand(values, (number, position))
        for name in names:
            given = [call.static.get(name, usual.get(name)) for call in calls]
            self.operand(given, (number, name))

    def plain(self, values: Sequence[Any], place: Place) -> None:
        """Compare what is no tensor: equal, or numbers that may differ."""
        several = [items_of(value) for value in values]
        if several[0] is not None:
            kinds = {
                (type(v), len(i or ())) for v, i in zip(values, several, strict=True)
            }
            if len(kinds) > 1:
                raise DifferError
            for position, items in enumerate(zip(*filter(None, several), strict=True)):
                self.operand(items, (*place, position))
            return
        if any(isinstance(value, Poly) for value in values):
            self.dims[place] = tuple(values)
        elif not equal(values):
            if not self.may_differ(values, place):
                raise DifferError
            if self.found.numbers.setdefault(place, tuple(values)) != tuple(values):
                raise DifferError

    def may_differ(self, values: Sequence[Any], place: Place) -> bool:
        if is_inside(place):
            return False
        kinds = {type(value) for value in values}
        if kinds == {float} or (kinds == {bool} and isinstance(place[-1], str)):
            return True
        if kinds != {int} or not isinstance(place[0], int):
            return False
        statement = self.bodies[0].trace.body.statements[place[0]]
        assert isinstance(statement, Apply)
        return (statement.primitive.name, place[1]) in EXTENTS

    def check_extents(self) -> None:
        """Of extents: the same of the same parameter, or one that can be inferred."""
        for place, values in self.dims.items():
            if self.same_extent(values):
                continue
            around = {
                other for other in self.found.inferred if other[:-1] == place[:-1]
            }
            if around or not can_infer(self.bodies[0].trace, place):
                raise DifferError
            self.found.inferred.add(place)

    def check_inside(self) -> None:
        """What stands in a loop stays as it is in the first body."""
        for place, places in self.found.operands.items():
            own = (p for p in self.found.parameters if p[0] == places[0])
            if is_inside(place) and (places[0] is None or next(own) != places):
                raise DifferError

    def same_extent(self, values: Sequence[Any]) -> bool:
        """Whether all have what is the same extent of what they are given."""
        found = []
        for number, value in enumerate(values):
            if not isinstance(value, Poly):
                return False
            found.append(list(self.sources(number, value)))
        return all(one == found[0] for one in found) and bool(found[0])

    def sources(self, number: int, value: Poly) -> Iterator[tuple[int, int]]:
        """The first parameter and axis that have an extent."""
        for place, places in enumerate(self.found.parameters):
            own = places[number]
            if own is None:
                continue
            known = self.bodies[number].trace.parameters[own].type
            for axis, dim in enumerate((known.shape if known else None) or ()):
                if isinstance(dim, Poly) and dim == value:
                    yield place, axis
                    return
