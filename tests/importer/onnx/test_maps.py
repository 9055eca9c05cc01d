"""Models with maps as inputs or outputs, against onnxruntime."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from burn import tensor
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import compile_graph
from burn_import.frontends.onnx import read
from burn_import.options import Options
from burn_ir import build
from tests.conformance.run import to_arrays

ML = "ai.onnx.ml"


def by_onnxruntime(model: onnx.ModelProto, given: Any) -> Any:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": given})[0]


def by_us(model: onnx.ModelProto, given: Any, folder: Path) -> Any:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    source = compile_graph(build(read(path)), Options(), "weights")
    check_body(source.text.encode())
    module = ModuleType("printed")
    module.__file__ = "<printed>"
    exec(compile(source.text, "<printed>", "exec"), module.__dict__)
    return to_arrays(getattr(module, source.class_name)()(given))


def model_of(node: onnx.NodeProto, x: Any, y: Any) -> onnx.ModelProto:
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid(ML, 1), helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def map_info(name: str, key: int, value: int) -> onnx.ValueInfoProto:
    inner = helper.make_tensor_type_proto(value, ())
    return helper.make_value_info(name, helper.make_map_type_proto(key, inner))


@pytest.mark.parametrize(
    "labels",
    [
        {"classlabels_int64s": [7, -1, 3]},
        {"classlabels_strings": ["rye", "\xe4 'x'", "egg"]},
    ],
)
def test_zip_map_gives_a_dict_for_every_row(
    labels: dict[str, Any], tmp_path: Path
) -> None:
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, **labels)
    key = TensorProto.STRING if "strings" in next(iter(labels)) else TensorProto.INT64
    inner = helper.make_map_type_proto(
        key, helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    )
    y = helper.make_value_info("y", helper.make_sequence_type_proto(inner))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    model = model_of(node, x, y)
    given = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    assert by_us(model, tensor(given), tmp_path) == by_onnxruntime(model, given)


@pytest.mark.parametrize("key", ["int64_vocabulary", "string_vocabulary"])
def test_dict_vectorizer_puts_values_at_their_places(key: str, tmp_path: Path) -> None:
    words: list[Any] = [4, 1, 9] if key.startswith("int") else ["b", "a", "z"]
    attrs: Any = {key: words}
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, **attrs)
    kind = TensorProto.INT64 if key.startswith("int") else TensorProto.STRING
    x = map_info("x", kind, TensorProto.FLOAT)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    given = {words[1]: 2.5, words[0]: -1.0}
    model = model_of(node, x, y)
    got = by_us(model, given, tmp_path)
    np.testing.assert_array_equal(got, by_onnxruntime(model, given))
    assert got.dtype == np.float32
    wrapped = {k: tensor(np.float32(v)) for k, v in given.items()}
    np.testing.assert_array_equal(by_us(model, wrapped, tmp_path), got)


@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
@pytest.mark.parametrize("cast_to", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
@pytest.mark.parametrize("words", [False, True])
def test_cast_map_lists_the_values(
    form: str, cast_to: str, words: bool, tmp_path: Path
) -> None:
    attrs: Any = {"cast_to": cast_to, "map_form": form, "max_map": 6}
    node = helper.make_node("CastMap", ["x"], ["y"], domain=ML, **attrs)
    x = map_info("x", TensorProto.INT64, TensorProto.STRING if words else 1)
    results = {"TO_FLOAT": 1, "TO_INT64": 7, "TO_STRING": 8}
    y = helper.make_tensor_value_info("y", results[cast_to], None)
    model = model_of(node, x, y)
    whole = cast_to == "TO_INT64"
    numbers = {4: 7.0 if whole else 2.5, 1: -3.0}
    given = {k: f"{v:g}" for k, v in numbers.items()} if words else numbers
    got = by_us(model, given, tmp_path)
    if words:  # onnxruntime's Python interface takes no map of strings
        expected = read_by_hand(given, form, cast_to)
    else:
        expected = np.asarray(by_onnxruntime(model, given))
    np.testing.assert_array_equal(got, expected)
    assert got.shape == expected.shape


def read_by_hand(given: Any, form: str, cast_to: str) -> Any:
    convert = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": str}[cast_to]
    values = {key: convert(text) for key, text in given.items()}
    if form == "DENSE":
        return np.array([[values[key] for key in sorted(values)]], object)
    nothing = "0.f" if cast_to == "TO_STRING" else 0
    return np.array([[values.get(key, nothing) for key in range(6)]], object)
