"""Anti-unification of class bodies: one body with parameters for their differences.

Bodies are compared by data flow from their results, regardless of statement order. They
may differ in numbers that a constructor can take; in arguments, where some bodies get a
value twice or not at all; and in optional modules and final operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from burn import Tensor
from burn_import.codegen.merge.block_comparison import (
    check_final_blocks,
    place_block_operands,
    without_blocks,
)
from burn_import.codegen.merge.expression_slots import (
    DifferError,
    Place,
    equal,
    is_inside,
    items_of,
    makers,
    may_be_given,
    pad_arguments,
)
from burn_import.codegen.merge.extent_rows import check_extents, implied_extent
from burn_import.codegen.merge.flattened_axes import aligned_reshapes
from burn_import.codegen.merge.list_calls import ONLY, unify_list_calls
from burn_import.codegen.merge.optional_operators import optional_operator, residuals
from burn_import.codegen.merge.unified_body import Body, Union
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_import.tracing.trace import Apply, ModuleCall, Repetition, Symbol
from burn_ir.dim import Poly


def unite(bodies: Sequence[Body]) -> Union:
    """Unify the bodies; the first one has all modules of the others.

    Raises:
        DifferError: they cannot be unified.
    """
    run = Comparison(bodies)
    results = list(zip(*(body.trace.body.results for body in bodies), strict=False))
    if len({len(body.trace.body.results) for body in bodies}) > 1:
        raise DifferError
    if any(body.trace.states for body in bodies):
        raise DifferError  # states differ between instances
    for number, values in enumerate(results):
        run.operand(values, ("result", number))
    check_final_blocks(run)
    place_block_operands(run)
    check_extents(run.union, bodies, run.dims)
    run.check_inside()
    run.union.operands.update(residuals(run.union.operators, run.union.parameters))
    run.union.parameters.sort(key=lambda places: (None in places, _rank(places)))
    return run.union


def _rank(places: tuple[int | None, ...]) -> tuple[int, ...]:
    """Return a sort key: parameters of the first body in its order, then others."""
    return tuple(10**6 if index is None else index for index in places)


class Comparison:
    """The state of one unification of several bodies."""

    def __init__(self, bodies: Sequence[Body], is_block: bool = False) -> None:
        """``is_block`` is set for the blocks that only some bodies have."""
        self.bodies = bodies
        self.is_block = is_block
        self.union = Union()
        self.makers = [makers(body.trace.body) for body in bodies]
        self.parameters = [
            {symbol: i for i, symbol in enumerate(body.trace.parameters)}
            for body in bodies
        ]
        every = frozenset.intersection(*(body.fields for body in bodies))
        self.optional = {name for body in bodies for name in body.fields - every}
        self.compared: set[tuple[Symbol, ...]] = set()
        #: Statements of the first body that all bodies have, for one reader at least.
        self.common: set[int | str] = set()
        #: The values in place of the result of an optional block, one per body, by
        #: statement.
        self.mains: dict[int, tuple[Symbol, ...]] = {}
        #: Loop-carried values, by loop and position.
        self.carried: dict[Symbol, tuple[int | str, ...]] = {}
        self.dims: dict[Place, tuple[Any, ...]] = {}
        #: The parameters that optional blocks read.
        self.in_blocks: dict[Place, tuple[Any, ...]] = {}

    def part(self, chosen: Sequence[int]) -> Comparison:
        """Return a run for the blocks of some of the bodies."""
        part = Comparison([self.bodies[index] for index in chosen], is_block=True)
        part.optional = set()
        return part

    def operand(self, values: Sequence[Any], operand_path: Place) -> None:
        """Compare the operands at one position of all bodies."""
        values, operand_path = self.skipped(values, operand_path)
        values, operand_path = without_blocks(self, values, operand_path)
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not tensors:
            self.plain(values, operand_path)
        elif len(tensors) < len(values):
            self.absent(values, operand_path)
        else:
            self.symbols(tuple(value.data for value in tensors), operand_path)

    def skipped(
        self, values: Sequence[Any], operand_path: Place
    ) -> tuple[Sequence[Any], Place]:
        """Return the operands with optional modules skipped, and their path."""
        values, operand_path = self.without_operator(values, operand_path)
        while True:
            calls = [self.optional_call(value, i) for i, value in enumerate(values)]
            names = {call.path[0] for call in calls if call is not None}
            if not names:
                return values, operand_path
            name = names.pop()
            having = [name in body.fields for body in self.bodies]
            if names or having != [call is not None for call in calls] or not having[0]:
                raise DifferError
            self.union.optional.add(name)
            first, maker = self.makers[0][values[0].data]
            if isinstance(maker, ModuleCall) and len(maker.path) > 1:
                self.union.lists.add(int(first))
            values = [
                value if call is None else call.args[0]
                for value, call in zip(values, calls, strict=True)
            ]
            operand_path = (first, 0)

    def without_operator(
        self, values: Sequence[Any], operand_path: Place
    ) -> tuple[Sequence[Any], Place]:
        """Return the operands with an optional final operator skipped."""
        producers = [
            makers.get(value.data) if isinstance(value, Tensor) else None
            for makers, value in zip(self.makers, values, strict=True)
        ]
        number, _ = producers[0] or (None, None)
        if operand_path[0] != "result" or not isinstance(number, int):
            return values, operand_path
        statements = [None if each is None else each[1] for each in producers]
        operator = optional_operator(statements, self.parameters)
        if operator is None or number in self.union.operators:
            return values, operand_path
        self.union.operators[number] = operator
        return operator.skipped(statements, values), (number, operator.main)

    def optional_call(self, value: Any, number: int) -> ModuleCall | None:
        """Return the call of an optional module that computes ``value``, or None."""
        if not isinstance(value, Tensor):
            return None
        _, maker = self.makers[number].get(value.data, (0, None))
        if not isinstance(maker, ModuleCall) or maker.path[0] not in self.optional:
            return None
        single = len(maker.args) == len(maker.targets) == 1
        is_field = maker.path[1:] in ((), (ONLY,))
        return maker if single and is_field and maker.results is None else None

    def absent(self, values: Sequence[Any], operand_path: Place) -> None:
        """Unify a tensor that some bodies lack: an array or parameter, else None."""
        if self.absent_array(values):
            return
        for number, value in enumerate(values):
            if isinstance(value, Tensor) and value.data not in self.parameters[number]:
                raise DifferError
            if not isinstance(value, Tensor) and value is not None:
                raise DifferError
        self.parameter([None if v is None else v.data for v in values], operand_path)

    def absent_array(self, values: Sequence[Any]) -> bool:
        """Return whether the tensor is a stored array, an attribute of some bodies."""
        if not all(value is None or isinstance(value, Tensor) for value in values):
            return False
        pairs = list(zip(values, self.bodies, strict=True))
        stored = [
            (value.data.constant, body) for value, body in pairs if value is not None
        ]
        names = {
            body.attribute(constant) if constant else "" for constant, body in stored
        }
        name = names.pop()
        having = [name in body.fields for body in self.bodies]
        if names or not having[0] or having != [value is not None for value in values]:
            return False
        self.union.arrays.add(name)
        return True

    def parameter(self, symbols: Sequence[Symbol | None], operand_path: Place) -> None:
        """Record the parameters at one position of all bodies."""
        places = tuple(
            None if symbol is None else positions[symbol]
            for symbol, positions in zip(symbols, self.parameters, strict=True)
        )
        if len(set(self.kinds(places))) > 1:
            raise DifferError
        if places not in self.union.parameters:
            self.union.parameters.append(places)
        if self.union.operands.setdefault(operand_path, places) != places:
            raise DifferError

    def kinds(self, places: Sequence[int | None]) -> Iterator[tuple[Any, ...]]:
        """Yield the dtype and rank of a parameter in each body."""
        for body, index in zip(self.bodies, places, strict=True):
            if index is not None:
                value_type = body.trace.parameters[index].type
                shape = None if value_type is None else value_type.shape
                dtype = (
                    None if value_type is None else (type(value_type), value_type.dtype)
                )
                yield dtype, None if shape is None else len(shape)

    def symbols(self, symbols: tuple[Symbol, ...], operand_path: Place) -> None:
        """Compare tensors: parameters, constants, or results of statements."""
        kinds = {self.kind(i, s) for i, s in enumerate(symbols)}
        if len(kinds) > 1:
            raise DifferError
        kind = kinds.pop()
        if kind == "carried" and len({self.carried[s] for s in symbols}) > 1:
            raise DifferError
        if kind == "parameter":
            self.parameter(symbols, operand_path)
        elif kind == "statement" and symbols not in self.compared:
            self.compared.add(symbols)
            self.statements(symbols)
        elif kind == "constant":
            self.constants(symbols, operand_path)

    def kind(self, number: int, symbol: Symbol) -> str:
        """Return where a value comes from in one of the bodies."""
        if symbol in self.carried:
            return "carried"
        if symbol in self.parameters[number]:
            return "parameter"
        return "statement" if symbol in self.makers[number] else "constant"

    def constants(self, symbols: Sequence[Symbol], operand_path: Place) -> None:
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
            self.plain(arrays, operand_path)
            return
        items = zip(*(array.ravel().tolist() for array in arrays), strict=True)
        for position, values in enumerate(items):
            self.plain(values, (*operand_path, position))
            if arrays[0].dtype == np.float32:
                self.union.singles.add((*operand_path, position))

    def statements(self, symbols: tuple[Symbol, ...]) -> None:
        """Compare the statements that compute values, and their operands."""
        producers = [self.makers[i][s] for i, s in enumerate(symbols)]
        number, first = producers[0]
        if number in self.union.operators:
            raise DifferError  # for another reader some bodies lack the statement
        self.common.add(number)
        others, is_list = unify_list_calls([statement for _, statement in producers])
        if is_list and isinstance(number, int):
            self.union.lists.add(number)
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
        """Compare loops over whole lists of modules, whose lengths may differ."""
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
                label = f"{number}.{at}"
                self.makers[i].update({t: (label, inner) for t in inner.targets})
            for position, symbol in enumerate(loop.state):
                self.carried[symbol] = (number, position)
        for position, values in enumerate(
            zip(*(s.initial for s in loops), strict=True)
        ):
            self.operand(values, (f"{number}.initial", position))
        results = zip(*(s.body.results for s in loops), strict=True)
        for position, values in enumerate(results):
            self.operand(values, (f"{number}.result", position))

    def calls(self, number: int | str, calls: list[Any]) -> None:
        shapes = {(c.path, len(c.args), len(c.targets), c.results) for c in calls}
        if len(shapes) > 1:
            raise DifferError
        for position, values in enumerate(zip(*(c.args for c in calls), strict=True)):
            self.operand(values, (number, position))

    def applications(self, number: int | str, calls: list[Any]) -> None:
        calls = aligned_reshapes(calls)
        primitive = calls[0].primitive
        if any(call.primitive is not primitive for call in calls):
            raise DifferError
        names = dict.fromkeys(name for call in calls for name in call.static)
        defaults = {p.name: p.default for p in parameters(primitive)}
        length = max(len(call.args) for call in calls)
        args = [pad_arguments(primitive, call.args, length) for call in calls]
        for position, values in enumerate(zip(*args, strict=True)):
            self.operand(values, (number, position))
        self.union.implied.update(implied_extent(number, calls))
        for name in names:
            options = [call.static.get(name, defaults.get(name)) for call in calls]
            self.operand(options, (number, name))

    def plain(self, values: Sequence[Any], operand_path: Place) -> None:
        """Compare operands other than tensors: equal, or numbers that may differ."""
        items_of_values = [items_of(value) for value in values]
        if items_of_values[0] is not None:
            kinds = {
                (type(v), len(i or ()))
                for v, i in zip(values, items_of_values, strict=True)
            }
            if len(kinds) > 1:
                raise DifferError
            for position, items in enumerate(
                zip(*filter(None, items_of_values), strict=True)
            ):
                self.operand(items, (*operand_path, position))
            return
        if any(isinstance(value, Poly) for value in values):
            if self.dims.setdefault(operand_path, tuple(values)) != tuple(values):
                raise DifferError
        elif not equal(values):
            if not self.may_differ(values, operand_path):
                raise DifferError
            if self.union.numbers.setdefault(operand_path, tuple(values)) != tuple(
                values
            ):
                raise DifferError

    def may_differ(self, values: Sequence[Any], operand_path: Place) -> bool:
        if is_inside(operand_path):
            return False
        kinds = {type(value) for value in values}
        if kinds == {float} or (kinds == {bool} and isinstance(operand_path[-1], str)):
            return True
        return kinds == {int} and may_be_given(self.bodies[0].trace, operand_path)

    def check_inside(self) -> None:
        """Check that operands in loops are the first body's parameters."""
        for operand_path, places in self.union.operands.items():
            own = (p for p in self.union.parameters if p[0] == places[0])
            if is_inside(operand_path) and (places[0] is None or next(own) != places):
                raise DifferError
