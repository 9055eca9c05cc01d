"""Layer names from the names of their arrays, in files without scopes."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from burn_import.pipeline import import_model
from tests.importer.onnx_files import model, saved, stored

SHAPES = ((4, 3, 3, 3), (4,), (5, 4, 3, 3), (5,), (2, 5), (2,))

#: The names of six arrays, and of the two convolutions and the layer that own them.
NAMES = {
    "weight_0 weight_1 weight_2 weight_3 weight_4 weight_5": "conv conv_2 linear",
    "weight_8 weight_9 weight_10 weight_11 weight_12 weight_13": "conv conv_2 linear",
    "param_9 param_10 param_11 param_12 param_13 param_14": "conv conv_2 linear",
    "Tensor7 Tensor8 Tensor9 Tensor10 Tensor11 Tensor12": "conv conv_2 linear",
    "W1 b1 W2 b2 W3 b3": "conv conv_2 linear",
    "conv1_w conv1_b conv2_w conv2_b fc_w fc_b": "conv1 conv2 fc",
    "conv10_w conv10_b conv11_w conv11_b fc12_w fc12_b": "conv10 conv11 fc12",
    "stem_10 stem_11 stem_12 stem_13 head_14 head_15": "stem stem_2 head",
    "block1_10 block1_11 block2_10 block2_11 fc_2 fc_3": "block1 block2 fc",
    "a/weight_10 a/weight_11 b/p_1 b/p_2 b/fc_1 b/fc_2": "a.conv b.p b.fc",
}


@pytest.mark.parametrize("names", NAMES)
def test_layers_are_called_after_what_is_said_of_their_arrays(
    names: str, tmp_path: Path
) -> None:
    arrays = names.split()
    rng = np.random.default_rng(0)
    weights = [
        stored(name, rng.standard_normal(shape).astype(np.float32))
        for name, shape in zip(arrays, SHAPES, strict=True)
    ]
    nodes = [
        helper.make_node("Conv", ["image", *arrays[:2]], ["y0"]),
        helper.make_node("Conv", ["y0", *arrays[2:4]], ["y1"]),
        helper.make_node("GlobalAveragePool", ["y1"], ["y2"]),
        helper.make_node("Flatten", ["y2"], ["y3"]),
        helper.make_node("Gemm", ["y3", *arrays[4:]], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 3, 9, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [2, 2])],
        weights,
    )
    module = import_model(saved(tmp_path / "net.onnx", model(graph)))
    layers = {key.rpartition(".")[0]: None for key, _ in module.weights}
    assert list(layers) == NAMES[names].split()
