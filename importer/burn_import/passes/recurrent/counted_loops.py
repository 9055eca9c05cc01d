"""Turns while loops that count into loops with a trip count.

TensorFlow writes ``tf.while_loop`` and the layers built on it as a ``Loop`` without a
trip count: a carried counter is compared with a bound after each iteration, and every
weight is carried although no iteration changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from burn.dtypes import int64
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import rename, value_names
from burn_ir.graph import Graph, Node
from burn_ir.ops.cast import Cast
from burn_ir.ops.control import ENDLESS, Loop
from burn_ir.ops.support import ELEMENT_TYPES

#: ONNX's code of the dtype of trip counts.
INT64 = next(code for code, dtype in ELEMENT_TYPES.items() if dtype == int64)


def counted_loops(graph: Graph) -> Graph:
    """Return ``graph`` with loops that carry only what changes, and count iterations.

    A carried value that no iteration changes becomes a captured one. A loop that runs
    while ``counter < bound``, with a counter that starts at 0 and grows by 1, has
    ``bound`` as its trip count; the counter is then the number of the iteration.
    """
    if not any(isinstance(node.op, Loop) for node in graph.nodes):
        return graph
    flow, aliases = Dataflow(graph), dict[str, str]()
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node.op, Loop):
            node = _with_captures(node, flow, aliases)
            nodes += _counted(node, flow)
        else:
            nodes.append(node)
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=False)):
        return graph
    return rename(graph.with_nodes(nodes), aliases)


@dataclass(frozen=True)
class _Parts:
    """A ``Loop`` with its carried values."""

    node: Node

    @cached_property
    def body(self) -> Graph:
        assert isinstance(self.node.op, Loop)
        return self.node.op.body

    @property
    def count(self) -> int:
        """The number of carried values."""
        assert isinstance(self.node.op, Loop)
        return self.node.op.operands - 2

    def constant(self) -> Iterator[int]:
        """Yield the carried values that each iteration passes on unchanged."""
        for j in range(self.count):
            same = self.body.inputs[2 + j] == self.body.outputs[1 + j]
            if same and self.node.inputs[2 + j] is not None:
                yield j

    def without(self, dropped: set[int], body: Graph) -> Node:
        """Return the loop without some carried values, whose body is ``body``."""
        kept = [j for j in range(self.count) if j not in dropped]
        inputs, outputs = self.node.inputs, self.node.outputs
        inside = (*body.inputs[:2], *(body.inputs[2 + j] for j in kept))
        results = (body.outputs[0], *(body.outputs[1 + j] for j in kept))
        op = self.node.op.with_attrs(
            body=replace(
                body,
                inputs=(*inside, *body.inputs[2 + self.count :]),
                outputs=(*results, *body.outputs[1 + self.count :]),
            ),
            operands=2 + len(kept),
        )
        first = (*inputs[:2], *(inputs[2 + j] for j in kept))
        return replace(
            self.node,
            op=op,
            inputs=(*first, *inputs[2 + self.count :]),
            outputs=(*(outputs[j] for j in kept), *outputs[self.count :]),
        )


def _with_captures(node: Node, flow: Dataflow, aliases: dict[str, str]) -> Node:
    """Return a loop that captures what no iteration changes.

    ``aliases`` receives the operands for the results that are equal to them.
    """
    loop = _Parts(node)
    moved = {j for j in loop.constant() if (node.outputs[j] or "") not in flow.outputs}
    if not moved:
        return node
    new = dict[str, str]()
    for j in sorted(moved):
        operand, result = node.inputs[2 + j], node.outputs[j]
        assert operand is not None
        new[loop.body.inputs[2 + j]] = operand
        if result is not None:
            aliases[result] = operand
    values = value_names(flow.graph)
    own = [name for name in node.inputs[2 + loop.count :] if name is not None]
    more = dict.fromkeys(n for n in new.values() if n in values and n not in own)
    node = loop.without(moved, loop.body)
    assert isinstance(node.op, Loop)
    body = node.op.body
    outer = {name: flow.graph.types[name] for name in more}
    closed = replace(body, inputs=(*body.inputs, *more), types={**body.types, **outer})
    op = node.op.with_attrs(body=rename(closed, new))
    return replace(node, op=op, inputs=(*node.inputs, *more))


def _counted(node: Node, flow: Dataflow) -> list[Node]:
    """Return a loop with its trip count, after the node that computes the count."""
    loop = _Parts(node)
    counter = _Counter.of(loop, flow)
    if counter is None:
        return [node]
    before: list[Node] = []
    trips = counter.bound
    bound_type = flow.graph.type(trips)
    if bound_type is not None and bound_type.dtype != int64:
        trips = flow.fresh(f"{trips}_trips")
        cast = node.with_op(Cast(to=INT64), (counter.bound,))
        before = [replace(cast, outputs=(trips,))]
    node = counter.without_comparison(flow)
    return [*before, replace(node, inputs=(trips, None, *node.inputs[2:]))]


@dataclass(frozen=True)
class _Counter:
    """The carried value ``index`` of a loop that runs while it is below ``bound``."""

    loop: _Parts
    index: int
    bound: str

    @classmethod
    def of(cls, loop: _Parts, flow: Dataflow) -> _Counter | None:
        """Return the counter of ``loop``; None if it ends by another condition."""
        body = Dataflow(loop.body)
        sides = _comparisons(body, loop.body.outputs[0])
        index, bounds = None, set[str]()
        for total, bound in sides:
            if bound not in flow.graph.types and bound not in flow.graph.constants:
                return None  # computed in each iteration
            bounds.add(_before_casts(flow, bound))
            if total == loop.body.inputs[0]:
                continue  # the number of the iteration is below the bound
            index = _index(loop, body, total)
            if index is None:
                return None
        if index is None:
            return None
        counter = cls(loop, index, min(bounds))
        trips = loop.node.inputs[0]
        if not _is_endless(flow, trips):
            bounds.add(_before_casts(flow, str(trips)))
        are_same = all(_are_same(flow, counter.bound, other) for other in bounds)
        return counter if are_same and counter._is_exact(flow) else None

    def _is_exact(self, flow: Dataflow) -> bool:
        """Return whether the loop runs ``bound`` times, also if that is 0."""
        node, graph = self.loop.node, flow.graph
        start, bound = node.inputs[2 + self.index], graph.type(self.bound)
        if bound is None or bound.shape != ():
            return False
        if bound.dtype.kind not in "iu" or not _is_number(graph, start, 0):
            return False
        if node.inputs[1] is None:
            return False
        known = graph.type(node.inputs[1])
        if known is not None and known.known is not None:
            first = _number(graph, self.bound)
            return bool(known.known.all()) and isinstance(first, int) and first > 0
        sides = _comparisons(flow, node.inputs[1])
        return bool(sides) and all(
            _is_number(graph, number, 0) and _are_same(flow, other, self.bound)
            for number, other in sides
        )

    def without_comparison(self, flow: Dataflow) -> Node:
        """Return the loop without its condition, and without a counter if possible."""
        loop, j = self.loop, self.index
        body = loop.body
        counter, number = body.inputs[2 + j], body.inputs[0]
        dtype = body.types[counter].dtype
        is_read = loop.node.outputs[j] is not None and (
            loop.node.outputs[j] in flow.users or loop.node.outputs[j] in flow.outputs
        )
        outputs = (body.inputs[1], *body.outputs[1:])
        if is_read or dtype.kind not in "iu" or body.types[number].shape != ():
            op = loop.node.op.with_attrs(body=replace(body, outputs=outputs))
            return replace(loop.node, op=op)
        code = next(n for n, d in ELEMENT_TYPES.items() if d == dtype)
        cast = Node(Cast(to=code), (number,), (counter,), "", *_scope(body))
        body = replace(body, outputs=outputs, nodes=(cast, *body.nodes))
        return loop.without({j}, body)


def _scope(body: Graph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first = body.nodes[0]
    return first.scope, first.classes


def _index(loop: _Parts, body: Dataflow, total: str) -> int | None:
    """Return which carried value becomes ``total``, if that is the value plus 1."""
    for j in range(loop.count):
        is_result = loop.body.outputs[1 + j] == total
        if is_result and _is_next(body, total, loop.body.inputs[2 + j]):
            return j
    return None


def _comparisons(flow: Dataflow, condition: str | None) -> list[tuple[str, str]]:
    """Return the smaller and the larger operands of ``a < b and d > c``.

    Conversions of the operands are left out; [] for another condition.
    """
    node = flow.made_by(condition, "And", "Greater", "Less")
    if node is None:
        return []
    a, b = map(str, node.inputs)
    if node.op.onnx == "And":
        first, second = _comparisons(flow, a), _comparisons(flow, b)
        return [*first, *second] if first and second else []
    pair = (a, b) if node.op.onnx == "Less" else (b, a)
    return [(_before_casts(flow, pair[0]), _before_casts(flow, pair[1]))]


def _are_same(flow: Dataflow, a: str, b: str) -> bool:
    """Return whether two values are one, or the same number."""
    if a == b:
        return True
    number = _number(flow.graph, a)
    return number is not None and number == _number(flow.graph, b)


def _before_casts(flow: Dataflow, name: str) -> str:
    """Return the value that ``name`` is a conversion of.

    Counters of TensorFlow are compared as float32, which is exact below 2**24.
    """
    while node := flow.made_by(name, "Cast"):
        operand = flow.graph.type(node.inputs[0])
        if operand is None or operand.dtype.kind not in "iuf":
            break
        name = str(node.inputs[0])
    return name


def _is_next(body: Dataflow, total: str, counter: str) -> bool:
    """Return whether ``total`` is ``counter + 1``."""
    node = body.made_by(total, "Add")
    if node is None or counter not in node.inputs:
        return False
    a, b = node.inputs
    return _is_number(body.graph, b if a == counter else a, 1)


def _is_endless(flow: Dataflow, trips: str | None) -> bool:
    number = None if trips is None else _number(flow.graph, trips)
    return trips is None or isinstance(number, int) and number >= ENDLESS


def _is_number(graph: Graph, name: str | None, number: int) -> bool:
    return name is not None and _number(graph, name) == number


def _number(graph: Graph, name: str) -> Any:
    """Return the number that a value is known to be; None if it is unknown."""
    t = graph.type(name)
    if t is None or t.dtype.kind not in "iuf":
        return None
    array = graph.constants[name] if name not in graph.types else t.known
    return (
        array.reshape(-1).tolist()[0] if array is not None and array.size == 1 else None
    )
