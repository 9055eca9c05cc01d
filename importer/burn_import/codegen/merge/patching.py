"""Rewriting of the first of several bodies to the common body."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn import Tensor
from burn_import.codegen.merge.expression_slots import Place
from burn_import.codegen.merge.list_calls import make_loops
from burn_import.codegen.merge.optional_blocks import OptionalBlock, make_blocks
from burn_import.codegen.merge.optional_operators import OptionalOperator, make_optional
from burn_import.codegen.merge.unified_body import Body, Union
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
    numbers: Mapping[Place, Any],
    flags: Mapping[int, str],
) -> None:
    """Replace parameters and numbers of ``trace`` by those of ``union``.

    ``flags`` are the conditions of statements that only some bodies have.
    """
    symbols = _symbols(trace, union, bodies)
    changes: dict[Place, Any] = dict(numbers)
    for operand_path, places in union.operands.items():
        parameter = symbols[places]
        if places[0] is None or trace.parameters[places[0]] is not parameter:
            changes[operand_path] = Tensor(parameter, trace.body.results[0].backend)
    trace.parameters = [symbols[places] for places in union.parameters]
    for operand_path in sorted(changes, key=str):
        value = changes[operand_path]
        if operand_path[0] == "result":
            trace.body.results[int(operand_path[1])] = value
        else:
            _change(
                trace.body.statements[int(operand_path[0])], operand_path[1:], value
            )
    make_loops(trace.body.statements, union.lists)
    operators = union.operators.items()
    final = {n: one for n, one in operators if isinstance(one, OptionalOperator)}
    make_optional(trace.body.statements, final, flags)
    blocks = {n: one for n, one in operators if isinstance(one, OptionalBlock)}
    make_blocks(trace.body, blocks, flags)


def _symbols(
    trace: FunctionTrace, union: Union, bodies: Sequence[Body]
) -> dict[tuple[int | None, ...], Symbol]:
    """Return the symbol of each parameter: the first body's own, or a new one."""
    symbols: dict[tuple[int | None, ...], Symbol] = {}
    used: set[int] = set()
    for places in union.parameters:
        own = places[0]
        if own is not None and own not in used:
            used.add(own)
            symbols[places] = trace.parameters[own]
            continue
        types = [
            body.trace.parameters[index].type
            for body, index in zip(bodies, places, strict=True)
            if index is not None
        ]
        symbols[places] = Symbol(_common(types))
    return symbols


def _common(types: Sequence[Type | None]) -> Type | None:
    """Return the common type of a parameter in all bodies, with open dimensions."""
    first = types[0]
    if first is None or any(t is None or t.shape is None for t in types):
        return first
    rank = {len(t.dims) for t in types if t is not None}
    if len(rank) > 1:
        return first.with_shape(None)
    return first.with_shape([symbol("?") for _ in first.dims])


def _change(statement: Any, way: Place, value: Any) -> None:
    """Replace the operand of ``statement`` at the path ``way`` by ``value``."""
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
    index, *rest = way
    if isinstance(operand, Tensor):
        contents = operand.data.known
        numbers = np.array(contents.ravel().tolist(), dtype=object)
        numbers[int(index)] = value
        old = operand.data.type
        patched = Symbol(Type(old.dtype, old.shape, numbers.reshape(contents.shape)))
        return Tensor(patched, operand.backend)
    if isinstance(operand, slice):
        bounds = [operand.start, operand.stop, operand.step]
        return slice(*_put(bounds, way, value))
    items = list(operand)
    items[int(index)] = _put(items[int(index)], rest, value)
    return type(operand)(items)


def reorder_arguments(
    block: Block, arrangements: Mapping[tuple[str, ...], Arrangement]
) -> None:
    """Pass arguments in the order of the merged classes."""
    for statement in block.statements:
        if isinstance(statement, ModuleCall) and statement.path in arrangements:
            order = arrangements[statement.path]
            args = [None if i is None else statement.args[i] for i in order]
            while args and args[-1] is None:
                args.pop()
            statement.args = tuple(args)
        for inner in blocks_of(statement):
            reorder_arguments(inner, arrangements)
