"""Patterns of subgraphs that one operator replaces.

A pattern is matched against a value: it constrains the operators and operands that
produced it. It depends on the computation only, never on names or scopes. Values inside
a match are read by nodes of the match alone, and are no graph outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from burn.dtypes import is_float, is_integer
from burn_import.provenance.trainable import is_learned
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.options import shortest
from burn_ir.types import Array

#: Commutative operators.
COMMUTATIVE = frozenset({"Add", "Mul"})
#: Largest relative error of a constant against the pattern's number: one rounding in
#: float32, the precision of literals in files.
PRECISION = 2.0**-23


@dataclass(frozen=True)
class Match:
    """Values and numbers that a pattern has bound, by label, and the matched nodes."""

    values: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    #: The largest rank of a matched constant: it may broadcast the result.
    rank: int = 0

    def with_value(self, label: str, name: str) -> Match | None:
        """Return the match with a value; None if the label is bound to another."""
        if label in self.values:
            return self if self.values[label] == name else None
        return replace(self, values={**self.values, label: name})

    def with_number(self, label: str, number: float) -> Match | None:
        """Return the match with a number; None if the label is bound to another."""
        if label in self.numbers:
            return self if self.numbers[label] == number else None
        return replace(self, numbers={**self.numbers, label: number})


class Search:
    """A graph, and the queries that patterns make on it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producers = graph.producers
        self.order = {id(node): n for n, node in enumerate(graph.nodes)}
        self.fixed: set[str] = set()
        self.uses = graph.uses
        for node in graph.nodes:
            names = [name for name in node.inputs if name is not None]
            if names and node.op.deterministic and all(map(self.is_fixed, names)):
                self.fixed.update(name for name in node.outputs if name is not None)

    def is_fixed(self, name: str) -> bool:
        """Return whether a value depends on constants alone."""
        return self.array(name) is not None or name in self.fixed

    def array(self, name: str) -> Array | None:
        """Return the array of a constant; None for other values."""
        if name in self.graph.types or name not in self.graph.constants:
            return None
        return self.graph.constants[name]

    def number(self, name: str) -> Array | None:
        """Return the array of a constant that training does not change."""
        return None if is_learned(self.graph, name) else self.array(name)

    def node(self, name: str) -> Node | None:
        """Return the producer of a value, if it is of ONNX's default domain."""
        node = self.producers.get(name)
        return None if node is None or node.op.domain else node

    def is_closed(self, nodes: Iterable[Node], last: Node) -> bool:
        """Return whether only ``nodes`` read their results, those of ``last`` aside."""
        inside: dict[str, int] = {}
        every = {id(node): node for node in nodes}
        for node in every.values():
            for name in node.inputs:
                if name is not None:
                    inside[name] = inside.get(name, 0) + 1
        return all(
            self.uses.get(name, 0) == inside.get(name, 0)
            for node in every.values()
            for name in node.outputs
            if node is not last and name is not None
        )


class Pattern(ABC):
    """Constraint on a value. Patterns are equal if they are the same object."""

    @abstractmethod
    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        """Yield ``match`` extended by every way in which the value matches."""


@dataclass(frozen=True, eq=False)
class Value(Pattern):
    """Any value; equal labels match the same value."""

    label: str

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        new = match.with_value(self.label, name)
        if new is not None:
            yield new


@dataclass(frozen=True, eq=False)
class Stored(Pattern):
    """A value that does not depend on the inputs of the graph."""

    label: str

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        if search.is_fixed(name):
            yield from Value(self.label).match(name, search, match)


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    """A constant scalar equal to ``value`` up to rounding."""

    value: float

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        array = search.number(name)
        if array is not None and stands_for(array, self.value):
            yield replace(match, rank=max(match.rank, array.ndim))


