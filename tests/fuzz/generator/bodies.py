"""Blocks with bodies: layers in a loop, and layers in the branches of an If."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from tests.fuzz.generator.blocks import Shape, activation, linear, norm
from tests.fuzz.generator.layers import Layers


def looped(m: Layers, x: str, shape: Shape) -> str:
    """A layer that is applied some times to what it gave."""
    body = replace(m.inside("cell"), nodes=[])
    names = [m.builder.shared.fresh(f"{m.path}/{n}") for n in ("i", "going", "state")]
    y = activation(body, linear(body, names[2], shape.width, shape.width))
    if m.rng.random() < 0.4:
        y = norm(body.inside("norm"), body.op("Add", y, names[2]), shape)
    going = body.op("Identity", names[1])
    results = [going, y]
    collects = m.rng.random() < 0.4
    if collects:
        results.append(body.along("ReduceMean", y, (1,), 18))
    graph = helper.make_graph(
        body.nodes,
        "cell",
        [
            helper.make_tensor_value_info(names[0], TensorProto.INT64, []),
            helper.make_tensor_value_info(names[1], TensorProto.BOOL, []),
            helper.make_tensor_value_info(names[2], TensorProto.FLOAT, [None] * 3),
        ],
        [helper.make_tensor_value_info(going, TensorProto.BOOL, []), *_floats(results)],
    )
    trips = m.const(m.rng.randint(1, 3), np.int64)
    operands = [trips, m.const(True, np.bool_), x]
    outs = m.ops("Loop", operands, len(results) - 1, body=graph)
    if not collects:
        return outs[0]
    return m.op("Add", outs[0], m.op("Gather", outs[1], m.const(0, np.int64), axis=0))


def _floats(names: list[str]) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3)
        for name in names[1:]
    ]


def branched(m: Layers, x: str, shape: Shape) -> str:
    """One of two layers, as the length of the sequence or the values tell."""
    if m.rng.random() < 0.5:
        limit = m.const([m.rng.randint(2, 6)], np.int64)
        condition = m.along("Squeeze", m.op("Less", m.extent(x, 1), limit), (0,))
    else:
        total = m.op("ReduceSum", m.op("Abs", x), keepdims=0)
        condition = m.op("Greater", total, m.const(float(m.rng.randint(1, 40))))
    branches = {
        f"{name}_branch": _branch(m.inside(name), x, shape) for name in ("then", "else")
    }
    return m.op("If", condition, **branches)


def _branch(m: Layers, x: str, shape: Shape) -> GraphProto:
    body = replace(m, nodes=[])
    y = activation(body, linear(body, x, shape.width, shape.width))
    info = helper.make_tensor_value_info(y, TensorProto.FLOAT, [None] * 3)
    return helper.make_graph(body.nodes, "branch", [], [info])
