"""The module that runs nodes shared by several modules."""

from pathlib import Path

import numpy as np
from onnx import helper

from burn_import import load
from tests.importer.onnx_files import graph, model, saved, stored


def test_a_weight_stays_where_its_name_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    nodes = [
        helper.make_node("Add", ["x", "emb.token"], ["h"], "/emb/Add"),
        helper.make_node("Sin", ["x"], ["s"], "/emb/Sin"),
        helper.make_node("Mul", ["h", "s"], ["g"], "/emb/Mul"),
        helper.make_node("MatMul", ["g", "emb.lin.w"], ["e"], "/emb/lin/MatMul"),
        helper.make_node("Mul", ["e", "g"], ["m"], "/emb/Mul_1"),
        helper.make_node("MatMul", ["m", "head.w"], ["y"], "/head/MatMul"),
    ]
    shapes = {"emb.token": (1, 3, 4), "emb.lin.w": (4, 4), "head.w": (4, 4)}
    weights = tuple(
        stored(name, rng.standard_normal(shape, np.float32))
        for name, shape in shapes.items()
    )
    proto = model(graph(nodes, {"x": [2, 3, 4]}, initializers=weights), 18)
    actual = load(saved(tmp_path / "net.onnx", proto)).state_dict()
    assert any(key.startswith("emb.") and key.endswith("token") for key in actual)
