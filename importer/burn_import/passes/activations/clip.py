"""Recovers ``Clip`` from consecutive ``Min``, ``Max`` and ``Relu``."""

from __future__ import annotations

from burn.dtypes import is_float
from burn_import.rewriting.arrays import derive, number
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    Pattern,
    Replacement,
    Rule,
    Search,
    Value,
    either,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.ops.elementwise import Clip
from burn_ir.types import Array

X, LOW, HIGH = Value("x"), Value("low"), Value("high")


def _min_or_max(op: str, x: Pattern, bound: Pattern) -> Pattern:
    return either(Call(op, x, bound), Call(op, bound, x))


def _build_clip(low: str | None, high: str | None) -> Build:
    """Build ``Clip`` between the constants of two labels; no lower label means 0."""

    def build(match: Match, search: Search) -> Replacement:
        x = search.graph.type(match.values["x"])
        ends = [
            _constant_scalar(match, label, search) for label in (low, high) if label
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

RULES: tuple[Rule, ...] = (
    (_min_or_max("Min", Call("Relu", X), HIGH), _build_clip(None, "high")),
    (_min_or_max("Min", _min_or_max("Max", X, LOW), HIGH), _build_clip("low", "high")),
    (_min_or_max("Max", _min_or_max("Min", X, HIGH), LOW), _build_clip("low", "high")),
    (Call("Clip", Call("Relu", X), Number(0), HIGH), _build_clip(None, "high")),
    (Call("Clip", _RAISED, None, HIGH), _build_clip("low", "high")),
)


def clip(graph: Graph) -> Graph:
    """Return ``graph`` with ``Clip`` for ``max(low, min(x, high))`` and similar forms.

    ReLU with an upper bound (ReLU6) is matched too. The lower bound must not exceed the
    upper one: otherwise the result depends on the order of ``Min`` and ``Max``.
    """
    return fuse(graph, RULES, "Min", "Max", "Clip")
