"""The interface of a function's writer for the statement printers."""

from collections.abc import Mapping
from typing import Protocol

from burn import Tensor
from burn_import.codegen.printing.consumer_words import Uses
from burn_import.codegen.printing.expressions import Renderer
from burn_import.tracing.expression import Expression
from burn_import.tracing.extents import Extents
from burn_import.tracing.trace import Block, Statement, Symbol


class LineWriter(Protocol):
    """The methods of ``writer.Writer`` that statement printers call."""

    nouns: Mapping[str, str]
    outputs: dict[Symbol, str]
    remaining: dict[Symbol, int]
    extents: Extents
    render: Renderer
    lines: list[str]
    live: dict[str, Symbol | None]
    kinds: dict[str, str]
    lengths: dict[str, int]
    forced: dict[Symbol, str]
    preferred: dict[Symbol, str]
    plain: set[str]
    uses: Uses
    named_in_long_lines: set[Symbol]
    deferred: dict[Symbol, tuple[Statement, Expression]]

    def line(self, text: str, indent: int, comment: str = "") -> None:
        """Write one line."""

    def block(self, block: Block, indent: int) -> None:
        """Write all statements of a block."""

    def assign(self, statement: Statement, expression: Expression, indent: int) -> None:
        """Inline an expression into its reader, or assign it to a name."""

    def is_last(self, statement: Statement) -> bool:
        """Return whether a statement is the last of the function."""

    def give_name(
        self, statement: Statement, expression: Expression, indent: int
    ) -> None:
        """Assign the results of a statement to names."""

    def guessed_name(self, statement: Statement, expression: Expression) -> str:
        """Return a name of about the length that the first result gets."""

    def result(self, value: Tensor) -> Expression:
        """Return the expression of a value that leaves a block."""

    def spend(self, expression: Expression) -> None:
        """Count one more read of the names in an expression."""

    def target(
        self, symbol: Symbol, statement: Statement, expression: Expression
    ) -> str:
        """Return the name that a result is assigned to."""

    def declared(self, name: str, symbol: Symbol, start: Expression) -> str:
        """Return a name, annotated where a type checker needs it."""

    def claim(self, symbol: Symbol, name: str) -> None:
        """Give a symbol its name."""

    def stream(self) -> str:
        """Return a free name for a value without a noun."""

    def free(self, name: str, symbol: Symbol, kind: str = "") -> str:
        """Return an unused name, numbered if necessary."""

    def release(self, symbol: Symbol) -> None:
        """Decrement the number of remaining readers of a symbol."""

    def read_extents(self, symbol: Symbol, indent: int) -> None:
        """Write the assignments of dimensions that are read from a symbol."""
