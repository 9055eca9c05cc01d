"""Generated modules declare the model's inputs and reject others."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import burn
from burn import nn
from burn_import import Options, load
from burn_import.pipeline import import_model

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def saved(folder: Path, nodes: Any, inputs: Any, outputs: Any) -> Path:
    """Return the file of a model whose inputs and outputs are (name, dtype, shape)."""
    given = [helper.make_tensor_value_info(*value) for value in inputs]
    results = [helper.make_tensor_value_info(*value) for value in outputs]
    graph = helper.make_graph(nodes, "g", given, results)
    opsets = [helper.make_opsetid("", 18)]
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=opsets), path)
    return path


def network(folder: Path) -> Path:
    """Return the file of a model with a fixed image and named batches."""
    nodes = [
        helper.make_node("ReduceMean", ["input.1"], ["m"], keepdims=0),
        helper.make_node("Cast", ["ids"], ["c"], to=FLOAT),
        helper.make_node("Mul", ["m", "c"], ["p"]),
        helper.make_node("Add", ["p", "scale"], ["y"]),
    ]
    inputs = [
        ("input.1", FLOAT, ["batch", 3, 8, 8]),
        ("ids", INT, ["batch"]),
        ("scale", FLOAT, []),
    ]
    return saved(folder, nodes, inputs, [("y", FLOAT, ["batch"])])


def options(**chosen: Any) -> Options:
    return Options(class_name="Net", stem="net", **chosen)


def zeros(*shape: int, dtype: Any = np.float32) -> burn.Tensor:
    return burn.tensor(np.zeros(shape, dtype))


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_wrong_input_is_refused(
    tmp_path: Path, flat: bool, is_compiled: bool
) -> None:
    loaded: Any = load(network(tmp_path), options(flat=flat))
    model = burn.compile(loaded) if is_compiled else loaded
    scale = burn.tensor(1.0)
    image, ids = zeros(2, 3, 8, 8), zeros(2, dtype=np.int64)
    assert model(image, ids, scale).tolist() == [1.0, 1.0]
    with pytest.raises(
        nn.InputError, match=r"expected float32\[batch, 3, 8, 8\], got f"
    ):
        model(zeros(2, 3, 9, 9), ids, scale)
    with pytest.raises(nn.InputError, match="batch is 2 in input 'input_1'"):
        model(image, zeros(3, dtype=np.int64), scale)
    with pytest.raises(nn.InputError, match=r"pass ids.cast\(burn.int64\)"):
        model(image, zeros(2, dtype=np.int32), scale)
    with pytest.raises(nn.InputError, match="Net: input 'scale': .*burn.tensor"):
        model(image, ids, 1.0)
    assert model(image, ids, scale).tolist() == [1.0, 1.0]


def test_the_declaration_has_the_names_of_the_file(tmp_path: Path) -> None:
    text = import_model(network(tmp_path), options()).text
    assert text.count("float32[batch, 3, 8, 8]") == 1
    assert text.count("nn.check_inputs") == 1
    assert 'input_1="float32[batch, 3, 8, 8]"' in text


def test_the_declaration_follows_the_chosen_dtype(tmp_path: Path) -> None:
    model: Any = load(network(tmp_path), options(dtype="float64"))
    ids = zeros(2, dtype=np.int64)
    double = np.float64
    scale = zeros(dtype=double)
    assert model(zeros(2, 3, 8, 8, dtype=double), ids, scale).dtype == burn.float64
    with pytest.raises(
        nn.InputError, match=r"expected float64\[batch, 3, 8, 8\], got fl"
    ):
        model(zeros(2, 3, 8, 8), ids, scale)


def test_the_declaration_follows_chosen_shapes(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        [helper.make_node("Relu", ["x"], ["y"])],
        [("x", FLOAT, ["batch", "size"])],
        [("y", FLOAT, ["batch", "size"])],
    )
    model: Any = load(path, options(shapes={"x": ("batch", 4)}))
    assert model(zeros(7, 4)).shape == (7, 4)
    with pytest.raises(nn.InputError, match=r"expected float32\[batch, 4\], got"):
        model(zeros(7, 5))


def test_an_input_without_a_shape_is_checked_by_dtype(tmp_path: Path) -> None:
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path, relu, [("x", FLOAT, None)], [("y", FLOAT, None)])
    model: Any = load(path, options())
    assert model(zeros(2, 1, 3)).shape == (2, 1, 3)
    assert model(zeros()).shape == ()
    with pytest.raises(
        nn.InputError, match=r"expected float32\[\.\.\.\], got float64\[2"
    ):
        model(zeros(2, dtype=np.float64))


def test_strings_are_declared(tmp_path: Path) -> None:
    kind = TensorProto.STRING
    node = helper.make_node("Identity", ["x"], ["y"])
    path = saved(tmp_path, [node], [("x", kind, ["n"])], [("y", kind, ["n"])])
    model: Any = load(path, options())
    assert model(burn.tensor(["a", "b"])).tolist() == ["a", "b"]
    with pytest.raises(nn.InputError, match=r"expected string\[n\], got a list of str"):
        model(["a"])


def test_a_list_is_checked_item_by_item(tmp_path: Path) -> None:
    element = helper.make_tensor_type_proto(FLOAT, ["n"])
    x = helper.make_value_info("x", helper.make_sequence_type_proto(element))
    y = helper.make_tensor_value_info("y", FLOAT, ["m"])
    node = helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0)
    graph = helper.make_graph([node], "g", [x], [y])
    path = tmp_path / "net.onnx"
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=opsets), path)
    model: Any = load(path, options())
    assert model([zeros(2), zeros(3)]).shape == (5,)
    with pytest.raises(nn.InputError, match=r"expected list\[float32"):
        model([zeros(2), zeros(3, dtype=np.float64)])
    with pytest.raises(nn.InputError, match=r"expected list\[float32"):
        model(zeros(2))
