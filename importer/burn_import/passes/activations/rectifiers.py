"""Activations with another formula on each side of 0, recovered from formulas."""

from math import isclose

from burn.dtypes import is_float
from burn_import.rewriting.arrays import derive, number
from burn_import.rewriting.pattern import (
    Build,
    Call,
    FormulaPass,
    Match,
    Number,
    Pattern,
    Replacement,
    Scalar,
    Search,
    Stored,
    Value,
    either,
    elementwise,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import Celu, Elu, LeakyRelu, PRelu, Selu
from burn_ir.ops.elementwise import Clip
from burn_ir.types import Array

X, LOW, HIGH, SLOPE = Value("x"), Value("low"), Value("high"), Stored("slope")
ALPHA = Scalar("alpha")


def _min_or_max(op: str, x: Pattern, bound: Pattern) -> Pattern:
    return either(Call(op, x, bound), Call(op, bound, x))


def _positive(other: Pattern) -> Pattern:
    """Return the pattern of ``where(x > 0, x, other)`` and its equivalents.

    The comparison may include 0, where both branches must be 0.
    """
    zero = Number(0)
    above = either(Call("Greater", X, zero), Call("GreaterOrEqual", X, zero))
    below = either(Call("Less", X, zero), Call("LessOrEqual", X, zero))
    return either(Call("Where", above, X, other), Call("Where", below, other, X))


def _build_clip(low: str | None) -> Build:
    """Build ``Clip`` up to ``high`` from the constant of a label; no label means 0."""

    def build(match: Match, search: Search) -> Replacement:
        x = search.graph.type(match.values["x"])
        ends = [
            _constant_scalar(match, label, search) for label in (low, "high") if label
        ]
        if x is None or x.shape is None or any(end is None for end in ends):
            return None
        arrays = [end[1] for end in ends if end is not None]
        if any(a.dtype != x.dtype or a.ndim > len(x.shape) for a in arrays):
            return None
        numbers = [0.0] * (2 - len(arrays)) + [float(a.reshape(())) for a in arrays]
        if not numbers[0] <= numbers[1] or not is_float(x.dtype):
            return None
        names = [_scalar(search.graph, *end) for end in ends if end is not None]
        if len(names) == 1:
            names.insert(0, number(search.graph, 0.0, x.dtype))
        return Clip(), (match.values["x"], *names)

    return build


def _constant_scalar(
    match: Match, label: str, search: Search
) -> tuple[str, Array] | None:
    """Return the name and array of a constant scalar, by its label."""
    name = match.values[label]
    array = search.number(name)
    return None if array is None or array.size != 1 else (name, array)


def _scalar(graph: Graph, name: str, array: Array) -> str:
    """Return the name of a constant reshaped to rank 0."""
    return derive(graph, name, array.reshape(()), ".scalar") if array.ndim else name


_RAISED = either(Call("Clip", X, LOW), Call("Clip", X, LOW, None))

#: ``max(low, min(x, high))`` and similar forms, such as ReLU with an upper bound.
#: If the lower bound exceeds the upper one, the result depends on the order of ``Min``
#: and ``Max``.
clip = FormulaPass(
    "clip",
    "Recovers ``Clip`` from consecutive ``Min``, ``Max`` and ``Relu``.",
    (
        (_min_or_max("Min", Call("Relu", X), HIGH), _build_clip(None)),
        (_min_or_max("Min", _min_or_max("Max", X, LOW), HIGH), _build_clip("low")),
        (_min_or_max("Max", _min_or_max("Min", X, HIGH), LOW), _build_clip("low")),
        (Call("Clip", Call("Relu", X), Number(0), HIGH), _build_clip(None)),
        (Call("Clip", _RAISED, None, HIGH), _build_clip("low")),
    ),
    *("Min", "Max", "Clip"),
)

_SCALED = Call("Mul", X, ALPHA)


def _leaky(match: Match, search: Search) -> Replacement:
    alpha = match.numbers["alpha"]
    return elementwise(LeakyRelu(alpha=alpha))(match, search)


def _leaky_from_max(match: Match, search: Search) -> Replacement:
    """Build LeakyRelu for ``max(x, alpha * x)``, which needs alpha from 0 to 1."""
    return _leaky(match, search) if 0 <= match.numbers["alpha"] <= 1 else None


#: ``where(x > 0, x, alpha * x)``, and with 0 <= ``alpha`` <= 1 ``max(x, alpha * x)``.
#: Zeros may differ by their sign.
leaky_relu = FormulaPass(
    "leaky_relu",
    "Recovers LeakyReLU from its formula.",
    ((_positive(_SCALED), _leaky), (_min_or_max("Max", X, _SCALED), _leaky_from_max)),
    *("Where", "Max"),
)


def _build_prelu(sign: int) -> Build:
    """Return a builder of ``PRelu`` with the match's slope times ``sign``."""

    def build(match: Match, search: Search) -> Replacement:
        name = match.values["slope"]
        x, slope = search.graph.type(match.values["x"]), search.array(name)
        if x is None or x.shape is None or slope is None or not is_float(x.dtype):
            return None
        rank = len(x.shape)
        if slope.dtype != x.dtype or slope.ndim > rank or match.rank > rank:
            return None
        pairs = zip(slope.shape, x.shape[rank - slope.ndim :], strict=True)
        if not all(n in (1, extent) for n, extent in pairs):
            return None
        if sign < 0:
            name = derive(search.graph, name, -slope, ".negative")
        return PRelu(), (match.values["x"], name)

    return build


_MIRRORED = Call("Mul", Call("Relu", Call("Neg", X)), SLOPE)
_LOWER = _min_or_max("Min", X, Number(0))

#: ``relu(x) - slope * relu(-x)`` and ``where(x > 0, x, slope * x)`` of a constant slope
#: that broadcasts to ``x``. Zeros may differ by their sign.
prelu = FormulaPass(
    "prelu",
    "Recovers PReLU from its formula.",
    (
        (Call("Sub", Call("Relu", X), _MIRRORED), _build_prelu(1)),
        (Call("Add", Call("Relu", X), _MIRRORED), _build_prelu(-1)),
        (Call("Add", Call("Relu", X), Call("Mul", _LOWER, SLOPE)), _build_prelu(1)),
        (_positive(Call("Mul", X, SLOPE)), _build_prelu(1)),
    ),
    *("Relu", "Where"),
)


def _exp_minus_one(x: Pattern) -> Pattern:
    """Return the pattern of ``exp(x) - 1``."""
    exponential = Call("Exp", x)
    return either(
        Call("Sub", exponential, Number(1)), Call("Add", exponential, Number(-1))
    )


def _times_alpha(x: Pattern) -> Pattern:
    return Call("Mul", _exp_minus_one(x), ALPHA)


def _elu_pattern(curve: Pattern) -> Pattern:
    """Return the pattern of a curve below 0; a minimum may select it."""
    below = _min_or_max("Min", curve, Number(0))
    return either(_positive(curve), Call("Add", Call("Relu", X), below))


def _build_elu(op: type[Elu] | type[Celu]) -> Build:
    """Return a builder of ``op`` with the match's alpha (default 1), if positive."""

    def build(match: Match, search: Search) -> Replacement:
        alpha = match.numbers.get("alpha", 1.0)
        return elementwise(op(alpha=alpha))(match, search) if alpha > 0 else None

    return build


def _selu(match: Match, search: Search) -> Replacement:
    elu = next(node.op for node in match.nodes if isinstance(node.op, Elu))
    standard, gamma = Selu(), match.numbers["gamma"]
    pairs = ((elu.alpha, standard.alpha), (gamma, standard.gamma))
    # The constants of PyTorch and ONNX differ in their last digits.
    if not all(isclose(own, usual, rel_tol=1e-6) for own, usual in pairs):
        return None
    return elementwise(Selu(alpha=elu.alpha, gamma=gamma))(match, search)


#: ``where(x > 0, x, alpha * (exp(x) - 1))``. With ``x / alpha`` as the exponent it is
#: ``Celu``, with the constants of self-normalizing networks ``Selu``.
elu = FormulaPass(
    "elu",
    "Recovers ELU, and SELU and CELU, from their formulas.",
    (
        (Call("Mul", Call("Elu", X), Scalar("gamma")), _selu),
        (_elu_pattern(_exp_minus_one(X)), _build_elu(Elu)),
        (_elu_pattern(_times_alpha(X)), _build_elu(Elu)),
        (_elu_pattern(_times_alpha(Call("Div", X, ALPHA))), _build_elu(Celu)),
    ),
    *("Exp", "Elu"),
)
