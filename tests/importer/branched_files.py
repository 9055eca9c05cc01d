"""Programs with graphs inside, made by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.importer.exported_files import (
    LEAF,
    call,
    linear_program,
    meta,
    program,
    ref,
    tree,
    with_trees,
)
from tests.modules import Array

ROWS, NUMBER, TRUTH = (
    meta("float32", ["s7", 4, 3]),
    meta("float32", []),
    meta("bool", []),
)


def graph_inside(
    inputs: Mapping[str, Any],
    nodes: Sequence[Any],
    values: Mapping[str, Any],
    outputs: Sequence[str],
) -> dict[str, Any]:
    """Return an argument that is a graph."""
    graph = {
        "inputs": [ref(name) for name in inputs],
        "outputs": [ref(name) for name in outputs],
        "nodes": list(nodes),
        "tensor_values": {**inputs, **values},
        "sym_int_values": {},
        "sym_float_values": {},
        "sym_bool_values": {},
    }
    return {"as_graph": {"name": "graph_inside", "graph": graph}}


def choice(
    condition: str, sides: Sequence[Any], operands: Sequence[str], results: list[str]
) -> dict[str, Any]:
    """Return a call of ``torch.cond``, whose arguments have no names."""
    values = {"as_tensors": [{"name": name} for name in operands]}
    arguments = [ref(condition), *sides, values]
    return {
        "target": "torch.ops.higher_order.cond",
        "inputs": [{"name": "", "arg": arg, "kind": 1} for arg in arguments],
        "outputs": [{"as_tensors": [{"name": name} for name in results]}],
        "metadata": {"nn_module_stack": "L__self__,,Net"},
        "name": "cond",
    }


def _then() -> dict[str, Any]:
    """Return the exponential or the cosine of an operand, and the sum of the other."""
    inner = {"a": ROWS, "b": ROWS}
    exp = call("aten.exp.default", "e", self=ref("a"))
    cos = call("aten.cos.default", "c", self=ref("b"))
    sides = [
        graph_inside(inner, [exp], {"e": ROWS}, ["e"]),
        graph_inside(inner, [cos], {"c": ROWS}, ["c"]),
    ]
    nodes = [
        call("aten.sum.default", "s", self=ref("b")),
        call("aten.gt.Scalar", "g", self=ref("s"), other={"as_float": 0.5}),
        choice("g", sides, ["a", "b"], ["r"]),
    ]
    values = {"s": NUMBER, "g": TRUTH, "r": ROWS}
    return graph_inside(inner, nodes, values, ["r", "s"])


def _otherwise() -> dict[str, Any]:
    """Return the product of two operands, and the sum of one."""
    nodes = [
        call("aten.mul.Tensor", "m", self=ref("a"), other=ref("b")),
        call("aten.sum.default", "t", self=ref("a")),
    ]
    inner, values = {"a": ROWS, "b": ROWS}, {"m": ROWS, "t": NUMBER}
    return graph_inside(inner, nodes, values, ["m", "t"])


def rich_program() -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a program with most of what there is to read, and its weights.

    It counts calls in a buffer, has branches in a branch, an extent that varies, and
    returns a dictionary.
    """
    content, weights = linear_program()
    weights = {**weights, "steps.count": np.array([5.0], np.float32)}
    count = ref("b_steps_count")
    sides = [_then(), _otherwise()]
    nodes = [
        *content["graph_module"]["graph"]["nodes"],
        call("aten.add_.Tensor", "add_", self=count, other={"as_int": 1}),
        call("aten.sum.default", "total", self=ref("relu")),
        call("aten.gt.Scalar", "many", self=ref("total"), other={"as_float": 20.0}),
        choice("many", sides, ["relu", "linear"], ["first", "second"]),
        call("aten.mul.Tensor", "scaled", self=ref("first"), other=count),
    ]
    values: dict[str, Any] = {"many": TRUTH, "add_": meta("float32", [1])}
    values |= dict.fromkeys(["linear", "relu", "first", "scaled"], ROWS)
    values |= dict.fromkeys(["total", "second"], NUMBER)
    inputs = {"x": meta("float32", ["s7", 4, 5])}
    result = program(
        inputs, weights, nodes, values, ["scaled", "second"], ["steps.count"]
    )
    given = tree("builtins.tuple", None, LEAF)
    spec = tree("builtins.tuple", None, given, tree("builtins.dict", []))
    out = tree("builtins.dict", ["scaled", "total"], LEAF, LEAF)
    return with_trees(result, in_spec=spec, out_spec=out), weights
