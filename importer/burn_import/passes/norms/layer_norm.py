"""Recovers layer normalization from its decompositions."""

from burn_import.passes.norms.matching import (
    WEIGHT,
    Cast,
    Mean,
    Normalized,
    inverse_root,
    mean_square,
    norm_builder,
    normalized,
    weighted_norm,
)
from burn_import.rewriting.pattern import (
    Call,
    Pattern,
    Rule,
    Stored,
    Value,
    either,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.fused import LayerNorm
from burn_ir.ops.norm import LayerNormalization

X, BIAS = Value("x"), Stored("bias")
_KINDS = (LayerNorm, LayerNormalization)
_MEAN = Mean(X)
_CENTERED = Call("Sub", X, _MEAN)
#: For half types PyTorch's exporter casts to float32 after subtracting the mean.
_WIDE = Cast(_CENTERED)


def _tensorflow_form(factor: Pattern, bias: Pattern | None = BIAS) -> Pattern:
    """Return TensorFlow's form: ``x * factor + (bias - mean * factor)``.

    Keras 3 adds ``-mean * factor`` instead. Without a bias the term is that product.
    """
    rest: Pattern = product(Call("Neg", _MEAN), factor)
    if bias is not None:
        sub = Call("Sub", bias, product(_MEAN, factor))
        rest = either(sub, Call("Add", rest, bias))
    return Call("Add", product(X, factor), rest)


_INVERSE = inverse_root(mean_square(_CENTERED))
_FACTOR = product(_INVERSE, WEIGHT)
_WEIGHTED = either(
    weighted_norm(_CENTERED),
    product(Cast(normalized(_WIDE), back=True), WEIGHT),
    # The norm without a weight was fused in an earlier round.
    product(Normalized(X, LayerNorm), WEIGHT),
)
_PLAIN = either(normalized(_CENTERED), Cast(normalized(_WIDE), back=True))
RULES: tuple[Rule, ...] = (
    (Call("Add", _WEIGHTED, BIAS), norm_builder(*_KINDS, "weight", "bias")),
    (_tensorflow_form(_FACTOR), norm_builder(*_KINDS, "weight", "bias")),
    (_tensorflow_form(_FACTOR, None), norm_builder(*_KINDS, "weight")),
    (_tensorflow_form(_INVERSE, None), norm_builder(*_KINDS)),
    (_WEIGHTED, norm_builder(*_KINDS, "weight")),
    (_PLAIN, norm_builder(*_KINDS)),
)


def layer_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``LayerNormalization`` for its decompositions.

    The value is normalized to mean 0 and variance 1 over the last axes, times a weight,
    plus a bias. A weight is a constant with one element per feature; other factors and
    terms stay nodes. Without a weight the result is ``LayerNorm``. Results may differ
    by rounding: half types are computed in float32 throughout.
    """
    return fuse(graph, RULES, "ReduceMean", "GlobalAveragePool", "LayerNorm")
