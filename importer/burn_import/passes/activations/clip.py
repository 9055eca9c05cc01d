"""Recovers ``Clip`` from bounds that are taken one after the other."""

from __future__ import annotations

from burn.dtypes import is_float
from burn_import.rewriting.arrays import derive, number
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    Pattern,
    Rule,
    Search,
    Value,
    either,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.elementwise import Clip
from burn_ir.types import Array

X, LOW, HIGH = Value("x"), Value("low"), Value("high")


def _extreme(op: str, x: Pattern, bound: Pattern) -> Pattern:
    return either(Call(op, x, bound), Call(op, bound, x))


def _between(low: str | None, high: str | None) -> Build:
    """Build ``Clip`` between the numbers of these labels; without a lower one, 0."""

    def build(match: Match, search: Search) -> tuple[Op, tuple[str, ...]] | None:
        x = search.graph.type(match.values["x"])
        ends = [_number(match, label, search) for label in (low, high) if label]
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


def _number(match: Match, label: str, search: Search) -> tuple[str, Array] | None:
    """A stored number by its label."""
    name = match.values[label]
    array = search.number(name)
    return None if array is None or array.size != 1 else (name, array)


def _scalar(graph: Graph, name: str, array: Array) -> str:
    """The name of a stored number without axes."""
    return derive(graph, name, array.reshape(()), ".scalar") if array.ndim else name


_RAISED = either(Call("Clip", X, LOW), Call("Clip", X, LOW, None))

RULES: tuple[Rule, ...] = (
    (_extreme("Min", Call("Relu", X), HIGH), _between(None, "high")),
    (_extreme("Min", _extreme("Max", X, LOW), HIGH), _between("low", "high")),
    (_extreme("Max", _extreme("Min", X, HIGH), LOW), _between("low", "high")),
    (Call("Clip", Call("Relu", X), Number(0), HIGH), _between(None, "high")),
    (Call("Clip", _RAISED, None, HIGH), _between("low", "high")),
)


def clip(graph: Graph) -> Graph:
    """``graph`` with ``Clip`` for the larger of a number and the smaller of another.

    So too for ReLU that is bounded, as in ReLU6. The lower number must be no larger
    than the upper one: which of them wins is up to the order otherwise.
    """
    return fuse(graph, RULES, "Min", "Max", "Clip")
