"""Recovers ELU, and SELU and CELU, from their formulas."""

from __future__ import annotations

from math import isclose

from burn_import.passes.activations.leaky_relu import positive
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Found,
    Number,
    Pattern,
    Rule,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import Celu, Elu, Selu

X, ALPHA = Value("x"), Scalar("alpha")


def _grown(x: Pattern) -> Pattern:
    """exp(x) - 1."""
    exponential = Call("Exp", x)
    return either(
        Call("Sub", exponential, Number(1)), Call("Add", exponential, Number(-1))
    )


def _scaled(x: Pattern) -> Pattern:
    return Call("Mul", _grown(x), ALPHA)


def _capped(curve: Pattern) -> Pattern:
    """The form without a condition, in which a curve is only taken below 0."""
    return either(Call("Min", curve, Number(0)), Call("Min", Number(0), curve))


def _by(curve: Pattern) -> Pattern:
    return either(positive(X, X, curve), Call("Add", Call("Relu", X), _capped(curve)))


def _of(op: type[Elu] | type[Celu]) -> Build:
    """Build ``op`` with the factor of the match, which must be above 0; else 1."""

    def build(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
        alpha = found.numbers.get("alpha", 1.0)
        return elementwise(op(alpha=alpha))(found, search) if alpha > 0 else None

    return build


def _selu(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    elu = next(node.op for node in found.nodes if isinstance(node.op, Elu))
    standard, gamma = Selu(), found.numbers["gamma"]
    pairs = ((elu.alpha, standard.alpha), (gamma, standard.gamma))
    # PyTorch and ONNX have different last digits.
    if not all(isclose(own, usual, rel_tol=1e-6) for own, usual in pairs):
        return None
    return elementwise(Selu(alpha=elu.alpha, gamma=gamma))(found, search)


RULES: tuple[Rule, ...] = (
    (Call("Mul", Call("Elu", X), Scalar("gamma")), _selu),
    (_by(_grown(X)), _of(Elu)),
    (_by(_scaled(X)), _of(Elu)),
    (_by(_scaled(Call("Div", X, ALPHA))), _of(Celu)),
)


def elu(graph: Graph) -> Graph:
    """``graph`` with ``Elu`` for ``where(x > 0, x, alpha * (exp(x) - 1))``.

    With ``x / alpha`` in the exponential it is ``Celu``, and with the constants of
    self-normalising networks ``Selu``. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Exp", "Elu")
