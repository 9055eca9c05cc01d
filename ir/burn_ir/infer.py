"""Type inference for all values of a graph from its input types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import prod
from typing import Any

import numpy as np

from burn import Tensor
from burn.dtypes import bool_, is_integer
from burn_ir.containers import kind_of, widen
from burn_ir.dim import Dim, counting_unnamed
from burn_ir.error_context import OR_MISSING, error_context
from burn_ir.errors import InvalidOperand, Problem, Undecided
from burn_ir.graph import Graph
from burn_ir.op import Flow, Op
from burn_ir.signature import check_operands
from burn_ir.static import SHAPES, normalize
from burn_ir.types import Array, Type

#: Maximum elements of integer values whose contents are tracked.
KNOWN_LIMIT = 1024
#: Maximum results of one node: each of them is a name in the source.
MOST_RESULTS = 4096


def infer(graph: Graph) -> Graph:
    """Return ``graph`` with the types of all values recomputed from its inputs."""
    with counting_unnamed():
        return _infer(graph, {name: graph.types[name] for name in graph.inputs})


def _infer(graph: Graph, inputs: dict[str, Type]) -> Graph:
    types = dict(inputs)
    nodes = []
    for node in graph.nodes:
        operands = [
            None if name is None else types.get(name) or Type.of(graph.constants[name])
            for name in node.inputs
        ]
        with error_context(node, graph.opsets):
            op = bind_bodies(node.op, operands)
            results = infer_op(op, operands)
        nodes.append(node if op is node.op else replace(node, op=op))
        for name, result in zip(node.outputs, results, strict=False):
            if name is not None:
                types[name] = result
    return replace(graph, nodes=tuple(nodes), types=types)


def bind_bodies(op: Op, operands: Sequence[Type | None]) -> Op:
    """Return ``op`` with the types in its subgraphs recomputed from its operands."""
    bodies = op.bodies()
    if not bodies:
        return op
    own = operands[: getattr(op, "operands", len(operands))]
    bound = {}
    for name, graph in bodies.items():
        declared = [graph.types[value] for value in graph.inputs]
        flow = op.flow(op.attrs(), own, declared)
        captured = operands[len(operands) - (len(declared) - len(flow.types)) :]

        def run(
            types: Sequence[Type], graph: Graph = graph, rest: Any = captured
        ) -> Graph:
            return _infer(graph, dict(zip(graph.inputs, (*types, *rest), strict=True)))

        bound[name] = fixed_point(flow, run)
    return op.with_attrs(**bound)


#: After this many iterations, a type that still changes gets an unknown rank.
ROUNDS = 8


def fixed_point(flow: Flow, run: Callable[[Sequence[Type]], Graph]) -> Graph:
    """Return the subgraph with types that are a fixed point of its loop.

    ``run`` types the subgraph for given types of its own inputs.

    Raises:
        InvalidOperand: a carried value changes its dtype or kind.
    """
    types = list(flow.types)
    for attempt in count():
        graph = run(types)
        before = list(types)
        for result, position in flow.back.items():
            result_type = graph.type(graph.outputs[result])
            assert result_type is not None
            wider = widen(types[position], result_type)
            if wider is not types[position] and attempt >= ROUNDS:
                wider = types[position].with_shape(None)
            types[position] = wider
        if all(new is old for new, old in zip(types, before, strict=True)):
            return graph
    raise AssertionError("types only grow wider")


def infer_op(op: Op, operands: Sequence[Type | None]) -> tuple[Type, ...]:
    """Return the types of the results, with contents from shape arithmetic.

    Raises:
        InvalidOperand: the operands do not fit, or there are too many results.
    """
    check_operands(op, operands)
    try:
        result = op.infer(*operands)
    except Undecided:
        # If an operand has an unknown rank, so has the result.
        dtype = next((t.dtype for t in operands if t is not None), None)
        if dtype is None:
            raise InvalidOperand("expected an operand, got none") from None
        return (Type(dtype, None),) * max(1, getattr(op, "results", 1))
    results = result if isinstance(result, tuple) else (result,)
    if len(results) > MOST_RESULTS:
        raise InvalidOperand(
            f"expected at most {MOST_RESULTS} results of a node, got {len(results)}"
        )
    if not _can_fold(op, operands, results):
        return results
    return _with_contents(op, operands, results)


def _can_fold(op: Op, operands: Sequence[Type | None], results: Sequence[Type]) -> bool:
    has_contents = False
    for t in operands:  # checked first, as few operands are constants
        if t is not None and (t.known is None or t.known.size > KNOWN_LIMIT):
            return False
        has_contents = has_contents or t is not None
    if (
        not has_contents
        or not op.deterministic
        or any(r.known is not None for r in results)
    ):
        return False
    return all(_small_integers(result) for result in results)


def _small_integers(result: Type) -> bool:
    """Return whether a result is small and of integers or bools."""
    if result.dtype != bool_ and not is_integer(result.dtype):
        return False
    fixed = [d for d in result.shape or () if isinstance(d, int)]
    return prod(fixed) <= KNOWN_LIMIT or 0 in fixed


def _with_contents(
    op: Op, operands: Sequence[Type | None], results: tuple[Type, ...]
) -> tuple[Type, ...]:
    arrays = [
        None if t is None else Tensor(np.asarray(t.known), SHAPES) for t in operands
    ]
    try:
        computed = op.lower(*arrays)
    except OR_MISSING:
        return results  # undecidable: computed when the model runs
    values = computed if isinstance(computed, tuple) else (computed,)
    # A control-flow result is a single object.
    values += (None,) * (len(results) - len(values))
    return tuple(
        _with_known_contents(t, value.data) if isinstance(value, Tensor) else t
        for t, value in zip(results, values, strict=False)
    )


def _with_known_contents(result: Type, contents: Array) -> Type:
    """Return ``result`` with contents, which also determine its shape."""
    items = normalize(contents, result.dtype)
    if kind_of(result) == "tensor":
        result = result.with_shape(contents.shape)
    return result.with_known(items)


def changed_states(graph: Graph) -> Iterator[Problem]:
    """Yield a problem for each state whose type changes in a call."""
    before = graph.inputs[len(graph.arguments) :]
    after = graph.outputs[len(graph.results) :]
    for state, name, result in zip(graph.states, before, after, strict=True):
        if result not in {*graph.types, *graph.constants}:
            continue  # already reported as a problem
        old, new = graph.types[name], graph.types.get(result)
        new = new or Type.of(graph.constants[result])
        if old.dtype != new.dtype or _differ(old.shape, new.shape):
            yield Problem(
                f"expected state {state!r} to stay {old.name}, got {new.name}"
            )


def _differ(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool:
    """Return whether two shapes are certainly different."""
    if a is None or b is None:
        return False
    pairs = zip(a, b, strict=False)
    fixed = [(x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int)]
    return len(a) != len(b) or any(x != y for x, y in fixed)
