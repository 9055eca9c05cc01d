"""Recovers Softmax, LogSoftmax and ReduceLogSumExp from their formulas."""

from dataclasses import dataclass

from burn.dtypes import is_float
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.pattern import (
    Build,
    Call,
    FormulaPass,
    Match,
    OnOperand,
    Pattern,
    Replacement,
    Search,
    Value,
    either,
    product,
)
from burn_ir.graph import Node
from burn_ir.ops.activation import LogSoftmax, Softmax
from burn_ir.ops.reduction import ReduceLogSumExp
from burn_ir.ops.support import known_ints

X = Value("x")


@dataclass(frozen=True, eq=False)
class AxisReduction(OnOperand):
    """A reduction along one axis with ``keepdims``; binds the negative ``axis``."""

    op: str

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        if node.op.domain or node.op.onnx != self.op or len(node.inputs) < 2:
            return None
        x = search.graph.type(node.inputs[0])
        axes = known_ints(search.graph.type(node.inputs[1]))
        keeps_axis = node.op.attrs()["keepdims"]
        if x is None or not x.shape or not keeps_axis or axes is None or len(axes) != 1:
            return None
        return match.with_number("axis", axes[0] % len(x.shape) - len(x.shape))


@dataclass(frozen=True, eq=False)
class SoftmaxOf(OnOperand):
    """The softmax of a value along one axis."""

    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        if not isinstance(node.op, Softmax):
            return None
        x, axis = search.graph.type(node.inputs[0]), node.op.axis
        if x is None or not x.shape or not isinstance(axis, int):
            return None
        return match.with_number("axis", axis % len(x.shape) - len(x.shape))


_TOP = AxisReduction(X, "ReduceMax")
_BELOW = Call("Sub", X, _TOP)


def _quotient(shifted: Pattern) -> Pattern:
    """Return the pattern of ``exp(shifted) / sum(exp(shifted))``."""
    each = Call("Exp", shifted)
    total = AxisReduction(each, "ReduceSum")
    return either(Call("Div", each, total), product(each, Call("Reciprocal", total)))


def _log_sum(shifted: Pattern) -> Pattern:
    return Call("Log", AxisReduction(Call("Exp", shifted), "ReduceSum"))


def _builder(op: type[Softmax] | type[LogSoftmax]) -> Build:
    def build(match: Match, search: Search) -> Replacement:
        if not _is_float(match, search):
            return None
        return op(axis=int(match.numbers["axis"])), (match.values["x"],)

    return build


def _is_float(match: Match, search: Search) -> bool:
    x = search.graph.type(match.values["x"])
    return x is not None and is_float(x.dtype)


def _total(match: Match, search: Search) -> Replacement:
    if not _is_float(match, search):
        return None
    axes = integers(search.graph, [int(match.numbers["axis"])])
    return ReduceLogSumExp(keepdims=1), (match.values["x"], axes)


#: ``exp(x) / sum(exp(x))`` along one axis, its logarithm and that of the sum. If no
#: maximum is subtracted before the exponential, results that overflowed become finite.
softmax = FormulaPass(
    "softmax",
    "Recovers Softmax, LogSoftmax and ReduceLogSumExp from their formulas.",
    (
        (either(_quotient(_BELOW), _quotient(X)), _builder(Softmax)),
        (Call("Log", SoftmaxOf(X)), _builder(LogSoftmax)),
        (Call("Sub", _BELOW, _log_sum(_BELOW)), _builder(LogSoftmax)),
        (Call("Sub", X, _log_sum(X)), _builder(LogSoftmax)),
        (Call("Sub", X, AxisReduction(X, "ReduceLogSumExp")), _builder(LogSoftmax)),
        (either(Call("Add", _log_sum(_BELOW), _TOP), _log_sum(X)), _total),
    ),
    *("Exp", "Softmax", "ReduceLogSumExp"),
)
