"""Blocks of statements that only some of several bodies run.

Some layers of a network shift their windows, add a mask, or downsample first: the
merged class runs those statements if it has the arrays and modules that they read, or
if a constructor argument says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from burn import Tensor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.tracing.constructor_numbers import ParameterInt
from burn_import.tracing.statements import reads
from burn_import.tracing.trace import (
    Apply,
    Block,
    Choice,
    ModuleCall,
    Statement,
    Symbol,
)

#: Maximum number of statements between the result of a block and its main operand.
LONGEST = 6
#: Maximum number of attributes that only one block reads.
MOST_FIELDS = 2
#: Primitives that only change the layout; blocks are not named after them.
LAYOUTS = frozenset({"reshape", "transpose", "permute", "expand", "cast", "unsqueeze"})
#: Names of constructor arguments for blocks, by primitive.
NAMES = {
    "roll": "shift",
    "add": "residual",
    "mul": "scale",
    "pad": "padding",
    **dict.fromkeys(("max", "mean", "max_pool", "average_pool"), "pool"),
}

#: Positions of operands, from a block's result to its main operand.
Chain = tuple[int, ...]


@dataclass(frozen=True)
class OptionalBlock:
    """Statements of the first body up to one result, and the bodies that have them.

    ``main`` is the operand that stands for the result in the other bodies: the number
    of a statement and a position. ``fields`` are the attributes that no other
    statement reads and other bodies lack.
    """

    name: str
    main: tuple[int, int]
    having: tuple[bool, ...]
    fields: tuple[str, ...] = ()
    #: Whether the main operand has another rank than the result.
    changes_rank: bool = False

    @property
    def condition(self) -> str:
        """The condition in terms of the attributes; "" if it needs a flag."""
        return " and ".join(f"self.{name} is not None" for name in self.fields)


def find_chain(
    start: Symbol,
    makers: Callable[[Symbol], Statement | None],
    is_goal: Callable[[Symbol], bool],
) -> Chain | None:
    """Return the shortest way from ``start`` to an operand that ``is_goal``."""
    ways: list[tuple[Symbol, Chain]] = [(start, ())]
    for _ in range(LONGEST):
        ways = [
            (symbol, (*chain, position))
            for before, chain in ways
            for position, symbol in _operands(makers(before))
        ]
        for symbol, chain in ways:
            if is_goal(symbol):
                return chain
    return None


def follow(
    start: Symbol, chain: Chain, makers: Callable[[Symbol], Statement | None]
) -> Symbol | None:
    """Return the operand at the end of ``chain``, or None."""
    symbol: Symbol | None = start
    for position in chain:
        operands = dict(_operands(makers(symbol))) if symbol is not None else {}
        symbol = operands.get(position)
    return symbol


def _operands(statement: Statement | None) -> Iterator[tuple[int, Symbol]]:
    """Yield the tensors that a primitive or module with one result takes."""
    if isinstance(statement, Apply | ModuleCall) and len(statement.targets) == 1:
        for position, arg in enumerate(statement.args):
            if isinstance(arg, Tensor):
                yield position, arg.data


def block_statements(block: Block, number: int, main: Symbol) -> list[int]:
    """Return the numbers of the statements that only the block's result needs."""
    statements = block.statements
    readers: dict[Symbol, set[int]] = {}
    for at, statement in enumerate(statements):
        for symbol in reads(statement):
            readers.setdefault(symbol, set()).add(at)
    for result in block.results:
        readers.setdefault(result.data, set()).add(len(statements))
    inside = {number}
    for at in reversed(range(number)):
        targets = statements[at].targets
        users = set().union(*(readers.get(target, set()) for target in targets))
        if main not in targets and users and users <= inside:
            inside.add(at)
    return sorted(inside)


def is_single(statements: Sequence[Statement]) -> bool:
    """Return whether a block consists of one operator, besides views."""
    names = [s.primitive.name for s in statements if isinstance(s, Apply)]
    return sum(name not in LAYOUTS for name in names) == 1


def block_name(statements: Sequence[Statement]) -> str:
    """Return the name of the constructor argument for a block."""
    names = [s.primitive.name for s in statements if isinstance(s, Apply)]
    informative = [name for name in names if name not in LAYOUTS]
    name = (informative or names or ["block"])[-1]
    return NAMES.get(name, name)


def fields_of(
    statements: Sequence[Statement], attribute: Callable[[str], str]
) -> set[str]:
    """Return the attributes that statements read or call."""
    fields = {one.path[0] for one in statements if isinstance(one, ModuleCall)}
    for statement in statements:
        stored = [symbol.constant for symbol in reads(statement) if symbol.constant]
        fields.update(attribute(constant).partition(".")[0] for constant in stored)
    return fields


def check_types(result: Symbol, main: Symbol, is_reshaped: bool) -> bool:
    """Return whether the ranks differ, which only a following reshape allows.

    Raises:
        DifferError: the main operand cannot stand for the result.
    """
    types = (result.type, main.type)
    if types[0] is None or types[1] is None or types[0].dtype != types[1].dtype:
        raise DifferError
    shapes = [one.shape for one in types if one is not None]
    if shapes[0] is None or shapes[1] is None:
        raise DifferError
    differ = len(shapes[0]) != len(shapes[1])
    if differ and not is_reshaped:
        raise DifferError
    return differ


def make_blocks(
    body: Block, blocks: Mapping[int, OptionalBlock], conditions: Mapping[int, str]
) -> None:
    """Run each of the ``blocks`` only under its condition."""
    moved: set[int] = set()
    statements = body.statements
    mains = {number: operand_of(statements, block) for number, block in blocks.items()}
    insides = {
        number: block_statements(body, number, main.data)
        for number, main in mains.items()
    }
    for number, block in blocks.items():
        last = statements[number]
        assert isinstance(last, Apply | ModuleCall)
        (target,) = last.targets
        result = Symbol(target.type, target.name)
        last.targets = [result]
        inside = [statements[at] for at in insides[number]]
        then = Block(inside, [Tensor(result, mains[number].backend)])
        if block.changes_rank and target.type is not None:
            target.type = target.type.with_shape(None)
        orelse = Block([], [mains[number]])
        condition = ParameterInt(1, conditions[number])
        statements[number] = Choice(condition, then, orelse, [target])
        moved.update(insides[number][:-1])
    body.statements = [s for at, s in enumerate(statements) if at not in moved]


def operand_of(statements: Sequence[Statement], block: OptionalBlock) -> Tensor:
    """Return the main operand of a block."""
    number, position = block.main
    statement = statements[number]
    assert isinstance(statement, Apply | ModuleCall)
    operand = statement.args[position]
    assert isinstance(operand, Tensor)
    return operand
