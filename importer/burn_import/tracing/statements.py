"""Traversal of traced statements: operands, uses, dead code."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

from burn import Tensor
from burn_import.tracing.trace import (
    CHANGING,
    Apply,
    Block,
    Choice,
    Derivation,
    ModuleCall,
    Repetition,
    Statement,
    Symbol,
    blocks_of,
)
from burn_ir.dim import Poly, symbols as symbols_of
from burn_ir.types import Type

Sources = Callable[[Any], Iterable[Symbol]]


def operands(statement: Statement) -> tuple[Any, ...]:
    """Return the operands of a statement's top level, static arguments included."""
    if isinstance(statement, Apply):
        return (*statement.args, *statement.static.values())
    if isinstance(statement, ModuleCall | Derivation):
        return tuple(statement.args)
    if isinstance(statement, Repetition):
        sources = [source for _, source in statement.items]
        return (statement.trips, *statement.initial, *sources)
    return (statement.condition,)


def symbols_in(value: Any) -> Iterator[Symbol]:
    """Yield the symbols in an operand, including those in lists and slices."""
    if isinstance(value, Tensor):
        yield value.data
    elif isinstance(value, list | tuple):
        for item in value:
            yield from symbols_in(item)
    elif isinstance(value, slice):
        yield from symbols_in((value.start, value.stop, value.step))


def reads(statement: Statement) -> Iterator[Symbol]:
    """Yield every symbol that a statement reads, with repetitions, including blocks."""
    yield from symbols_in(operands(statement))
    if isinstance(statement, Repetition | Derivation):
        inner = list(block_reads(statement.body))  # collect once: blocks are nested
        yield from inner
        yield from _outer_reads(statement, inner)
        return
    for block in blocks_of(statement):
        yield from block_reads(block)


def outer_symbols(loop: Repetition | Derivation) -> list[Symbol]:
    """Return the outer values that a loop reads: they are live until it ends.

    Each counts as one more read, so that loop-invariant values are computed before
    it.
    """
    return _outer_reads(loop, block_reads(loop.body))


def _outer_reads(
    loop: Repetition | Derivation, inner: Iterable[Symbol]
) -> list[Symbol]:
    """Return the symbols among ``inner`` that the loop does not define."""
    defined = {*_iteration_symbols(loop), *_defined_symbols(loop.body)}
    return list(dict.fromkeys(s for s in inner if s not in defined))


def _iteration_symbols(loop: Repetition | Derivation) -> list[Symbol]:
    """Return the symbols that a block defines per iteration: carried values, items."""
    if isinstance(loop, Derivation):
        return loop.state
    return [*loop.state, *(item for item, _ in loop.items)]


def _defined_symbols(block: Block) -> Iterator[Symbol]:
    for statement in _walk(block):
        yield from statement.targets
        if isinstance(statement, Repetition | Derivation):
            yield from _iteration_symbols(statement)


def mentions(block: Block, dim: Poly) -> bool:
    """Return whether a dimension occurs anywhere in a block."""
    (name,) = symbols_of(dim)
    dims = dims_in([*block.results, *(_all_operands(s) for s in block.statements)])
    return any(name in symbols_of(one) for one in dims)


def block_reads(block: Block) -> Iterator[Symbol]:
    """Yield every symbol that a block reads, including its results."""
    for statement in block.statements:
        yield from reads(statement)
    yield from symbols_in(block.results)


def drop_dead(block: Block, sources: Sources) -> None:
    """Remove the statements whose targets are not read, from the last to the first.

    ``sources`` returns the values whose dimensions an operand needs: those are read
    too.
    """
    live = set(symbols_in(block.results)) | set(sources(block.results))
    live_statements: list[Statement] = []
    for statement in reversed(block.statements):
        changes_state = isinstance(statement, ModuleCall) and statement.kept
        if not live.intersection(statement.targets) and not changes_state:
            continue
        if isinstance(statement, Choice):
            _drop_dead_choice(statement, live, sources)
        elif isinstance(statement, Repetition):
            _drop_dead_rows(statement, live)
            _drop_dead_state(statement, live)
            drop_dead(statement.body, sources)
        elif isinstance(statement, Derivation):
            drop_dead(statement.body, sources)
        live.update(reads(statement))
        live.update(sources(_all_operands(statement)))
        live_statements.append(statement)
    block.statements = live_statements[::-1]


def live_symbols(block: Block, sources: Sources) -> set[Symbol]:
    """Return the symbols that are read once :func:`drop_dead` has changed ``block``."""
    drop_dead(block, sources)
    live = set(symbols_in(block.results)) | set(sources(block.results))
    for statement in block.statements:
        live.update(reads(statement))
        live.update(sources(_all_operands(statement)))
    return live


