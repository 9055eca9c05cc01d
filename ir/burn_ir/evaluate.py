"""Running a graph by its operators' ``lower``: for folding, and as the oracle."""

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
    """The graph's outputs for ``inputs`` in the order of ``graph.inputs``.

    A default stands in for an input that is None or missing at the end, and what a
    state is before the first call for the state. ``watch`` sees every node with its
    results, in order.
    """
    values = dict(zip(graph.inputs, inputs, strict=False))
    states = zip(graph.inputs[len(graph.given) :], graph.states, strict=True)
    defaults = {**graph.defaults, **dict(states)}

    def read(name: str | None) -> Value:
        if name is None:
            return None
        value = values.get(name)
        stored = defaults.get(name, name)
        if value is None and stored in graph.constants:
            value = Tensor(graph.constants[stored], HOST)
        return value  # None is a value, too: that of an optional

    for node in graph.nodes:
        results = run_node(node, [read(name) for name in node.inputs])
        if watch is not None:
            watch(node, results)
        for name, result in zip(node.outputs, results, strict=False):
            if name is not None:
                values[name] = result
    return [read(name) for name in graph.outputs]


def run_node(node: Node, operands: Sequence[Value]) -> tuple[Value, ...]:
    """The results of one node; bodies are run."""
    result = node.op.lower(*operands)
    if isinstance(result, Branch):
        taken = result.then if bool(result.condition) else result.orelse
        return tuple(evaluate(taken, result.operands))
    if isinstance(result, Derivative):
        return differentiated(result)
    if isinstance(result, Repeat):
        return repeated(result)
    return result if isinstance(result, tuple) else (result,)


def repeated(loop: Repeat) -> tuple[Value, ...]:
    """What is carried after the last round, and what the rounds' pieces make."""
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


def differentiated(of: Derivative) -> tuple[Value, ...]:
    """The derivatives of a body by its first operands."""

    def function(*values: Value) -> Value:
        return evaluate(of.body, [*values, *of.captured])[0]

    return ops.gradient(function, of.operands[: of.count], of.operands[of.count :])


def _limit(loop: Repeat) -> int | None:
    """How many rounds there are at most."""
    if loop.trips is not None:
        return int(loop.trips)
    if not loop.slices:
        return None
    first = loop.slices[0]
    return len(first.value) if first.axis is None else first.value.shape[first.axis]


def _head(body: Graph, number: int) -> list[Value]:
    """The round's number, and whether to go on, as the body declares them."""
    count, going = (body.types[name] for name in body.inputs[:2])
    shape = (1,) * len(count.dims)
    return [
        ops.full(shape, number, dtype=count.dtype),
        ops.full((1,) * len(going.dims), True, dtype=going.dtype),
    ]


def piece(one: Slices, number: Value) -> Value:
    """What a round gets of a value that is taken apart."""
    if one.whole:
        return one.value
    index = -1 - number if one.reverse else number
    if one.axis is None:
        return ops.sequence_at(one.value, index)
    return one.value[(*(slice(None),) * one.axis, index)]


def joined_rows(rows: Value, of: Rows, some: bool = False) -> Value:
    """What the pieces of all rounds make; ``some`` if there was a round for sure."""
    if of.axis is None:
        return rows
    if of.reverse:
        rows = ops.sequence_reversed(rows)
    if some:
        return ops.stack(rows, axis=of.axis) if of.axis else ops.stack(rows)
    shape = tuple(d if isinstance(d, int) else 0 for d in of.piece.shape or ())
    return ops.stack_rows(rows, shape, axis=of.axis, dtype=of.piece.dtype)
