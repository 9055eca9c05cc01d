"""Search and comparison of optional blocks while bodies are unified."""

from collections.abc import Hashable, Sequence
from typing import Any

from burn import Tensor
from burn_import.codegen.merge.expression_slots import MISSING, DifferError, Place
from burn_import.codegen.merge.optional_addends import (
    Start,
    is_addend,
    optional_addend,
)
from burn_import.codegen.merge.optional_blocks import (
    MOST_FIELDS,
    Chain,
    OptionalBlock,
    block_name,
    block_statements,
    check_types,
    fields_of,
    find_chain,
    follow,
    is_single,
)
from burn_import.codegen.merge.unified_body import Unification
from burn_import.codegen.merge.value_origins import makers_of, origin_of
from burn_import.tracing.statements import reads
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

#: Maximum number of conditions of blocks in one class, and of blocks with one; with
#: more, separate classes are clearer.
MOST_CONDITIONS, MOST_BLOCKS = 2, 3
#: Maximum number of conditions if a block only adds the result of a module.
MOST_ADDENDS = 4


def without_blocks(
    run: Unification, values: Sequence[Any], operand_path: Place
) -> tuple[Sequence[Any], Place]:
    """Return operands with optional blocks skipped, and the path of the operand."""
    while True:
        values, inner_path = without_block(run, values, operand_path)
        if inner_path == operand_path:
            return values, operand_path
        operand_path = inner_path


def without_block(
    run: Unification, values: Sequence[Any], operand_path: Place
) -> tuple[Sequence[Any], Place]:
    """Return operands with an optional block skipped, and the path of the operand.

    The block is compared on its own.
    """
    if not all(isinstance(value, Tensor) for value in values) or run.is_block:
        return values, operand_path
    symbols = [value.data for value in values]
    start = _start_of_block(run, symbols)
    number = run.makers[0].get(symbols[0], (None,))[0]
    if start is None or not isinstance(number, int):
        return values, operand_path
    having, chain, operands = start
    skipped = tuple(
        symbol if main is None else main
        for symbol, main in zip(symbols, operands, strict=True)
    )
    with_layer = layer_behind(run, symbols, operands, having, operand_path)
    if with_layer is not None:
        symbols, chain, number = with_layer, (0, *chain), int(operand_path[0])
    blocks = run.union.operators
    if number not in blocks:
        _check_conditions(run, having, number)
        new = _block(run, symbols, operands, having, chain, operand_path)
        blocks[number] = new
        run.mains[number] = skipped
        run.union.optional |= set(new.fields)
    block = blocks[number]
    if not isinstance(block, OptionalBlock) or block.having != having:
        raise DifferError
    if run.mains[number] != skipped:
        raise DifferError  # another reader gets another value without the block
    tensors = zip(values, skipped, strict=True)
    return [Tensor(symbol, value.backend) for value, symbol in tensors], block.main


def _start_of_block(run: Unification, symbols: Sequence[Symbol]) -> Start | None:
    """Return the bodies with a block that computes ``symbols``, and its main operand.

    The main operand is None in bodies without the block.
    """
    addend = optional_addend(run, symbols)
    if addend is not None:
        return addend
    origins = [origin_of(run, index, symbol) for index, symbol in enumerate(symbols)]
    if len(set(origins)) != 2:
        return None
    having = tuple(origin == origins[0] for origin in origins)
    goal = next(origin for origin in origins if origin != origins[0])
    mains = _main_operands(run, symbols, having, goal)
    return None if mains is None else (having, *mains)


def layer_behind(
    run: Unification,
    symbols: Sequence[Symbol],
    mains: Sequence[Symbol | None],
    having: tuple[bool, ...],
    operand_path: Place,
) -> list[Symbol] | None:
    """Return the results of the optional module that reads ``symbols``, by body.

    It is None unless the module is part of the block: views that lead to a layer are
    no block of their own. Bodies without the block keep their value.
    """
    number, *rest = operand_path
    first, main = run.bodies[0], mains[0]
    if not isinstance(number, int) or rest != [0] or main is None:
        return None
    call = first.trace.body.statements[number]
    if not isinstance(call, ModuleCall) or call.path[0] not in run.union.optional:
        return None
    name = call.path[0]
    last, _ = run.makers[0][symbols[0]]
    numbers = block_statements(first.trace.body, int(last), main)
    inside = [first.trace.body.statements[at] for at in numbers]
    if is_single(inside) or fields_of(inside, first.attribute) & run.optional:
        return None
    if len(call.path) > 1 or having != tuple(name in b.fields for b in run.bodies):
        return None
    results = [
        _result(body.trace.body.statements, call.path) if has else symbol
        for body, symbol, has in zip(run.bodies, symbols, having, strict=True)
    ]
    return None if None in results else [one for one in results if one is not None]


def _result(statements: Sequence[Statement], path: Sequence[str]) -> Symbol | None:
    """Return the result of the only call of a module."""
    calls = [s for s in statements if isinstance(s, ModuleCall) and s.path == path]
    return calls[0].targets[0] if len(calls) == len(calls[0].targets) == 1 else None


def _check_conditions(run: Unification, having: tuple[bool, ...], number: int) -> None:
    """Check that another block leaves the class clear.

    Raises:
        DifferError: separate classes are clearer.
    """
    rows = [block.having for block in run.union.operators.values()]
    most = MOST_ADDENDS if is_addend(run, number) else MOST_CONDITIONS
    if len({*rows, having}) > most or rows.count(having) == MOST_BLOCKS:
        raise DifferError
    if number in run.common:
        raise DifferError


