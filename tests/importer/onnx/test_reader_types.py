"""Reading the types that a file declares."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from burn_import.frontends.onnx import read
from burn_ir import Type, UnsupportedModel
from burn_ir.containers import map_of, optional_of, sequence_of
from tests.importer.onnx_files import graph, model, saved

RELU = helper.make_node("Relu", ["x"], ["y"], name="act")


def test_inputs_of_every_kind(tmp_path: Path) -> None:
    proto = model(graph([RELU]))
    declared = proto.graph.input[0].type
    declared.tensor_type.ClearField("shape")
    path = tmp_path / "m.onnx"
    assert read(saved(path, proto)).graph.inputs["x"].shape is None
    tensor = helper.make_tensor_type_proto(1, [2])
    pairs = Type(np.dtype("float32"), (2,))
    listed = helper.make_sequence_type_proto(tensor)
    declared.CopyFrom(helper.make_optional_type_proto(listed))
    expected = optional_of(sequence_of(pairs))
    assert read(saved(path, proto)).graph.inputs["x"] == expected
    declared.CopyFrom(helper.make_map_type_proto(TensorProto.STRING, tensor))
    expected_map = map_of(np.dtype(object), pairs)
    assert read(saved(path, proto)).graph.inputs["x"] == expected_map
    declared.CopyFrom(helper.make_sparse_tensor_type_proto(1, [2]))
    with pytest.raises(UnsupportedModel, match="'x'.* got a sparse_tensor"):
        read(saved(path, proto))
