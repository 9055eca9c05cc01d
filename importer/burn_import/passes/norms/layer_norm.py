"""Recovers layer normalization from its decompositions."""

from __future__ import annotations

from burn_import.passes.norms.matching import (
    Cast,
    Mean,
    Normalized,
    inverse_root,
    operand,
    root,
    weight,
)
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
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
_CENTERED = Call("Sub", X, _MEAN)
#: For half types PyTorch's exporter casts to float32 after subtracting the mean.
_WIDE = Cast(_CENTERED)


def _power(centered: Pattern) -> Pattern:
    """Return the pattern of the variance plus epsilon."""
    return Call("Add", Mean(product(centered, centered)), Scalar("epsilon"))


def _normalized(centered: Pattern) -> Pattern:
    power = _power(centered)
    return either(
        Call("Div", centered, root(power)), product(centered, inverse_root(power))
    )


def _weighted_norm(centered: Pattern) -> Pattern:
    power = _power(centered)
    return either(
        product(Call("Div", centered, root(power)), WEIGHT),
        Call("Div", product(centered, WEIGHT), root(power)),
        product(centered, inverse_root(power), WEIGHT),
    )


def _tensorflow_form(factor: Pattern) -> Pattern:
    """Return TensorFlow's form: ``x * factor + (bias - mean * factor)``."""
    rest = Call("Sub", BIAS, product(_MEAN, factor))
    return Call("Add", product(X, factor), rest)


_FACTOR = product(inverse_root(_power(_CENTERED)), WEIGHT)
_WEIGHTED = either(
    _weighted_norm(_CENTERED),
    product(Cast(_normalized(_WIDE), back=True), WEIGHT),
    # The norm without a weight was fused in an earlier round.
    product(Normalized(LayerNorm, X), WEIGHT),
)
_PLAIN = either(_normalized(_CENTERED), Cast(_normalized(_WIDE), back=True))


def _builder(*labels: str) -> Build:
    """Return a builder of the normalization with the weights of ``labels``."""

    def build(match: Match, search: Search) -> tuple[Op, tuple[str, ...]] | None:
        if operand(match, search) is None:
            return None
        x = match.values["x"]
        axis, epsilon = int(match.numbers["axis"]), match.numbers["epsilon"]
        if not labels:
            return LayerNorm(axis=axis, epsilon=epsilon), (x,)
        weights = [weight(label, match, search) for label in labels]
        operands = tuple(name for name in weights if name is not None)
        if len(operands) != len(weights):
            return None
        return LayerNormalization(axis=axis, epsilon=epsilon), (x, *operands)

    return build


RULES: tuple[Rule, ...] = (
    (Call("Add", _WEIGHTED, BIAS), _builder("weight", "bias")),
    (_tensorflow_form(_FACTOR), _builder("weight", "bias")),
    (_WEIGHTED, _builder("weight")),
    (_PLAIN, _builder()),
)


def layer_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``LayerNormalization`` for its decompositions.

    The value is normalized to mean 0 and variance 1 over the last axes, times a weight,
    plus a bias. A weight is a constant with one element per feature; other factors and
    terms stay nodes. Without a weight the result is ``LayerNorm``. Results may differ
    by rounding: half types are computed in float32 throughout.
    """
    return fuse(graph, RULES, "ReduceMean", "LayerNorm")
