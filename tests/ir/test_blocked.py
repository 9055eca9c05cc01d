"""Models in onnxruntime's blocked layout."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from burn import Tensor
from burn.backend.cpu import Cpu
from burn_import.frontends.onnx import read
from burn_ir import RawGraph, RawModel, RawNode, Type, UnsupportedModel, build, evaluate
from burn_ir.blocked import DOMAIN

Array = np.ndarray[Any, Any]


def convolutions() -> onnx.ModelProto:
    """Return plain, grouped and depthwise convolutions with operators between."""
    rng = np.random.default_rng(0)
    shapes = [
        (24, 20, 3, 3),
        (48, 24, 3, 1),
        (48, 1, 3, 3),
        (48, 48, 1, 1),
        (10, 48, 2, 2),
    ]
    groups = [1, 1, 48, 1, 1]
    nodes, stored, x = [], [], "image"
    for i, (shape, group) in enumerate(zip(shapes, groups, strict=True)):
        weight = rng.standard_normal(shape).astype(np.float32) / 8
        bias = rng.standard_normal(shape[0]).astype(np.float32)
        pair: tuple[Array, Array] = (weight, bias)
        stored += [
            numpy_helper.from_array(a, f"{n}{i}")
            for n, a in zip("wb", pair, strict=True)
        ]
        pads = [1, 0, 1, 0] if shape[2] == 3 else [0, 0, 0, 0]
        nodes.append(
            helper.make_node(
                "Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], group=group, pads=pads
            )
        )
        x = f"c{i}"
        if i in (0, 1):
            nodes.append(helper.make_node("LeakyRelu", [x], [f"r{i}"], alpha=0.3))
            x = f"r{i}"
        if i == 1:
            nodes.append(
                helper.make_node(
                    "MaxPool", [x], ["p"], kernel_shape=[2, 3], pads=[1, 0, 0, 1]
                )
            )
            x = "p"
        if i == 3:
            nodes.append(helper.make_node("Add", [x, "c2"], ["s"]))
            x = "s"
    image = helper.make_tensor_value_info("image", 1, ["n", 20, 13, 11])
    result = helper.make_tensor_value_info(x, 1, None)
    graph = helper.make_graph(nodes, "main", [image], [result], stored)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_what_onnxruntime_made_for_this_machine(tmp_path: Path) -> None:
    model, file = convolutions(), tmp_path / "m.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(file)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    domains = {node.domain for node in onnx.load(file).graph.node}
    if DOMAIN not in domains:
        pytest.skip("onnxruntime makes no blocks on this machine")
    image = np.random.default_rng(1).standard_normal((2, 20, 13, 11)).astype(np.float32)
    (expected,) = session.run(None, {"image": image})
    (got,) = evaluate(build(read(file)), [Tensor(image, Cpu())])
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


def blocked(weight: Array, block: int, inner: bool) -> Array:
    """Return a weight with blocked output channels, and blocked input channels."""
    out, within, *kernel = weight.shape
    if not inner:
        parts = weight.reshape(out // block, block, within, *kernel)
        return np.moveaxis(parts, 1, -1).reshape(weight.shape)
    parts = weight.reshape(out // block, block, within // block, block, *kernel)
    return parts.transpose(0, 2, 4, 5, 3, 1).reshape(weight.shape)


def chain(block: int, middle: int, outer: int, channels: int) -> tuple[RawModel, Any]:
    """Return two blocked convolutions, and their weights in plain layout."""
    rng = np.random.default_rng(block)
    first = rng.standard_normal((middle, 3, 2, 3)).astype(np.float32)
    second = rng.standard_normal((outer, middle, 3, 1)).astype(np.float32)
    second[channels:] = 0
    weights = {"w": blocked(first, block, False), "v": blocked(second, block, True)}
    nodes = (
        RawNode("Conv", DOMAIN, {"activation": "Relu"}, ("x", "w"), ("y",)),
        RawNode("Conv", DOMAIN, {}, ("y", "v"), ("z",)),
        RawNode("ReorderOutput", DOMAIN, {"channels": channels}, ("z",), ("out",)),
    )
    inputs = {"x": Type(np.dtype(np.float32), (2, 3, 6, 5))}
    graph = RawGraph("main", inputs, ("out",), nodes, weights)
    return RawModel(graph, {"": 17, DOMAIN: 1}), (first, second[:channels])


@pytest.mark.parametrize(
    ("block", "middle", "outer", "channels"),
    [(8, 24, 16, 12), (8, 16, 24, 24), (16, 32, 16, 5)],
)
def test_the_block_follows_from_extents(
    block: int, middle: int, outer: int, channels: int
) -> None:
    model, weights = chain(block, middle, outer, channels)
    graph = build(model)
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 5)).astype(np.float32)
    y = x
    for index, weight in enumerate(weights):
        stacks = [np.lib.stride_tricks.sliding_window_view(y, weight.shape[2:], (2, 3))]
        y = np.einsum("ncijkl,ockl->noij", stacks[0], weight)
        y = np.maximum(y, 0) if index == 0 else y
    (got,) = evaluate(graph, [Tensor(x, Cpu())])
    np.testing.assert_allclose(got.numpy(), y, rtol=1e-4, atol=1e-4)


def test_a_block_that_nothing_tells_is_refused() -> None:
    model, _ = chain(16, 32, 16, 16)
    with pytest.raises(UnsupportedModel, match="8 or 16"):
        build(model)