def _all_operands(statement: Statement) -> list[Any]:
    values = list(operands(statement))
    for block in blocks_of(statement):
        values += block.results
        for inner in block.statements:
            values += _all_operands(inner)
    return values


def _drop_dead_rows(loop: Repetition, live: set[Symbol]) -> None:
    """Drop collected lists that are not read; carried values stay."""
    count = len(loop.state)
    lists = [i for i in range(count, len(loop.targets)) if loop.targets[i] not in live]
    for index in reversed(lists):
        del loop.targets[index], loop.body.results[index]


def _drop_dead_state(loop: Repetition, live: set[Symbol]) -> None:
    """Drop carried values that are read only for their own next value."""
    count = len(loop.state)
    positions = {i for i in range(count) if loop.targets[i] in live}
    positions |= {0} if loop.check == "before" else set()
    kept = {*positions, *range(count, len(loop.body.results))}
    while True:
        read = _dependencies(loop.body, [loop.body.results[i] for i in sorted(kept)])
        more = {i for i in range(count) if loop.state[i] in read} - kept
        if not more:
            break
        kept |= more
    for index in sorted(set(range(count)) - kept, reverse=True):
        del loop.state[index], loop.initial[index]
        del loop.targets[index], loop.body.results[index]


def _dependencies(block: Block, results: list[Any]) -> set[Symbol]:
    """Return every symbol that ``results`` depend on inside ``block``."""
    reached = set(symbols_in(results))
    for statement in reversed(block.statements):
        if reached.intersection(statement.targets):
            reached.update(reads(statement))
    return reached


def _drop_dead_choice(choice: Choice, live: set[Symbol], sources: Sources) -> None:
    used = [target in live for target in choice.targets]
    for block in (choice.then, choice.orelse):
        block.results = [r for r, keep in zip(block.results, used, strict=True) if keep]
        drop_dead(block, sources)
    choice.targets = [t for t, keep in zip(choice.targets, used, strict=True) if keep]


def count_uses(block: Block) -> dict[Symbol, int]:
    """Count the reads of each symbol in a block and the blocks inside it."""
    counts: dict[Symbol, int] = {}
    for symbol in block_reads(block):
        counts[symbol] = counts.get(symbol, 0) + 1
    return counts


def conditions(block: Block, uses: dict[Symbol, int]) -> set[Symbol]:
    """Return the symbols that are only read as conditions.

    ``uses`` counts all reads. The operand of a negation that is only a condition
    counts as one, too.
    """
    counts: dict[Symbol, int] = {}
    negations: dict[Symbol, Symbol] = {}
    for statement in _walk(block):
        if isinstance(statement, Choice):
            for symbol in symbols_in(statement.condition):
                counts[symbol] = counts.get(symbol, 0) + 1
        elif isinstance(statement, Repetition) and statement.check == "after":
            symbol = statement.body.results[-1].data
            counts[symbol] = counts.get(symbol, 0) + 1
        elif isinstance(statement, Apply) and statement.primitive.name == "logical_not":
            for symbol in symbols_in(statement.args):
                negations[statement.targets[0]] = symbol
    deciding = {symbol for symbol, count in counts.items() if count == uses[symbol]}
    for negation, symbol in negations.items():
        if negation in deciding and uses[symbol] == 1:
            deciding.add(symbol)
    return deciding


def _walk(block: Block) -> Iterator[Statement]:
    for statement in block.statements:
        yield statement
        for inner in blocks_of(statement):
            yield from _walk(inner)


def dims_in(value: Any) -> Iterator[Poly]:
    """Yield the dimensions that the source of ``value`` contains."""
    if isinstance(value, Poly):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from dims_in(item)
    elif isinstance(value, slice):
        yield from dims_in((value.start, value.stop, value.step))
    elif isinstance(value, Tensor):
        contents = value.data.known
        if (
            contents is not None
            and contents.dtype == object
            and not value.data.constant
        ):
            yield from dims_in(contents.ravel().tolist())


def common_type(symbols: Sequence[Symbol]) -> Type | None:
    """Return the type that holds for each of ``symbols``."""
    types = [one.type for one in symbols]
    if any(one is None for one in types):
        return None
    return reduce(_merged, (one.forget() for one in types if one is not None))


def _merged(one: Type, other: Type) -> Type:
    if one == other or type(one) is not Type:
        return one
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return Type(one.dtype, None)
    dims = zip(one.shape, other.shape, strict=True)
    return Type(one.dtype, tuple(a if a == b else CHANGING for a, b in dims))
