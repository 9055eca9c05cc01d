"""Tracing of subgraphs: branches, loop bodies, functions to differentiate."""

from collections import ChainMap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

from burn import Tensor, ops
from burn.dtypes import bool_
from burn.primitive import recording
from burn_import.tracing.trace import (
    Block,
    Choice,
    Derivation,
    Repetition,
    Symbol,
    Tracer,
)
from burn_ir.containers import sequence_of
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.evaluate import joined_rows, piece
from burn_ir.graph import Graph, Node
from burn_ir.op import Branch, Derivative, Repeat
from burn_ir.types import Type


class BodyTracer(Protocol):
    """The interface of a function's tracer (``function.Run``) for subgraphs."""

    tracer: Tracer
    values: ChainMap[str, Any]
    extents: dict[Dim, None]
    loops: int

    def inside(self) -> AbstractContextManager[None]:
        """Enter a subgraph, whose values and dimensions are forgotten on exit."""

    def targets(self, node: Node, graph: Graph) -> list[Symbol]:
        """Return a symbol for each result of a node."""

    def define(self, name: str, graph: Graph) -> Tensor:
        """Return a symbol for a value that a statement or caller provides."""

    def note(self, value_type: Type | None) -> None:
        """Record the dimensions of a type."""

    def name(self, name: str, value: Tensor, graph: Graph) -> None:
        """Assign a result the name and type of the graph's value."""

    def node(self, node: Node, graph: Graph) -> None:
        """Trace one node."""

    def read(self, name: str | None, graph: Graph) -> Any:
        """Return the tensor of a value."""


def trace_choice(run: BodyTracer, branch: Branch, node: Node, graph: Graph) -> None:
    blocks = []
    for body in (branch.then, branch.orelse):
        with run.inside():
            run.values.update(zip(body.inputs, branch.operands, strict=True))
            blocks.append(_body(run, body))
    targets = run.targets(node, graph)
    run.tracer.append(Choice(branch.condition, blocks[0], blocks[1], targets))


def trace_repeat(run: BodyTracer, loop: Repeat, node: Node, graph: Graph) -> None:
    """Trace a loop, and the concatenation of its collected results."""
    with run.inside():
        counter, state, items, block = _rounds(run, loop)
    count = len(loop.carried)
    carried = [
        Symbol() if name is None else run.define(name, graph).data
        for name in node.outputs[:count]
    ]
    carried += [Symbol() for _ in range(count - len(carried))]
    lists = [
        Symbol(sequence_of(rows.piece), name or "")
        for rows, name in zip_longest(loop.rows, node.outputs[count:])
    ]
    check, initial = "", list(loop.carried)
    if loop.counted:
        check = _condition_position(run, loop, block, state, initial, carried)
    trips = None if items else _trip_count(run, loop)
    targets = carried + lists
    run.tracer.append(
        Repetition(trips, counter, initial, state, block, check, targets, items)
    )
    some = not check and _positive(_trip_count(run, loop) if loop.slices else trips)
    for name, rows, rows_list in zip(
        node.outputs[count:], loop.rows, lists, strict=False
    ):
        if name is not None:
            with recording(run.tracer):
                joined = joined_rows(Tensor(rows_list, run.tracer), rows, some)
            run.name(name, joined, graph)


def _rounds(
    run: BodyTracer, loop: Repeat
) -> tuple[Poly, list[Symbol], list[tuple[Symbol, Any]], Block]:
    """Return the loop counter, the carried values, the items and the traced body."""
    run.loops += 1
    body, names = loop.body, list(loop.body.inputs)
    block = Block()
    run.tracer.blocks.append(block)
    if loop.counted:
        counter = _define_counter(run, body, names)
        del names[:2]
    else:
        counter = symbol(f"?round{run.loops}")
    run.extents[counter] = None
    state = [run.define(name, body).data for name in names[: len(loop.carried)]]
    del names[: len(loop.carried)]
    items = _define_slices(run, loop, names, counter)
    captured = names[len(loop.slices) :]
    run.values.update(zip(captured, loop.captured, strict=True))
    _trace_nodes(run, block, body)
    return counter, state, items, block


