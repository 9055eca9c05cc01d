"""Recovers GELU, exact and with the tanh approximation, from its formula."""

from __future__ import annotations

from math import pi, sqrt

from burn_import.rewriting.pattern import (
    Call,
    Number,
    Pattern,
    Rule,
    Value,
    either,
    elementwise,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import Gelu

X = Value("x")


def _gate(curve: Pattern) -> Pattern:
    """Return the pattern of ``x * 0.5 * (1 + curve)``."""
    return product(Call("Add", curve, Number(1)), Number(0.5), X)


_CUBE = product(Number(0.044715), X, X, X)
_SQUARE = product(Number(0.044715), X, X)
_SLOPE = Number(sqrt(2 / pi))
_INNER = either(
    product(Call("Add", X, _CUBE), _SLOPE),
    product(Call("Add", _SQUARE, Number(1)), _SLOPE, X),
)

RULES: tuple[Rule, ...] = (
    (_gate(Call("Erf", product(Number(sqrt(0.5)), X))), elementwise(Gelu())),
    (_gate(Call("Tanh", _INNER)), elementwise(Gelu(approximate="tanh"))),
)


def gelu(graph: Graph) -> Graph:
    """Return ``graph`` with ``Gelu`` for ``x / 2 * (1 + erf(x / sqrt(2)))``.

    The approximation of ``erf`` by ``tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))`` is
    matched too. Factors may be in any order, and constants rounded to float32. Results
    may differ by rounding.
    """
    return fuse(graph, RULES, "Erf", "Tanh")