def check_final_blocks(run: Unification) -> None:
    """Check that a final operator that bodies lack undoes or repeats another one.

    Raises:
        DifferError: it is alone, so that separate classes are clearer.
    """
    results = {id(result.data) for result in run.bodies[0].trace.body.results}
    statements = run.bodies[0].trace.body.statements
    blocks = {
        number: block
        for number, block in run.union.operators.items()
        if isinstance(block, OptionalBlock)
    }
    rows = [block.having for block in blocks.values()]
    for number, block in blocks.items():
        is_final = any(id(target) in results for target in statements[number].targets)
        if is_final and not block.fields and rows.count(block.having) == 1:
            raise DifferError


def _main_operands(
    run: Unification, symbols: Sequence[Symbol], having: Sequence[bool], goal: Hashable
) -> tuple[Chain, list[Symbol | None]] | None:
    """Return the path to a block's main operand, and that operand in each body."""

    def is_goal(symbol: Symbol) -> bool:
        return origin_of(run, 0, symbol) == goal

    chain = find_chain(symbols[0], makers_of(run, 0), is_goal)
    if chain is None:
        return None
    mains: list[Symbol | None] = []
    for index, (symbol, has) in enumerate(zip(symbols, having, strict=True)):
        main = follow(symbol, chain, makers_of(run, index)) if has else None
        if has and (main is None or origin_of(run, index, main) != goal):
            return None
        mains.append(main)
    return chain, mains


def _is_reshape(run: Unification, operand_path: Place) -> bool:
    """Return whether an operand is what a reshape to given dimensions reads."""
    number, *rest = operand_path
    if not isinstance(number, int) or rest != [0]:
        return False
    statement = run.bodies[0].trace.body.statements[number]
    return isinstance(statement, Apply) and statement.primitive.name == "reshape"


def _block(
    run: Unification,
    symbols: Sequence[Symbol],
    mains: Sequence[Symbol | None],
    having: tuple[bool, ...],
    chain: Chain,
    operand_path: Place,
) -> OptionalBlock:
    """Compare the block in the bodies that have it; return it.

    Raises:
        DifferError: the bodies have different blocks, or such that need a class.
    """
    _compare(run, symbols, mains, having)
    first, main = run.bodies[0], mains[0]
    assert main is not None
    number = int(run.makers[0][symbols[0]][0])
    last = follow(symbols[0], chain[:-1], makers_of(run, 0))
    assert last is not None
    block = first.trace.body
    numbers = block_statements(block, number, main)
    inside = [block.statements[at] for at in numbers]
    if (
        main in run.parameters[0]
        and sum(list(reads(s)).count(main) for s in inside) > 1
    ):
        raise DifferError  # only one of its places gets another parameter
    rest = [s for at, s in enumerate(block.statements) if at not in numbers]
    fields = _fields(run, inside, rest, having)
    if not fields and not is_single(inside):
        raise DifferError
    changes_rank = check_types(symbols[0], main, _is_reshape(run, operand_path))
    position = (int(run.makers[0][last][0]), chain[-1])
    return OptionalBlock(block_name(inside), position, having, fields, changes_rank)


def _fields(
    run: Unification,
    inside: Sequence[Statement],
    rest: Sequence[Statement],
    having: tuple[bool, ...],
) -> tuple[str, ...]:
    """Return the attributes that only the bodies with a block have, for the block.

    Raises:
        DifferError: the block also calls other modules, as a longer list does.
    """
    attribute = run.bodies[0].attribute
    own = fields_of(inside, attribute)
    fields = sorted(own & run.optional)
    called = {one.path[0] for one in inside if isinstance(one, ModuleCall)}
    outside = fields_of(rest, attribute)
    rows = {tuple(name in body.fields for body in run.bodies) for name in fields}
    if called - set(fields) or outside & set(fields) or rows - {having}:
        raise DifferError
    if len(fields) > MOST_FIELDS:
        raise DifferError
    return tuple(fields)


def _compare(
    run: Unification,
    symbols: Sequence[Symbol],
    mains: Sequence[Symbol | None],
    having: Sequence[bool],
) -> None:
    """Compare the blocks; add their differences to those of the whole bodies."""
    chosen = [index for index, has in enumerate(having) if has]
    part = run.part(chosen)
    for index in chosen:
        main = mains[index]
        assert main is not None
        part.carried[main] = ("block", 0)
    part.symbols(tuple(symbols[index] for index in chosen), ("block", 0))
    if part.union.operators or part.union.lists:
        raise DifferError

    def spread(row: Sequence[Any]) -> tuple[Any, ...]:
        values = iter(row)
        return tuple(next(values) if has else MISSING for has in having)

    run.union.singles |= part.union.singles
    run.union.implied.update(part.union.implied)
    for operand_path, row in part.union.numbers.items():
        run.union.numbers[operand_path] = spread(row)
    for operand_path, row in part.dims.items():
        run.dims[operand_path] = spread(row)
    for operand_path, places in part.union.operands.items():
        run.in_blocks[operand_path] = spread(places)


def place_block_operands(run: Unification) -> None:
    """Assign the parameters that blocks read to those of the whole bodies.

    Raises:
        DifferError: a body without the block lacks the parameter.
    """
    for operand_path, row in run.in_blocks.items():
        fits = [
            places
            for places in run.union.parameters
            if all(own in (MISSING, at) for own, at in zip(row, places, strict=True))
        ]
        if not fits or None in fits[0]:
            raise DifferError
        run.union.operands[operand_path] = fits[0]
