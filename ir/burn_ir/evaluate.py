"""Interpretation of a graph by the operators' ``lower``, for folding and testing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burn import Tensor, ops
from burn.backend.cpu import HOST
from burn_ir.graph import Graph, Node
from burn_ir.op import Branch, Derivative, Repeat, Rows, Slices
from burn_ir.static import Value

Watch = Callable[[Node, tuple[Value, ...]], None]


def evaluate(
    graph: Graph, inputs: Sequence[Value], watch: Watch | None = None
) -> list[Value]:
    """Return the graph's outputs for ``inputs`` in the order of ``graph.inputs``.

    Inputs that are None or missing at the end get their default, and states their
    initial value. ``watch`` is called with every node and its results, in order.
    """
    values = dict(zip(graph.inputs, inputs, strict=False))
    states = zip(graph.inputs[len(graph.arguments) :], graph.states, strict=True)
    defaults = {**graph.defaults, **dict(states)}

    def read(name: str | None) -> Value:
        if name is None:
            return None
        value = values.get(name)
        stored = defaults.get(name, name)
        if value is None and stored in graph.constants:
            value = Tensor(graph.constants[stored], HOST)
        return value  # None is a valid value of an optional

    for node in graph.nodes:
        results = run_node(node, [read(name) for name in node.inputs])
        if watch is not None:
            watch(node, results)
        for name, result in zip(node.outputs, results, strict=False):
            if name is not None:
                values[name] = result
    return [read(name) for name in graph.outputs]


def run_node(node: Node, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Return the results of one node, evaluating its subgraphs."""
    result = node.op.lower(*operands)
    if isinstance(result, Branch):
        branch = result.then if bool(result.condition) else result.orelse
        return tuple(evaluate(branch, result.operands))
    if isinstance(result, Derivative):
        return differentiate(result)
    if isinstance(result, Repeat):
        return run_loop(result)
    return result if isinstance(result, tuple) else (result,)


def run_loop(loop: Repeat) -> tuple[Value, ...]:
    """Return the final carried values and the collected results of a loop."""
    carried = list(loop.carried)
    pieces: list[list[Value]] = [[] for _ in loop.rows]
    limit = _limit(loop)
    going, number = loop.condition, 0
    while (limit is None or number < limit) and (going is None or bool(going)):
        head = _head(loop.body, number) if loop.counted else []
        sliced = [piece(one, number) for one in loop.slices]
        results = evaluate(loop.body, [*head, *carried, *sliced, *loop.captured])
        if loop.counted:
            going, *results = results
        carried = results[: len(carried)]
        for rows, result in zip(pieces, results[len(carried) :], strict=True):
            rows.append(result)
        number += 1
    joined = [joined_rows(rows, of) for rows, of in zip(pieces, loop.rows, strict=True)]
    return (*carried, *joined)


def differentiate(of: Derivative) -> tuple[Value, ...]:
    """Return the derivatives of a subgraph by its first operands."""

    def function(*values: Value) -> Value:
        return evaluate(of.body, [*values, *of.captured])[0]

    return ops.gradient(function, of.operands[: of.count], of.operands[of.count :])


def _limit(loop: Repeat) -> int | None:
    """Return the maximum number of iterations, or None."""
    if loop.trips is not None:
        return int(loop.trips)
    if not loop.slices:
        return None
    first = loop.slices[0]
    return len(first.value) if first.axis is None else first.value.shape[first.axis]


def _head(body: Graph, number: int) -> list[Value]:
    """Return the iteration number and the condition in the body's declared types."""
    count, going = (body.types[name] for name in body.inputs[:2])
    shape = (1,) * len(count.dims)
    return [
        ops.full(shape, number, dtype=count.dtype),
        ops.full((1,) * len(going.dims), True, dtype=going.dtype),
    ]


def piece(one: Slices, number: Value) -> Value:
    """Return the slice of a value for iteration ``number``."""
    if one.whole:
        return one.value
    index = -1 - number if one.reverse else number
    if one.axis is None:
        return ops.sequence_at(one.value, index)
    return one.value[(*(slice(None),) * one.axis, index)]


def joined_rows(rows: Value, of: Rows, some: bool = False) -> Value:
    """Return the collected results as one value.

    ``some`` is whether at least one iteration is certain.
    """
    if of.axis is None:
        return rows
    if of.reverse:
        rows = ops.sequence_reversed(rows)
    if some:
        return ops.stack(rows, axis=of.axis) if of.axis else ops.stack(rows)
    shape = tuple(d if isinstance(d, int) else 0 for d in of.piece.shape or ())
    return ops.stack_rows(rows, shape, axis=of.axis, dtype=of.piece.dtype)
