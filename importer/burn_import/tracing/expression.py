"""Source expressions with their precedence, for composition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from burn_import.tracing.trace import Symbol

#: The precedence of names, calls, indexing and literals.
ATOM = 20
UNARY = 14
POWER = 15
COMPARISON = 6
#: ``a if c else b``.
CONDITIONAL = 1
#: Negations of comparisons, and of those without NaN.
EQUALITY = {" == ": " != ", " != ": " == "}
EXACT = EQUALITY | {" is not None": " is None", " is None": " is not None"}
ORDERED = {" < ": " >= ", " >= ": " < ", " > ": " <= ", " <= ": " > "}


@dataclass(frozen=True)
class Expression:
    """Source text, its precedence, and the symbols that it names."""

    text: str
    precedence: int = ATOM
    symbols: tuple[Symbol, ...] = field(default=(), compare=False)

    def inside(self, precedence: int) -> str:
        """Return the text, in parentheses if it binds less than ``precedence``."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def infix(self, operator: str, other: Expression, precedence: int) -> Expression:
        """Return ``self operator other``; ``**`` is right-associative."""
        left, right = precedence, precedence + 1
        if precedence == POWER:
            left, right = precedence + 1, precedence
        elif precedence == COMPARISON:  # adjacent comparisons would chain
            left = precedence + 1
        text = f"{self.inside(left)} {operator} {other.inside(right)}"
        return Expression(text, precedence, self.symbols + other.symbols)

    def prefixed(self, operator: str, precedence: int) -> Expression:
        """Return ``operator self``."""
        return Expression(
            f"{operator}{self.inside(precedence)}", precedence, self.symbols
        )


def atom(text: str, *symbols: Symbol) -> Expression:
    """Return an expression that never needs parentheses."""
    return Expression(text, UNARY if text.startswith("-") else ATOM, symbols)


def merge(expressions: Iterable[Expression]) -> tuple[Symbol, ...]:
    """Return the symbols of several expressions."""
    return tuple(symbol for e in expressions for symbol in e.symbols)


def negate(condition: Expression, ordered: bool = False) -> Expression:
    """Return ``not condition``; ``ordered`` if it compares no NaN."""
    negated = opposite(condition, (ORDERED | EXACT) if ordered else EXACT)
    return condition.prefixed("not ", 5) if negated is None else negated


def opposite(condition: Expression, pairs: Mapping[str, str]) -> Expression | None:
    """Return a comparison with the opposite operator of ``pairs``, else None."""
    text = condition.text
    for at in _outer_spaces(text) if condition.precedence == COMPARISON else ():
        for one, other in pairs.items():
            if text.startswith(one, at):
                opposite_text = text[:at] + other + text[at + len(one) :]
                return Expression(opposite_text, COMPARISON, condition.symbols)
    return None


def _outer_spaces(text: str) -> Iterator[int]:
    """Yield the positions of spaces outside brackets."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == " " and not depth:
            yield at
