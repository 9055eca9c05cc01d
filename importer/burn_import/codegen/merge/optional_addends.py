"""Sums whose addends are results of modules that only some of several bodies have.

A block may add a branch for each kernel, an identity, or a bias: of the sum
``main(x) + vertical(x) + horizontal(x)`` each body has the addends of its modules.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from burn import Tensor
from burn_import.codegen.merge.optional_blocks import Chain
from burn_import.codegen.merge.unified_body import Unification
from burn_import.codegen.merge.value_origins import (
    makers_of,
    optional_call,
    origin_of,
)
from burn_import.tracing.statements import reads
from burn_import.tracing.trace import Apply, Statement, Symbol

#: The bodies with a block, the path to its main operand, and this operand by body.
Start = tuple[tuple[bool, ...], Chain, Sequence[Symbol | None]]


def optional_addend(run: Unification, symbols: Sequence[Symbol]) -> Start | None:
    """Return the sum with the result of an optional module that computes ``symbols``.

    All bodies have the same addends apart from those of modules that they lack.
    """
    for position in (1, 0):
        addends = [
            _added_module(run, index, symbol, position)
            for index, symbol in enumerate(symbols)
        ]
        name = addends[0]
        having = tuple(name in body.fields for body in run.bodies)
        if name is None or all(having):
            continue
        is_last = all(
            has == (own == name) for has, own in zip(having, addends, strict=True)
        )
        if is_last and _have_equal_addends(run, symbols):
            mains = [
                _operands(makers_of(run, index)(symbol))[1 - position] if has else None
                for index, (symbol, has) in enumerate(zip(symbols, having, strict=True))
            ]
            return having, (1 - position,), mains
    return None


def is_addend(run: Unification, number: int) -> bool:
    """Return whether a statement of the first body adds an optional module's result."""
    statement = run.bodies[0].trace.body.statements[number]
    operands = _operands(statement)
    return any(optional_call(run, 0, symbol) is not None for symbol in operands)


def _operands(statement: Statement | None) -> list[Symbol]:
    """Return the two tensors that a statement adds; none if it is no such sum."""
    if not isinstance(statement, Apply) or statement.primitive.name != "add":
        return []
    symbols = [arg.data for arg in statement.args if isinstance(arg, Tensor)]
    return symbols if len(symbols) == 2 else []


def _added_module(
    run: Unification, index: int, symbol: Symbol, position: int
) -> str | None:
    """Return the optional module whose result is added at ``position``, or None."""
    operands = _operands(makers_of(run, index)(symbol))
    call = optional_call(run, index, operands[position]) if operands else None
    return None if call is None else call.path[0]


def _have_equal_addends(run: Unification, symbols: Sequence[Symbol]) -> bool:
    """Return whether the sums differ only in the results of absent modules."""
    rows = [Counter(_addends(run, i, symbol)) for i, symbol in enumerate(symbols)]
    return all(
        row
        == Counter(
            {
                one: times
                for one, times in rows[0].items()
                if one[0] == "value" or one[1] in body.fields
            }
        )
        for row, body in zip(rows, run.bodies, strict=True)
    )


def _addends(
    run: Unification, index: int, symbol: Symbol
) -> Iterator[tuple[str, Hashable]]:
    """Yield keys of the addends of a sum, and of the sums that only it reads."""
    statements = run.bodies[index].trace.body.statements
    readers = Counter(one for statement in statements for one in reads(statement))
    pending = [symbol]
    while pending:
        own = pending.pop()
        operands = _operands(makers_of(run, index)(own))
        call = optional_call(run, index, own)
        if operands and (own is symbol or readers[own] == 1):
            pending.extend(operands)
        elif call is not None:
            yield "module", call.path[0]
        else:
            yield "value", origin_of(run, index, own)
