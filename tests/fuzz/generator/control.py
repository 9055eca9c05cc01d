"""Nodes with bodies: If, Loop and Scan, whose bodies read values from outside."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import GraphProto, helper, numpy_helper

from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.trial import Rejected, type_proto
from tests.fuzz.generator.values import RUNS, Value

DEEPEST = 2
Grow = Callable[[Builder, int], None]


def add_if(builder: Builder, grow: Grow) -> None:
    """Add an If on a condition that is an input, a constant or computed.

    Raises:
        Rejected: the branches do not fit each other.
    """
    condition = _condition(builder)
    then, orelse = Builder(builder.shared, builder), Builder(builder.shared, builder)
    rng = builder.random
    for body in (then, orelse):
        grow(body, rng.randint(1, 5))
    wanted = [_result(then, lambda v: v.is_tensor) for _ in range(rng.randint(1, 2))]
    others = []
    for value in wanted:
        same_rank = rng.random() < 0.9
        others.append(_result(orelse, partial(_alike, value, same_rank)))
    if any(len({v.name for v in chosen}) < len(chosen) for chosen in (wanted, others)):
        raise Rejected("a body gives one value twice")
    bodies = {
        "then_branch": _body(then, [], wanted),
        "else_branch": _body(orelse, [], others),
    }
    results = [builder.shared.fresh() for _ in wanted]
    node = helper.make_node("If", [condition], results, **bodies)
    builder.try_nodes([node], results)


def _alike(wanted: Value, same_shape: bool, value: Value) -> bool:
    if not value.is_tensor or value.dtype != wanted.dtype:
        return False
    return value.rank == wanted.rank and (
        not same_shape or value.shapes == wanted.shapes
    )


def _condition(builder: Builder) -> str:
    """The name of a bool: computed from values, an input, or a constant."""
    rng = builder.random
    value = builder.choose(lambda v: v.is_tensor and v.dtype == np.float32)
    if value is None or rng.random() < 0.3:
        array = np.array(rng.random() < 0.5)
        stored = rng.random() < 0.4
        return (builder.add_constant if stored else builder.add_input)(array).name
    limit = builder.add_constant(np.array(rng.gauss(0, 1), np.float32)).name
    total = builder.try_node("ReduceMean", [value.name], keepdims=0)[0].name
    return builder.try_node(rng.choice(["Less", "Greater"]), [total, limit])[0].name


def _result(body: Builder, wanted: Callable[[Value], bool]) -> Value:
    """A value for a result of ``body``, which makes it itself.

    Raises:
        Rejected: no visible value is as ``wanted``.
    """
    own = [v for v in body.pool if v.origin == "node" and wanted(v)]
    if own and body.random.random() < 0.85:
        return body.random.choice(own)
    result = body.choose(wanted)
    if result is None:
        raise Rejected("no value for a result of a body")
    return body.try_node("Identity", [result.name])[0]


def _body(
    body: Builder, inputs: Sequence[Value], results: Sequence[Value]
) -> GraphProto:
    return helper.make_graph(
        body.nodes,
        "body",
        [helper.make_value_info(v.name, type_proto(v.runs[0])) for v in inputs],
        [helper.make_value_info(v.name, type_proto(v.runs[0])) for v in results],
        [numpy_helper.from_array(a, n) for n, a in body.constants.items()],
    )


def add_loop(builder: Builder, grow: Grow) -> None:
    """Add a Loop with carried values and collected ones.

    Raises:
        Rejected: the body does not give back what it is given.
    """
    rng = builder.random
    body = Builder(builder.shared, builder)
    carried = [_tensor(builder) for _ in range(rng.randint(0, 2))]
    inputs = [
        # onnxruntime counts rounds in one place: a body must not give the number back.
        Value(body.shared.fresh("i"), (np.array(0, np.int64),) * RUNS, "input"),
        Value(body.shared.fresh("cond"), (np.array(True),) * RUNS),
        *(Value(body.shared.fresh("s"), v.runs) for v in carried),
    ]
    body.pool.extend(inputs)
    grow(body, rng.randint(1, 6))
    back = [_result(body, partial(_alike, value, True)) for value in carried]
    rows = [
        _result(body, lambda v: v.is_tensor)
        for _ in range(rng.randint(0 if carried else 1, 2))
    ]
    going = _going(body, inputs)
    results = [*going, *back, *rows]
    if len({v.name for v in results}) < len(results):
        raise Rejected("a body gives one value twice")
    names = [builder.shared.fresh() for _ in (*back, *rows)]
    trips, first = _head(builder)
    operands = [trips, first, *(v.name for v in carried)]
    graph = _body(body, inputs, results)
    node = helper.make_node("Loop", operands, names, body=graph)
    builder.try_nodes([node], names)


def _going(body: Builder, inputs: Sequence[Value]) -> list[Value]:
    """Return whether a loop goes on: always, or for some rounds."""
    if body.random.random() < 0.6:
        return body.try_node("Identity", [inputs[1].name])
    limit = np.array(body.random.randint(0, 3), np.int64)
    return body.try_node("Less", [inputs[0].name, body.add_constant(limit).name])


def _head(builder: Builder) -> tuple[str, str]:
    """The names of the number of rounds, and of the first condition."""
    rng = builder.random
    count = np.array(rng.randint(0, 4), np.int64)
    stored = rng.random() < 0.6
    trips = (builder.add_constant if stored else builder.add_input)(count).name
    if rng.random() < 0.5:
        return trips, ""
    return trips, builder.add_constant(np.array(rng.random() < 0.9)).name


def _tensor(builder: Builder) -> Value:
    result = builder.choose(lambda v: v.is_tensor and v.dtype.kind in "fi")
    if result is None:
        raise Rejected("no tensor to carry")
    return result


def add_scan(builder: Builder, grow: Grow) -> None:
    """Add a Scan over the first axis of one value, with one state.

    Raises:
        Rejected: the body does not give back what it is given.
    """
    rng = builder.random
    if builder.opset < 9:
        raise Rejected("Scan had a batch axis")
    body = Builder(builder.shared, builder)
    states = [_tensor(builder) for _ in range(rng.randint(0, 1))]
    scanned = builder.choose(lambda v: v.is_tensor and v.rank > 0 and _has_rows(v))
    if scanned is None:
        raise Rejected("nothing to scan")
    first = tuple(np.asarray(run[0]) for run in scanned.runs)
    inputs = [
        *(Value(body.shared.fresh("s"), v.runs) for v in states),
        Value(body.shared.fresh("r"), first),
    ]
    body.pool.extend(inputs)
    grow(body, rng.randint(1, 5))
    back = [_result(body, partial(_alike, value, True)) for value in states]
    rows = [_result(body, lambda v: v.is_tensor) for _ in range(rng.randint(1, 2))]
    results = [*back, *rows]
    if len({v.name for v in results}) < len(results):
        raise Rejected("a body gives one value twice")
    names = [builder.shared.fresh() for _ in results]
    attrs = _directions(builder, len(rows))
    graph = _body(body, inputs, results)
    operands = [*(v.name for v in states), scanned.name]
    node = helper.make_node(
        "Scan", operands, names, body=graph, num_scan_inputs=1, **attrs
    )
    builder.try_nodes([node], names)


def _has_rows(value: Value) -> bool:
    return all(shape[:1] > (0,) for shape in value.shapes)


def _directions(builder: Builder, rows: int) -> dict[str, Any]:
    rng = builder.random
    attrs = {}
    if rng.random() < 0.3:
        attrs["scan_input_directions"] = [rng.randint(0, 1)]
    if rng.random() < 0.3:
        attrs["scan_output_directions"] = [rng.randint(0, 1) for _ in range(rows)]
    return attrs
