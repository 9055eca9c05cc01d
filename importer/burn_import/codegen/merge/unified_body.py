"""Bodies of classes for comparison, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from burn_import.codegen.merge.expression_slots import Place, Quotient
from burn_import.codegen.merge.optional_blocks import OptionalBlock
from burn_import.codegen.merge.optional_operators import OptionalOperator
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.trace import Statement, Symbol


@dataclass(frozen=True)
class Body:
    """A body for comparison, with its attributes for arrays and modules."""

    trace: FunctionTrace
    attribute: Callable[[str], str]
    fields: frozenset[str]
    #: Attributes of arrays that the body reads itself.
    stored: frozenset[str] = frozenset()


@dataclass
class Union:
    """Differences of several bodies, as parameters of one body."""

    #: The index of each unified parameter in each body.
    parameters: list[tuple[int | None, ...]] = field(default_factory=list)
    #: Operands of the first body that read a unified parameter.
    operands: dict[Place, tuple[int | None, ...]] = field(default_factory=dict)
    #: Numbers of the first body that differ, with their values in each body.
    numbers: dict[Place, tuple[Any, ...]] = field(default_factory=dict)
    #: Numbers of these that are in a float32 array.
    singles: set[Place] = field(default_factory=set)
    #: Dimensions that ``reshape`` infers.
    inferred: set[Place] = field(default_factory=set)
    #: Extents that all bodies infer although they are one number.
    implied: dict[Place, int] = field(default_factory=dict)
    #: Dimensions that are those of a parameter divided by a number of each body.
    quotients: dict[Place, Quotient] = field(default_factory=dict)
    #: Modules that some bodies lack.
    optional: set[str] = field(default_factory=set)
    #: Arrays that some bodies lack: they are None as an operand.
    arrays: set[str] = field(default_factory=set)
    #: Statements of the first body that some bodies lack, and which bodies have them.
    operators: dict[int, OptionalOperator | OptionalBlock] = field(default_factory=dict)
    #: Statements of the first body that call the only member of a list with another
    #: length in other bodies.
    lists: set[int] = field(default_factory=set)


class Unification(Protocol):
    """A run of the unification, as the comparison of optional blocks needs it."""

    bodies: Sequence[Body]
    union: Union
    makers: list[dict[Symbol, tuple[int | str, Statement]]]
    #: The parameters of each body, with their positions.
    parameters: list[dict[Symbol, int]]
    #: Statements of the first body that all bodies have, for one reader at least.
    common: set[int | str]
    #: The values in place of the result of an optional block, one per body, by
    #: statement.
    mains: dict[int, tuple[Symbol, ...]]
    carried: dict[Symbol, tuple[int | str, ...]]
    optional: set[str]
    dims: dict[Place, tuple[Any, ...]]
    in_blocks: dict[Place, tuple[Any, ...]]
    is_block: bool

    def kind(self, number: int, symbol: Symbol) -> str:
        """Return where a value comes from in one of the bodies."""

    def symbols(self, symbols: tuple[Symbol, ...], operand_path: Place) -> None:
        """Compare tensors: parameters, constants, or results of statements."""

    def part(self, chosen: Sequence[int]) -> Unification:
        """Return a run for the blocks of some of the bodies."""
