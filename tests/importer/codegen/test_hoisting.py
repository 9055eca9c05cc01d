"""The module that runs nodes shared by several modules."""

from pathlib import Path

import numpy as np
from onnx import NodeProto, helper

from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.looped import check
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import call, onnxruntime_outputs


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


def biased_layer(number: int, x: str, bias: str | None) -> list[NodeProto]:
    """Return a layer whose scores are biased; the first also computes the bias.

    It reads the length from its own product, as exporters of T5 do.
    """
    scope = f"/layer.{number}"
    rows = [("MatMul", [x, f"layer.{number}.q.weight"], "q")]
    if bias is None:
        rows += [
            ("Shape", ["q"], "extents"),
            ("Gather", ["extents", "one"], "length"),
            ("Range", ["zero", "length", "one"], "positions"),
            ("Gather", ["layer.0.bias.weight", "positions"], "bias"),
        ]
    rows.append(("Add", ["q", bias or "bias"], "y"))

    def local(name: str) -> str:
        is_shared = name in (x, "one", "zero", bias) or ".weight" in name
        return name if is_shared else f"{scope}/{name}"

    return [
        helper.make_node(op, list(map(local, reads)), [local(y)], f"{scope}/{y}")
        for op, reads, y in rows
    ]


def test_a_bias_by_positions_leaves_the_first_layer(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    arrays = {f"layer.{n}.q.weight": rng.random((4, 4), np.float32) for n in range(3)}
    arrays["layer.0.bias.weight"] = rng.random((9, 4), np.float32)
    numbers = {"zero": np.array(0), "one": np.array(1)}
    nodes = biased_layer(0, "x", None)
    for number in (1, 2):
        nodes += biased_layer(number, f"/layer.{number - 1}/y", "/layer.0/bias")
    weights = tuple(stored(k, v) for k, v in (arrays | numbers).items())
    proto = model(
        graph(nodes, {"x": ["batch", "seq", 4]}, ("/layer.2/y",), weights), 18
    )
    path = saved(tmp_path / "net.onnx", proto)
    assert "for layer in self.layer:" in import_model(path).text
    net = load(path)
    assert set(net.state_dict()) == set(arrays)
    for shape in ((2, 3, 4), (1, 7, 4)):
        x = rng.random(shape, np.float32)
        expected = onnxruntime_outputs(path, {"x": x})
        for actual, wanted in zip(call(net, [x]), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5)


def test_an_activation_for_all_blocks_leaves_the_first_one(tmp_path: Path) -> None:
    """As in UNets of diffusers, whose blocks all read the activated time embedding."""
    rng = np.random.default_rng(4)
    nodes = [helper.make_node("Tanh", ["time"], ["t"], "/blocks.0/act/Tanh")]
    weights, x = [], "x"
    for number in range(3):
        scope, name = f"/blocks.{number}", f"blocks.{number}.fc.weight"
        weights.append(stored(name, rng.random((4, 4), np.float32)))
        y, z = f"h{number}", f"y{number}"
        nodes += [
            helper.make_node("MatMul", [x, name], [y], f"{scope}/fc/MatMul"),
            helper.make_node("Mul", [y, "t"], [z], f"{scope}/Mul"),
        ]
        x = z
    shapes = {"x": [2, 4], "time": [2, 4]}
    proto = model(graph(nodes, shapes, (x,), tuple(weights)), 18)
    path = saved(tmp_path / "net.onnx", proto)
    text = import_model(path).text
    assert "for block in self.blocks:" in text
    feeds = {name: rng.random((2, 4), np.float32) for name in shapes}
    (actual,) = call(load(path), list(feeds.values()))
    (expected,) = onnxruntime_outputs(path, feeds)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def aggregating(number: int, x: str, width: int) -> str:
    """Return the lines of a layer of the sums along edges, in two modules."""
    scope = f"/conv{number}/aggregate"
    return f"""
    zeros{number} = Constant <value = float[1] {{0}}> ()
    shape{number} = Constant <value = int64[2] {{5, {width}}}> ()
    ["{scope}/Expand"] s{number} = Expand (zeros{number}, shape{number})
    ["{scope}/Expand_1"] i{number} = Expand (val_12, shape{number})
    ["{scope}/Scatter"] t{number} = ScatterElements <axis = 0, reduction = "add">
        (s{number}, i{number}, {x})
    ["{scope}/Tanh"] m{number} = Tanh (t{number})
    ["/conv{number}/lin/MatMul"] x{number} = MatMul
        (m{number}, conv{number}__lin__weight)
    """


def test_positions_for_siblings_leave_a_module_without_layers(tmp_path: Path) -> None:
    """As in graph convolutions, whose aggregations scatter along the same edges."""
    rng = np.random.default_rng(5)
    widths = {1: (4, 6), 2: (6, 3)}
    text = f"""agraph (float[5, 4] x, int64[5] e) => (float[5, 3] y) {{
    one = Constant <value = int64[1] {{1}}> ()
    ["/Abs"] a = Abs (e)
    ["/conv1/aggregate/Unsqueeze"] val_12 = Unsqueeze (a, one)
    {aggregating(1, "x", 4)} {aggregating(2, "x1", 6)} y = Identity (x2)
    }}"""
    weights = {
        f"conv{number}.lin.weight": rng.random(shape, np.float32)
        for number, shape in widths.items()
    }
    feeds = {"x": rng.random((5, 4), np.float32), "e": np.array([0, 2, 2, 4, 1])}
    source = check(tmp_path, text, feeds, weights=weights)
    assert source.count("(nn.Module)") == 2
    assert "def __call__(self, x: Tensor, indices: Tensor)" in source
