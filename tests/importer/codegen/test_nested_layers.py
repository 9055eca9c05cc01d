"""Weight names that place one layer inside another."""

from typing import Any

import numpy as np

from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_ir import RawGraph, RawModel, RawNode, Type, build


def test_a_layer_inside_a_module_with_weights_stands_in_it() -> None:
    rng = np.random.default_rng(0)
    shapes = {
        "a.weight": (4, 3),
        "a.bias": (4,),
        "a.b.weight": (5, 4),
        "a.b.bias": (5,),
    }
    weights: Any = {n: rng.random(s, np.float32) for n, s in shapes.items()}
    nodes = (
        RawNode("Gemm", "", {"transB": 1}, ("x", "a.weight", "a.bias"), ("y",), "1"),
        RawNode(
            "Gemm", "", {"transB": 1}, ("y", "a.b.weight", "a.b.bias"), ("z",), "2"
        ),
    )
    x = Type(np.dtype(np.float32), (2, 3))
    graph = build(RawModel(RawGraph("g", {"x": x}, ("z",), nodes, weights), {"": 13}))
    text = compile_graph(graph, Options(), "weights").text
    assert "self.b = nn.Linear(4, 5)" in text
    assert "ops.linear(x, self.weight, self.bias)" in text
