"""GroupNormalization whose number of channels is known when the model runs."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.importer.operands.many_nodes import (
    read_graph,
    results_of_others,
    results_of_ours,
)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("extents", [["b", "c", "h", "w"], ["b", 6, "h", "w"]])
@pytest.mark.parametrize("stored", [True, False])
def test_channels(
    tmp_path: Path, opset: int, extents: list[str | int], stored: bool
) -> None:
    rng = np.random.default_rng(2)
    count = 2 if opset == 18 else 6  # one for each group, later for each channel
    weights = {n: rng.normal(size=count).astype(np.float32) for n in ("scale", "bias")}
    arrays = {"x": rng.normal(size=(2, 6, 3, 4)).astype(np.float32)} | (
        {} if stored else weights
    )
    kinds = [
        helper.make_tensor_value_info(
            name, TensorProto.FLOAT, extents if name == "x" else [count]
        )
        for name in arrays
    ]
    node = helper.make_node(
        "GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=2
    )
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(x, n) for n, x in weights.items() if stored]
    proto = helper.make_model(
        helper.make_graph([node], "main", kinds, [result], held),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=9,
    )
    expected = results_of_others(proto, arrays)
    assert expected is not None
    for way, (actual,) in results_of_ours(read_graph(proto, tmp_path), arrays):
        np.testing.assert_allclose(actual.numpy(), expected[0], 1e-5, 1e-5, err_msg=way)
