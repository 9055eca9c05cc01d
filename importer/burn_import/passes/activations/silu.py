"""Recovers SiLU, which is Swish, from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import (
    Call,
    Found,
    Number,
    Rule,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import Swish

X = Value("x")
_SUM = Call("Add", Call("Exp", Call("Neg", X)), Number(1))

_SCALED = Call("Mul", X, Scalar("alpha"))


def _with_slope(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """``Swish`` with the factor in the sigmoid, as the quick form of GELU has one."""
    return elementwise(Swish(alpha=found.numbers["alpha"]))(found, search)


RULES: tuple[Rule, ...] = (
    (
        either(product(Call("Sigmoid", X), X), Call("Div", X, _SUM)),
        elementwise(Swish()),
    ),
    (product(Call("Sigmoid", _SCALED), X), _with_slope),
)


def silu(graph: Graph) -> Graph:
    """``graph`` with ``Swish`` for ``x * sigmoid(x)``, and ``x / (1 + exp(-x))``.

    In the sigmoid ``x`` may have a factor, as in the quick form of GELU. Results may
    differ by rounding.
    """
    return fuse(graph, RULES, "Sigmoid", "Exp")
