"""Recovers softmax, its logarithm, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from burn.dtypes import is_float
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Found,
    Pattern,
    Rule,
    Search,
    Value,
    either,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import LogSoftmax, Softmax
from burn_ir.ops.reduction import ReduceLogSumExp
from burn_ir.ops.support import known_ints

X = Value("x")


@dataclass(frozen=True, eq=False)
class Along(Pattern):
    """A reduction of one axis, which is kept; counted from the end it is ``axis``."""

    op: str
    operand: Pattern

    def match(self, name: str, search: Search, found: Found) -> Iterator[Found]:
        node = search.node(name)
        if node is None or node.op.onnx != self.op or len(node.inputs) < 2:
            return
        x = search.graph.type(node.inputs[0])
        axes = known_ints(search.graph.type(node.inputs[1]))
        kept = node.op.attrs()["keepdims"]
        if x is None or not x.shape or not kept or axes is None or len(axes) != 1:
            return
        new = found.with_number("axis", axes[0] % len(x.shape) - len(x.shape))
        if new is not None and node.inputs[0] is not None:
            new = replace(new, nodes=(*new.nodes, node))
            yield from self.operand.match(node.inputs[0], search, new)


@dataclass(frozen=True, eq=False)
class SoftmaxOf(Pattern):
    """The softmax of one axis of a value."""

    operand: Pattern

    def match(self, name: str, search: Search, found: Found) -> Iterator[Found]:
        node = search.node(name)
        if node is None or not isinstance(node.op, Softmax) or not node.inputs[0]:
            return
        x, axis = search.graph.type(node.inputs[0]), node.op.axis
        if x is None or not x.shape or not isinstance(axis, int):
            return
        new = found.with_number("axis", axis % len(x.shape) - len(x.shape))
        if new is not None:
            new = replace(new, nodes=(*new.nodes, node))
            yield from self.operand.match(node.inputs[0], search, new)


_TOP = Along("ReduceMax", X)
_BELOW = Call("Sub", X, _TOP)


def _parts(shifted: Pattern) -> Pattern:
    """Each exponential divided by the sum of all."""
    each = Call("Exp", shifted)
    total = Along("ReduceSum", each)
    return either(Call("Div", each, total), product(each, Call("Reciprocal", total)))


def _log_sum(shifted: Pattern) -> Pattern:
    return Call("Log", Along("ReduceSum", Call("Exp", shifted)))


def _of(op: type[Softmax] | type[LogSoftmax]) -> Build:
    def build(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
        if not _is_float(found, search):
            return None
        return op(axis=int(found.numbers["axis"])), (found.values["x"],)

    return build


def _is_float(found: Found, search: Search) -> bool:
    x = search.graph.type(found.values["x"])
    return x is not None and is_float(x.dtype)


def _total(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    if not _is_float(found, search):
        return None
    axes = integers(search.graph, [int(found.numbers["axis"])])
    return ReduceLogSumExp(keepdims=1), (found.values["x"], axes)


RULES: tuple[Rule, ...] = (
    (either(_parts(_BELOW), _parts(X)), _of(Softmax)),
    (Call("Log", SoftmaxOf(X)), _of(LogSoftmax)),
    (Call("Sub", _BELOW, _log_sum(_BELOW)), _of(LogSoftmax)),
    (Call("Sub", X, _log_sum(X)), _of(LogSoftmax)),
    (Call("Sub", X, Along("ReduceLogSumExp", X)), _of(LogSoftmax)),
    (either(Call("Add", _log_sum(_BELOW), _TOP), _log_sum(X)), _total),
)


def softmax(graph: Graph) -> Graph:
    """``graph`` with ``Softmax`` for ``exp(x) / sum(exp(x))`` along one axis.

    So too ``LogSoftmax`` for its logarithm and ``ReduceLogSumExp`` for the logarithm of
    the sum. The largest element may be taken off before the exponential; where it is
    not, results are finite that were not. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Exp", "Softmax", "ReduceLogSumExp")
