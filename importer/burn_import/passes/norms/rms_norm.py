"""Recovers normalisation by the root mean square."""

from __future__ import annotations

from burn_import.passes.norms.matching import (
    Cast,
    Mean,
    Normalised,
    inverse_root,
    operand,
    root,
    weight,
)
from burn_import.rewriting.pattern import (
    Call,
    Found,
    Pattern,
    Rule,
    Scalar,
    Search,
    Stored,
    Value,
    either,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.fused import RMSNorm
from burn_ir.ops.norm import RMSNormalization

X, WEIGHT = Value("x"), Stored("weight")


def _power(x: Pattern) -> Pattern:
    """The mean square and epsilon."""
    return Call("Add", Mean(product(x, x)), Scalar("epsilon"))


def _unit(x: Pattern) -> Pattern:
    power = _power(x)
    return either(product(x, inverse_root(power)), Call("Div", x, root(power)))


def _scaled(x: Pattern) -> Pattern:
    power = _power(x)
    return either(
        product(x, inverse_root(power), WEIGHT),
        product(Call("Div", x, root(power)), WEIGHT),
        Call("Div", product(x, WEIGHT), root(power)),
    )


def _narrow(unit: Pattern) -> Pattern:
    """Half types are normalised in float32 and rounded before there is a weight."""
    return Cast(unit, back=True)


_DONE, _WIDE_DONE = Normalised(RMSNorm, X), Normalised(RMSNorm, Cast(X))
_WEIGHTED = either(
    _scaled(X),
    product(_narrow(_unit(Cast(X))), WEIGHT),
    # What stood before the weight has gone since.
    product(_DONE, WEIGHT),
    product(_narrow(_WIDE_DONE), WEIGHT),
)


def _weighted(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    scale = None if operand(found, search) is None else weight("weight", found, search)
    if scale is None:
        return None
    axis, epsilon = int(found.numbers["axis"]), found.numbers["epsilon"]
    return RMSNormalization(axis=axis, epsilon=epsilon), (found.values["x"], scale)


def _plain(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    if operand(found, search) is None:
        return None
    axis, epsilon = int(found.numbers["axis"]), found.numbers["epsilon"]
    return RMSNorm(axis=axis, epsilon=epsilon), (found.values["x"],)


RULES: tuple[Rule, ...] = (
    (_WEIGHTED, _weighted),
    (either(_unit(X), _narrow(_unit(Cast(X)))), _plain),
)


def rms_norm(graph: Graph) -> Graph:
    """``graph`` with ``RMSNormalization`` for ``x / sqrt(mean(x * x) + eps) * weight``.

    The mean is over the last axes. A weight is a stored value with one element for each
    feature; what else is multiplied stays a node, and without a weight it is
    ``RMSNorm``. Casts to float32 around the norm of a half type are part of it, as ONNX
    defines the operator. Results may differ by rounding.
    """
    return fuse(graph, RULES, "ReduceMean", "RMSNorm")