@dataclass(frozen=True, eq=False)
class Scalar(Pattern):
    """Any constant float scalar, bound with the digits of its dtype."""

    label: str

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        array = search.number(name)
        if array is None or array.size != 1 or not is_float(array.dtype):
            return
        item = array.reshape(())[()]
        exact = float(item)
        # The fewest digits that round to this number in float32; a float64 is exact.
        literal_value = exact if array.dtype.itemsize > 4 else shortest(exact)
        new = match.with_number(self.label, literal_value)
        if new is not None:
            yield replace(new, rank=max(match.rank, array.ndim))


@dataclass(frozen=True, eq=False, init=False)
class Call(Pattern):
    """The result of an operator on operands that match ``operands``."""

    op: str
    operands: tuple[Pattern | None, ...]

    def __init__(self, op: str, *operands: Pattern | None) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "operands", operands)

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        node = search.node(name)
        if node is None or node.op.onnx != self.op:
            return
        match = replace(match, nodes=(*match.nodes, node))
        yield from match_all(self.operands, node.inputs, search, match)
        if self.op in COMMUTATIVE:
            yield from match_all(self.operands, node.inputs[::-1], search, match)


@dataclass(frozen=True, eq=False)
class OnOperand(Pattern):
    """The result of a node that :meth:`bind` accepts, whose first operand matches."""

    operand: Pattern

    @abstractmethod
    def bind(self, node: Node, search: Search, match: Match) -> Match | None:
        """Return ``match`` with the bindings of ``node``; None if it is not matched."""

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        node = search.producers.get(name)
        if node is None or not node.inputs or node.inputs[0] is None:
            return
        bound = self.bind(node, search, match)
        if bound is not None:
            bound = replace(bound, nodes=(*bound.nodes, node))
            yield from self.operand.match(node.inputs[0], search, bound)


@dataclass(frozen=True, eq=False)
class Either(Pattern):
    """A value that matches one of several patterns."""

    ways: tuple[Pattern, ...]

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        for way in self.ways:
            yield from way.match(name, search, match)


@dataclass(frozen=True, eq=False)
class Product(Pattern):
    """A product of all ``factors``, in any order and grouping.

    A division by a constant counts as a factor, and a power as repeated factors.
    """

    factors: tuple[Pattern, ...]

    def match(self, name: str, search: Search, match: Match) -> Iterator[Match]:
        if len(self.factors) == 1:
            yield from self.factors[0].match(name, search, match)
            return
        node = search.node(name)
        if node is None:
            return
        match = replace(match, nodes=(*match.nodes, node))
        for operands in self.operands(node.op.onnx):
            yield from match_all(operands, node.inputs, search, match)

    def operands(self, op: str) -> Iterator[tuple[Pattern, ...]]:
        """Return the patterns of an operator's operands if it computes the product."""
        if op == "Mul":
            for left, right in _partitions(self.factors):
                yield Product(left), Product(right)
        elif op == "Div":
            for position, factor in enumerate(self.factors):
                if isinstance(factor, Number):
                    rest = self.factors[:position] + self.factors[position + 1 :]
                    yield Product(rest), Number(1 / factor.value)
        elif op == "Pow" and len(set(self.factors)) == 1:
            yield self.factors[0], Number(len(self.factors))


def either(*ways: Pattern) -> Either:
    """Return the pattern that matches if one of ``ways`` does."""
    return Either(ways)


def product(*factors: Pattern) -> Product:
    """Return the pattern of a product of ``factors``."""
    return Product(factors)


@cache
def _partitions(
    factors: tuple[Pattern, ...],
) -> tuple[tuple[tuple[Pattern, ...], tuple[Pattern, ...]], ...]:
    """Return every partition of ``factors`` into two non-empty groups."""
    every = range(len(factors))
    masks = range(1, 2 ** len(factors) - 1)
    return tuple(
        dict.fromkeys(
            (
                tuple(factors[i] for i in every if mask >> i & 1),
                tuple(factors[i] for i in every if not mask >> i & 1),
            )
            for mask in masks
        )
    )


