"""Branches, loops, and inlined subgraphs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.math.cast import detached
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_import.frontends.torch_export.complex_as_real import stored_type
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel
from burn_ir.raw import RawGraph
from burn_ir.types import Type

Body = Callable[[Sequence[Value]], RawGraph]
Values = Sequence[Value]


@rule("higher_order.cond")
def cond(
    g: Builder, pred: Value, true_fn: Body, false_fn: Body, operands: Values = ()
) -> tuple[Value, ...]:
    then, otherwise = true_fn(operands), false_fn(operands)
    return g.many(
        "If", len(then.outputs), pred, then_branch=then, else_branch=otherwise
    )


def inline(g: Builder, body: Body, operands: Values) -> list[Value]:
    """Inline a subgraph and return its results."""
    graph = body(operands)
    g.out.nodes.extend(graph.nodes)
    return [Value(name, g.dtype) for name in graph.outputs]


@rule("higher_order.wrap_with_set_grad_enabled", is_inlined=True)
def without_gradient(
    g: Builder, enabled: bool, body: Body, *operands: Value
) -> list[Value]:
    """Return the results of ``body``, detached unless ``enabled``."""
    results = inline(g, body, operands)
    if enabled:
        return results
    pairs = zip(results, g.results, strict=True)
    return [detached(g, replace(x, dtype=old.dtype)) for x, old in pairs]


@rule("higher_order.wrap_with_autocast", is_inlined=True)
def with_autocast(
    g: Builder,
    device_type: str,
    dtype: Any,
    enabled: bool,
    cache_enabled: Any,
    body: Body,
    *operands: Value,
) -> list[Value]:
    """Inline the body; casts in it are explicit nodes."""
    return inline(g, body, operands)


def formal(g: Builder, x: Value, name: str) -> Value:
    """Return the input of a loop's body for a value."""
    return replace(x, name=g.out.unique(f"{g.name}_{name}"))


def types_of(values: Values) -> dict[str, Type]:
    """Return the types of the inputs of a body."""
    return {value.name: stored_type(value.dtype, value.dims) for value in values}


@rule("higher_order.while_loop")
def while_loop(
    g: Builder, cond_fn: Body, body_fn: Body, carried: Sequence[Operand], rest: Values
) -> tuple[Value, ...]:
    first = [g.value(x, INT64) for x in carried]
    start = inline(g.at(BOOL), cond_fn, [*first, *rest])[0]
    number = Value(g.out.unique(f"{g.name}_number"), INT64, ())
    before = Value(g.out.unique(f"{g.name}_before"), BOOL, ())
    state = [formal(g, x, "carried") for x in first]
    step = body_fn([*state, *rest])
    after = [replace(x, name=name) for x, name in zip(state, step.outputs, strict=True)]
    again = cond_fn([*after, *rest])
    body = RawGraph(
        "body",
        types_of([number, before, *state]),
        (*again.outputs, *step.outputs),
        (*step.nodes, *again.nodes),
        {},
    )
    return g.many("Loop", len(first), None, start, *first, body=body)


@rule("higher_order.scan")
def scan(
    g: Builder, combine_fn: Body, init: Values, xs: Values, additional: Values = ()
) -> tuple[Value, ...]:
    """Return the last states, and the stacked results of all steps."""
    if any(x.dims is None or not x.rank for x in xs):
        raise UnsupportedModel("expected sequences of known rank")
    state = [formal(g, x, "state") for x in init]
    parts = [
        replace(formal(g, x, "part"), dims=None if x.dims is None else x.dims[1:])
        for x in xs
    ]
    step = combine_fn([*state, *parts, *additional])
    body = replace(step, inputs=types_of([*state, *parts]))
    count = len(step.outputs)
    return g.many("Scan", count, *init, *xs, body=body, num_scan_inputs=len(xs))


@rule("higher_order.map_impl")
def map_impl(
    g: Builder, f: Body, xs: Values, additional: Values = ()
) -> tuple[Value, ...]:
    return scan(g, f, (), xs, additional)