def _define_slices(
    run: BodyTracer, loop: Repeat, names: Sequence[str], counter: Poly
) -> list[tuple[Symbol, Any]]:
    """Define a loop body's slices of the sliced values.

    Returns the items if ``for`` can iterate over all of the values itself.
    """
    sliced = [one for one in loop.slices if not one.whole]
    plain = not any(one.axis or one.reverse for one in sliced)
    items = []
    for one, name in zip(loop.slices, names, strict=False):
        if one.whole:
            run.values[name] = one.value
        elif plain:
            items.append((run.define(name, loop.body).data, one.value))
        else:
            with recording(run.tracer):
                element = piece(one, counter)
            run.values[name] = element
            element.data.type, element.data.name = loop.body.types[name].forget(), name
            run.note(element.data.type)
    return items


def _define_counter(run: BodyTracer, body: Graph, names: Sequence[str]) -> Poly:
    """Define the iteration number and a true condition; return the counter."""
    number, going = (body.types[name] for name in names[:2])
    assert number.known is not None
    certain = going.with_known(np.full([1] * len(going.dims), True))
    run.values[names[0]] = run.tracer.symbol(number, names[0])
    run.values[names[1]] = run.tracer.symbol(certain, names[1])
    counter: Poly = number.known.reshape(-1)[0]
    return counter


def trace_derivation(run: BodyTracer, of: Derivative, node: Node, graph: Graph) -> None:
    """Trace the differentiated function, and append its gradient."""
    block = Block()
    run.tracer.blocks.append(block)
    names = of.body.inputs
    with run.inside():
        state = [run.define(n, of.body).data for n in names[: len(of.operands)]]
        run.values.update(zip(names[len(state) :], of.captured, strict=True))
        _trace_nodes(run, block, of.body)
    targets = run.targets(node, graph)
    targets += [Symbol() for _ in range(of.count - len(targets))]
    args = list(of.operands)
    run.tracer.append(Derivation(of.name, args, state, block, targets))


def _condition_position(
    run: BodyTracer,
    loop: Repeat,
    block: Block,
    state: list[Symbol],
    initial: list[Any],
    carried: list[Symbol],
) -> str:
    """Return when the loop condition is checked; update the arguments for it."""
    following = block.results.pop(0)
    first = loop.condition
    sure = first is None or _is_true(first)
    if sure and _is_true(following):
        return ""
    if sure:
        block.results.append(following)
        return "after"
    initial.insert(0, first)
    state.insert(0, Symbol(Type(bool_, ())))
    carried.insert(0, Symbol())
    if _is_true(following):  # a constant condition decides about all iterations
        following = Tensor(state[0], run.tracer)
    block.results.insert(0, following)
    return "before"


def _trip_count(run: BodyTracer, loop: Repeat) -> Any:
    """Return the iteration count as a source operand."""
    if loop.trips is not None or not loop.slices:
        contents = None if loop.trips is None else loop.trips.data.known
        return loop.trips if contents is None else contents.reshape(-1).tolist()[0]
    first = next(one for one in loop.slices if not one.whole)
    with recording(run.tracer):
        if first.axis is None:
            return ops.sequence_length(first.value)
        if first.value.data.type.shape is None:
            return ops.shape(first.value)[first.axis]
    return first.value.shape[first.axis]


def _body(run: BodyTracer, body: Graph) -> Block:
    block = Block()
    run.tracer.blocks.append(block)
    _trace_nodes(run, block, body)
    return block


def _trace_nodes(run: BodyTracer, block: Block, body: Graph) -> None:
    """Trace the nodes of a subgraph into the open ``block``, and close it."""
    for node in body.nodes:
        run.node(node, body)
    block.results = [run.read(name, body) for name in body.outputs]
    run.tracer.blocks.pop()


def _is_true(condition: Any) -> bool:
    contents = condition.data.known
    return contents is not None and bool(contents.all())


def _positive(trips: Any) -> bool:
    return isinstance(trips, int) and trips > 0