def match_all(
    patterns: Sequence[Pattern | None],
    names: Sequence[str | None],
    search: Search,
    match: Match,
) -> Iterator[Match]:
    """Yield the matches of each value with its pattern; None is an omitted input."""
    if len(names) != len(patterns):
        return
    if not patterns:
        yield match
        return
    pattern, name = patterns[0], names[0]
    if pattern is not None and name is not None:
        for first in pattern.match(name, search, match):
            yield from match_all(patterns[1:], names[1:], search, first)
    elif pattern is None and name is None:
        yield from match_all(patterns[1:], names[1:], search, match)


def stands_for(array: Array, value: float) -> bool:
    """Return whether a constant is ``value`` rounded to its dtype.

    A float64 may have been written with the digits of float32.
    """
    if array.size != 1:
        return False
    number = float(array.reshape(())[()]) if array.dtype.kind != "O" else None
    if number is None or not (is_float(array.dtype) or is_integer(array.dtype)):
        return False
    if is_integer(array.dtype):
        return number == value
    rounded = float(np.array(value).astype(array.dtype))
    return number == rounded or abs(number - value) <= PRECISION * abs(value)


#: An operator and its operands, None to refuse a match.
Replacement = tuple[Op, tuple[str, ...]] | None
Build = Callable[[Match, Search], Replacement]
Rule = tuple[Pattern, Build]


def fuse(graph: Graph, rules: Sequence[Rule], *marks: str) -> Graph:
    """Return ``graph`` with one node for every match of a rule's pattern.

    The first rule that applies wins, and of overlapping matches the one that ends last.
    The new node takes the position and the scope of the last matched node, or the
    common prefix of the scopes if they differ. Every match has an operator among
    ``marks``; graphs without any of them are returned at once.
    """
    if graph.operators.isdisjoint(marks):
        return graph
    search = Search(graph)
    new: dict[int, Node] = {}
    matched_ids: set[int] = set()
    for node in reversed(graph.nodes):
        if id(node) in matched_ids or node.outputs[0] is None:
            continue
        match = _match_ending_at(node, rules, search, matched_ids)
        if match is not None:
            new[id(node)], used = match
            matched_ids |= used
    if not new:
        return graph
    remaining = [n for n in graph.nodes if id(n) in new or id(n) not in matched_ids]
    return with_nodes(graph, [new.get(id(n), n) for n in remaining])


class FormulaPass:
    """A pass that applies ``fuse``; ``summary`` is a sentence about its rules."""

    def __init__(
        self, name: str, summary: str, rules: Sequence[Rule], *marks: str
    ) -> None:
        self.__name__, self.summary = name, summary
        self.rules, self.marks = rules, marks

    def __call__(self, graph: Graph) -> Graph:
        """Return ``graph`` with an operator for each of its formulas."""
        return fuse(graph, self.rules, *self.marks)


def _match_ending_at(
    node: Node, rules: Sequence[Rule], search: Search, matched_ids: set[int]
) -> tuple[Node, set[int]] | None:
    """Return the replacement of the first match ending at ``node``, and its nodes."""
    for pattern, build in rules:
        for match in pattern.match(node.output, search, Match()):
            used = {id(n) for n in match.nodes}
            if not used.isdisjoint(matched_ids) or not search.is_closed(
                match.nodes, node
            ):
                continue
            built = build(match, search)
            if built is not None:
                parts = sorted(match.nodes, key=lambda n: search.order[id(n)])
                scope, classes = common_scope(*parts)
                op, inputs = built
                fused = replace(
                    node, op=op, inputs=inputs, scope=scope, classes=classes
                )
                return fused, used
    return None


def elementwise(op: Op) -> Build:
    """Return a builder of ``op`` of the float value ``x`` without broadcasting."""

    def build(match: Match, search: Search) -> Replacement:
        name = match.values["x"]
        x = search.graph.type(name)
        if x is None or not is_float(x.dtype):
            return None
        rank = 0 if x.shape is None else len(x.shape)
        return (op, (name,)) if match.rank <= rank else None

    return build
