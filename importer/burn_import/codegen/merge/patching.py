"""The first of several bodies, changed so that it is the body of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn import Tensor
from burn_import.codegen.merge.anti_unify import Body, Union
from burn_import.codegen.merge.expression_slots import Place
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.trace import Apply, Block, ModuleCall, Symbol, blocks_of
from burn_ir.dim import symbol
from burn_ir.types import Type

Arrangement = Sequence[int | None]


def patch(
    trace: FunctionTrace,
    union: Union,
    bodies: Sequence[Body],
    numbers: Mapping[Place, float],
) -> None:
    """Give ``trace`` the parameters of ``union``, and other ``numbers``."""
    given = _symbols(trace, union, bodies)
    changes: dict[Place, Any] = dict(numbers)
    for place, places in union.operands.items():
        made = given[places]
        if places[0] is None or trace.parameters[places[0]] is not made:
            changes[place] = Tensor(made, trace.body.results[0].backend)
    trace.parameters = [given[places] for places in union.parameters]
    for place in sorted(changes, key=str):
        value = changes[place]
        if place[0] == "result":
            trace.body.results[int(place[1])] = value
        else:
            _change(trace.body.statements[int(place[0])], place[1:], value)


def _symbols(
    trace: FunctionTrace, union: Union, bodies: Sequence[Body]
) -> dict[tuple[int | None, ...], Symbol]:
    """The symbol of each parameter: the first body's own, or another one."""
    found: dict[tuple[int | None, ...], Symbol] = {}
    taken: set[int] = set()
    for places in union.parameters:
        own = places[0]
        if own is not None and own not in taken:
            taken.add(own)
            found[places] = trace.parameters[own]
            continue
        types = [
            body.trace.parameters[place].type
            for body, place in zip(bodies, places, strict=True)
            if place is not None
        ]
        found[places] = Symbol(_common(types))
    return found


def _common(types: Sequence[Type | None]) -> Type | None:
    """What is known of a parameter in all bodies: extents are left open."""
    first = types[0]
    if first is None or any(t is None or t.shape is None for t in types):
        return first
    rank = {len(t.dims) for t in types if t is not None}
    if len(rank) > 1:
        return first.with_shape(None)
    return first.with_shape([symbol("?") for _ in first.dims])


def _change(statement: Any, way: Place, value: Any) -> None:
    """Put ``value`` at the end of the way to an operand of ``statement``."""
    head, *rest = way
    if isinstance(head, str):
        statement.static[head] = _put(statement.static.get(head), rest, value)
        return
    args = list(statement.args)
    if isinstance(statement, Apply) and len(args) <= head:
        declared = parameters(statement.primitive)[len(args) : head + 1]
        args += [parameter.default for parameter in declared]
    args[head] = _put(args[head], rest, value)
    statement.args = tuple(args)


def _put(operand: Any, way: Sequence[int | str], value: Any) -> Any:
    if not way:
        return value
    place, *rest = way
    if isinstance(operand, Tensor):
        known = operand.data.known
        numbers = np.array(known.ravel().tolist(), dtype=object)
        numbers[int(place)] = value
        old = operand.data.type
        made = Symbol(Type(old.dtype, old.shape, numbers.reshape(known.shape)))
        return Tensor(made, operand.backend)
    items = list(operand)
    items[int(place)] = _put(items[int(place)], rest, value)
    return type(operand)(items)


def arrange(block: Block, arrangements: Mapping[tuple[str, ...], Arrangement]) -> None:
    """Call modules with what the classes that they are now are given."""
    for statement in block.statements:
        if isinstance(statement, ModuleCall) and statement.path in arrangements:
            order = arrangements[statement.path]
            args = [None if i is None else statement.args[i] for i in order]
            while args and args[-1] is None:
                args.pop()
            statement.args = tuple(args)
        for inner in blocks_of(statement):
            arrange(inner, arrangements)
