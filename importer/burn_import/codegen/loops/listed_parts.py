"""Parts of a split as elements of one list, which rounds read by their number."""

from collections.abc import Sequence

from burn import Tensor, ops
from burn_import.codegen.loops.equal_steps import FEWEST_ROUNDS
from burn_import.codegen.loops.rerolled_loop import Common
from burn_import.tracing.identifiers import plural
from burn_import.tracing.statements import common_type, operands, reads, symbols_in
from burn_import.tracing.trace import Apply, Statement, Symbol, Tracer
from burn_ir.containers import sequence_of

#: Primitives that return the parts of a value.
_SPLITS = (ops.split, ops.chunk)


def list_parts(
    statements: Sequence[Statement], results: object, common: Common
) -> list[Statement]:
    """Return the statements with the parts of each split read from a list.

    A part is read right before its first reader. Parts that are results, and those of
    splits into few, stay variables.
    """
    lists = _lists(statements, set(symbols_in(results)), common)
    if not lists:
        return list(statements)
    parts = {
        target: (split.targets[0], number)
        for at, split in lists.items()
        for number, target in enumerate(statements[at].targets)
    }
    listed: list[Statement] = []
    for at, statement in enumerate(statements):
        for symbol in dict.fromkeys(reads(statement)):
            if symbol in parts:
                split, number = parts.pop(symbol)
                args = (Tensor(split, Tracer()), number)
                listed.append(Apply(ops.sequence_at, args, {}, [symbol]))
        listed.append(lists.get(at, statement))
    return listed


def is_read_of_list(statement: Statement) -> bool:
    """Return whether a statement only reads an element of a list."""
    return isinstance(statement, Apply) and statement.primitive is ops.sequence_at


def _lists(
    statements: Sequence[Statement], results: set[Symbol], common: Common
) -> dict[int, Apply]:
    """Return the splits with a list as their result, by index."""
    lists: dict[int, Apply] = {}
    for at, statement in enumerate(statements):
        if not isinstance(statement, Apply) or statement.primitive not in _SPLITS:
            continue
        targets = statement.targets
        kind = common_type(targets)
        if kind is None or len(targets) < FEWEST_ROUNDS or results & set(targets):
            continue
        noun = common.noun([*symbols_in(operands(statement))][:1]) or "part"
        name = common.key(plural(noun))
        symbol = Symbol(sequence_of(kind), name)
        args, static = statement.args, statement.static
        lists[at] = Apply(statement.primitive, args, static, [symbol], statement.origin)
    return lists
