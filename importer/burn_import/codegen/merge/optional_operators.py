"""Optional final operators, which only some of several bodies have.

An activation or a residual sum may be present only in some instances of a block: the
merged class applies it if a constructor argument says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burn import Tensor
from burn_import.codegen.merge.expression_slots import DifferError, Place, equal
from burn_import.codegen.merge.optional_blocks import OptionalBlock
from burn_import.tracing.constructor_numbers import ParameterInt
from burn_import.tracing.trace import Apply, Block, Choice, Statement, Symbol

#: Primitives that are called an activation where they are optional.
ACTIVATIONS = frozenset(
    {"relu", "clip", "silu", "gelu", "sigmoid", "tanh", "hard_swish", "hard_sigmoid"}
    | {"leaky_relu", "elu", "selu", "mish", "softplus", "quick_gelu"}
)


@dataclass(frozen=True)
class OptionalOperator:
    """An optional operator, and the index of the operand to skip to.

    ``residual`` is the index of the added parameter by body, None where it is
    absent.
    """

    name: str
    main: int
    having: tuple[bool, ...]
    residual: tuple[int | None, ...] = ()

    def skipped(
        self, statements: Sequence[Statement | None], values: Sequence[Any]
    ) -> list[Any]:
        """Return ``values``, replaced by the operator's main operand where present."""
        return [
            statement.args[self.main] if has and isinstance(statement, Apply) else value
            for value, statement, has in zip(
                values, statements, self.having, strict=True
            )
        ]


def optional_operator(
    statements: Sequence[Statement | None], parameters: Sequence[Mapping[Symbol, int]]
) -> OptionalOperator | None:
    """Return the first statement's operator if only some have it.

    ``parameters`` are the parameters of the bodies. Only activations that keep the type
    and have numeric options qualify, and sums with a parameter.
    """
    first = statements[0]
    if not isinstance(first, Apply) or len(first.targets) != 1:
        return None
    having = tuple(
        isinstance(other, Apply) and other.primitive is first.primitive
        for other in statements
    )
    if all(having):
        return None
    present = [s for s in statements if isinstance(s, Apply)]
    present = [s for s in present if s.primitive is first.primitive]
    if first.primitive.name == "add":
        return _sum(statements, having, parameters)
    if first.primitive.name not in ACTIVATIONS or not all(map(_keeps_type, present)):
        return None
    given_numbers = [_numbers(statement) for statement in present]
    is_one = None not in given_numbers and equal(given_numbers)
    return OptionalOperator("activation", 0, having) if is_one else None


def _keeps_type(statement: Apply) -> bool:
    """Return whether the result has the type of the first operand, a tensor."""
    if not statement.args or not isinstance(statement.args[0], Tensor):
        return False
    before, after = statement.args[0].data.type, statement.targets[0].type
    return before is not None and bool(before == after)


def _numbers(statement: Apply) -> tuple[object, ...] | None:
    """Return the operands after the first, or None if one is not constant."""
    operands = [*statement.args[1:], *sorted(statement.static.items())]
    numbers: list[object] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            contents = operand.data.known
            if operand.data.constant or contents is None:
                return None
            operand = (str(contents.dtype), contents.tolist())
        numbers.append(operand)
    return tuple(numbers)


def _sum(
    statements: Sequence[Statement | None],
    having: tuple[bool, ...],
    parameters: Sequence[Mapping[Symbol, int]],
) -> OptionalOperator | None:
    """Return a sum with a parameter of the same type, at one position in all."""
    for main in (0, 1):
        places = tuple(
            _residual(statement, 1 - main, own) if has else None
            for statement, has, own in zip(statements, having, parameters, strict=True)
        )
        if all(
            (position is not None) is has
            for position, has in zip(places, having, strict=True)
        ):
            return OptionalOperator("residual", main, having, places)
    return None


def _residual(
    statement: Statement | None, position: int, parameters: Mapping[Symbol, int]
) -> int | None:
    """Return the index of the added parameter of the same type, or None."""
    if not isinstance(statement, Apply) or len(statement.args) != 2:
        return None
    values = [arg.data for arg in statement.args if isinstance(arg, Tensor)]
    types = [value.type for value in (*values, statement.targets[0])]
    if len(values) != 2 or None in types or types != types[:1] * 3:
        return None
    return parameters.get(values[position])


def residuals(
    operators: Mapping[int, OptionalOperator | OptionalBlock],
    parameters: Sequence[tuple[int | None, ...]],
) -> Iterator[tuple[Place, tuple[int | None, ...]]]:
    """Yield the operand paths of optional sums with their unified parameters.

    Raises:
        DifferError: the bodies without the sum lack the added parameter.
    """
    for number, operator in operators.items():
        if not isinstance(operator, OptionalOperator) or not operator.residual:
            continue
        rows = [
            row
            for row in parameters
            if all(
                own in (None, position)
                for own, position in zip(operator.residual, row, strict=True)
            )
        ]
        if not rows or None in rows[0]:
            raise DifferError
        yield (number, 1 - operator.main), rows[0]


def make_optional(
    statements: list[Statement],
    operators: Mapping[int, OptionalOperator],
    flags: Mapping[int, str],
) -> None:
    """Run each of the ``operators`` only if its condition in ``flags`` holds."""
    for number, operator in operators.items():
        call = statements[number]
        assert isinstance(call, Apply)
        (target,) = call.targets
        main = call.args[operator.main]
        result = Symbol(target.type, target.name)
        run = Apply(call.primitive, call.args, call.static, [result])
        then = Block([run], [Tensor(result, main.backend)])
        condition = ParameterInt(1, flags[number])
        statements[number] = Choice(condition, then, Block([], [main]), [target])
