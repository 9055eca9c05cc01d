"""Recovers layer normalisation from what exporters write for it."""

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
    Build,
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
from burn_ir.ops.fused import LayerNorm
from burn_ir.ops.norm import LayerNormalization

X, WEIGHT, BIAS = Value("x"), Stored("weight"), Stored("bias")
_MEAN = Mean(X)
_CENTRED = Call("Sub", X, _MEAN)
#: For half types PyTorch's exporter goes on in float32 once the mean is taken off.
_WIDE = Cast(_CENTRED)


def _power(centred: Pattern) -> Pattern:
    """The variance and epsilon."""
    return Call("Add", Mean(product(centred, centred)), Scalar("epsilon"))


def _unit(centred: Pattern) -> Pattern:
    power = _power(centred)
    return either(
        Call("Div", centred, root(power)), product(centred, inverse_root(power))
    )


def _scaled(centred: Pattern) -> Pattern:
    power = _power(centred)
    return either(
        product(Call("Div", centred, root(power)), WEIGHT),
        Call("Div", product(centred, WEIGHT), root(power)),
        product(centred, inverse_root(power), WEIGHT),
    )


def _shifted(factor: Pattern) -> Pattern:
    """The form of TensorFlow: ``x * factor + (bias - mean * factor)``."""
    rest = Call("Sub", BIAS, product(_MEAN, factor))
    return Call("Add", product(X, factor), rest)


_FACTOR = product(inverse_root(_power(_CENTRED)), WEIGHT)
_WEIGHTED = either(
    _scaled(_CENTRED),
    product(Cast(_unit(_WIDE), back=True), WEIGHT),
    # What stood before the weight has gone since.
    product(Normalised(LayerNorm, X), WEIGHT),
)
_PLAIN = either(_unit(_CENTRED), Cast(_unit(_WIDE), back=True))


def _with(*labels: str) -> Build:
    """Build the normalisation with the weights of these labels."""

    def build(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
        if operand(found, search) is None:
            return None
        x = found.values["x"]
        axis, epsilon = int(found.numbers["axis"]), found.numbers["epsilon"]
        if not labels:
            return LayerNorm(axis=axis, epsilon=epsilon), (x,)
        weights = [weight(label, found, search) for label in labels]
        given = tuple(name for name in weights if name is not None)
        if len(given) != len(weights):
            return None
        return LayerNormalization(axis=axis, epsilon=epsilon), (x, *given)

    return build


RULES: tuple[Rule, ...] = (
    (Call("Add", _WEIGHTED, BIAS), _with("weight", "bias")),
    (_shifted(_FACTOR), _with("weight", "bias")),
    (_WEIGHTED, _with("weight")),
    (_PLAIN, _with()),
)


def layer_norm(graph: Graph) -> Graph:
    """``graph`` with ``LayerNormalization`` where one is written out.

    That is a mean of 0 and a variance of 1 over the last axes, times a weight, plus a
    bias. A weight is a stored value with one element for each feature; what else is
    multiplied or added stays a node, and without a weight it is ``LayerNorm``. Results
    may differ by rounding: half types are computed in float32 throughout.
    """
    return fuse(graph, RULES, "ReduceMean", "LayerNorm")
