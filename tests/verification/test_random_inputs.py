"""Random inputs that a model computes meaningful results for."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from burn import dtypes
from burn_import.verification.bisect import Divergence
from burn_import.verification.inputs import random_inputs
from burn_import.verification.verify import verify

SEEDS = (0, 5, 8)
LOWEST = float(np.finfo(np.float32).min)


def masked_attention(path: Path) -> Path:
    """Write a self-attention whose scores of masked positions are the lowest float."""
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "mask"], ["masked"]),
        helper.make_node("Mul", ["masked", "lowest"], ["bias"]),
        helper.make_node("MatMul", ["x", "query.weight"], ["query"]),
        helper.make_node("Transpose", ["x"], ["key"], perm=[1, 0]),
        helper.make_node("MatMul", ["query", "key"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "x"], ["y"]),
    ]
    weight = np.random.default_rng(5).normal(size=(4, 4)).astype(np.float32)
    stored = [
        numpy_helper.from_array(weight, "query.weight"),
        numpy_helper.from_array(np.asarray(1, np.float32), "one"),
        numpy_helper.from_array(np.asarray(LOWEST, np.float32), "lowest"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["seq", 4]),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["seq"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["seq", 4])
    graph = helper.make_graph(nodes, "attention", inputs, [y], stored)
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_of_masked_attention_agree(seed: int, tmp_path: Path) -> None:
    path = masked_attention(tmp_path / "net.onnx")
    result = verify(path, seed=seed, gradients=True)
    assert result.ok
    assert result.gradient is not None and result.gradient < 1e-5


def test_only_integer_attention_masks_are_ones() -> None:
    names = ("attention_mask", "encoder_attention_mask", "input_ids", "mask")
    arrays = random_inputs({name: (dtypes.int64, [64]) for name in names})
    assert {name for name in names if arrays[name].all()} == set(names[:2])
    given = random_inputs({"attention_mask": (dtypes.float32, [64])})
    assert len(np.unique(given["attention_mask"])) == 64


def test_a_difference_that_no_node_causes_is_said() -> None:
    text = str(Divergence("unknown", ""))
    assert "results differ without passes too" in text and "--inputs" in text
