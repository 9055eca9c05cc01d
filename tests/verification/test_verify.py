"""Comparison with onnxruntime, and the first node that differs."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burn_import import load
from burn_import.passes.activations.gates import gelu
from burn_import.verification.errors import InputsError
from burn_import.verification.verify import input_types, verify

ROOT = Path(__file__).parent.parent
MODELS = ROOT.parent / "models"
FILES = {
    "digits": MODELS / "digits" / "digits.onnx",
    "waves": MODELS / "waves" / "waves.onnx",
    **{
        name: ROOT / "golden" / name / "model.onnx"
        for name in (
            "collisions",
            "embedding",
            "optional",
            "ranks",
            "residual",
            "shared",
        )
    },
    "transformer": ROOT / "golden" / "transformer" / "model.onnx",
}
GENERATED = 20 - len(FILES)
#: Another operator with the same operands.
PAIRS = (
    *("Add Sub", "Sub Add", "Mul Sub", "Div Mul", "Max Min", "Relu Sigmoid"),
    *("Sigmoid Tanh", "Tanh Sigmoid", "Erf Tanh", "Softmax LogSoftmax"),
    *("Gemm Gemm", "MatMul Gemm", "Abs Neg"),
)
OTHER = dict(pair.split() for pair in PAIRS)


def chain(seed: int) -> onnx.ModelProto:
    """Return a model of 12 random nodes, which read any values before them."""
    random = np.random.default_rng(seed)
    values, nodes = ["x", "w"], []
    unary = ("Relu", "Sigmoid", "Tanh", "Abs", "Erf", "Softmax")
    for number in range(12):
        binary = bool(random.integers(2))
        kind = str(random.choice(("Add", "Sub", "Mul", "Max") if binary else unary))
        operands = [values[-1]]
        operands += [str(random.choice(values))] if binary else []
        if kind in ("Sub", "Max") and operands[0] == operands[1]:
            operands[1] = "w"
        nodes.append(
            helper.make_node(kind, operands, [f"v{number}"], name=f"n{number}")
        )
        values.append(f"v{number}")
    stored = numpy_helper.from_array(random.standard_normal(5).astype(np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 5])
    y = helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, [3, 5])
    graph = helper.make_graph(nodes, "chain", [x], [y], [stored])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def planted(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, str]:
    """Return the model with one node of another operator, and the node's name.

    The results differ for the inputs that are drawn with the seed 0.
    """
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{number}"
    candidates = [i for i, n in enumerate(model.graph.node) if n.op_type in OTHER]
    random = np.random.default_rng(seed)
    for index in random.permutation(candidates):
        wrong = onnx.ModelProto()
        wrong.CopyFrom(model)
        node = wrong.graph.node[int(index)]
        if node.op_type == "Gemm":
            kept = [a for a in node.attribute if a.name != "alpha"]
            node.ClearField("attribute")
            node.attribute.extend([*kept, helper.make_attribute("alpha", 1.5)])
        else:
            node.op_type = OTHER[node.op_type]
        if is_different(model, wrong):
            return wrong, node.name
    raise AssertionError("no node of the model can be wrong")


def is_different(model: onnx.ModelProto, wrong: onnx.ModelProto) -> bool:
    """Return whether onnxruntime runs both, with different results."""
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph

    from burn_import.verification.inputs import random_inputs
    from burn_import.verification.session import difference, run_model

    inputs = random_inputs(input_types(model))
    try:
        pair = [run_model(each, inputs, "onnxruntime")[0] for each in (model, wrong)]
    except (Fail, InvalidGraph):
        return False
    return any(difference(b, a) > 1e-2 for a, b in zip(*pair, strict=True))


def model_of(name: str) -> onnx.ModelProto:
    """Return a model from a file, or a generated one."""
    if name in FILES:
        return onnx.load(str(FILES[name]))
    return chain(int(name.removeprefix("chain")))


NAMES = [*FILES, *(f"chain{number}" for number in range(GENERATED))]


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_wrong_node_is_found(name: str, tmp_path: Path) -> None:
    assert len(NAMES) == 20
    right, wrong = tmp_path / "right.onnx", tmp_path / "wrong.onnx"
    model = model_of(name)
    changed, label = planted(model, seed=len(name))
    onnx.save(model, str(right))
    onnx.save(changed, str(wrong))
    same = verify(right, bisecting=True)
    assert same.ok and same.divergence is None
    result = verify(wrong, reference=right, bisecting=True)
    assert not result.ok and result.divergence is not None
    assert (result.divergence.kind, result.divergence.name) == ("node", label)


def test_a_wrong_pass_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from burn import ops
    from burn_ir.ops.activation import Gelu

    path = tmp_path / "net.onnx"
    nodes = [
        helper.make_node("Div", ["x", "root"], ["a"]),
        helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Add", ["b", "one"], ["c"]),
        helper.make_node("Mul", ["x", "c"], ["d"]),
        helper.make_node("Mul", ["d", "half"], ["y"]),
    ]
    numbers = {"root": 2.0**0.5, "one": 1.0, "half": 0.5}
    stored = [
        numpy_helper.from_array(np.asarray(n, np.float32), k)
        for k, n in numbers.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "gelu", [x], [y], stored)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    assert verify(path).ok

    def wrong(self: Any, x: Any) -> Any:
        return ops.relu(x)

    monkeypatch.setattr(Gelu, "lower", wrong)
    result = verify(path, bisecting=True)
    assert result.divergence is not None
    assert (result.divergence.kind, result.divergence.name) == (
        "pass",
        gelu.__name__,
    )


def test_a_module_with_other_weights_is_told_from_a_wrong_import() -> None:
    module: Any = load(FILES["digits"])
    state = {k: v.numpy() + 0.1 for k, v in module.state_dict().items()}
    module.load_state_dict(state)
    result = verify(FILES["digits"], module=module, bisecting=True)
    assert not result.ok and result.divergence is not None
    assert result.divergence.kind == "module"


@pytest.mark.parametrize("name", ["digits", "waves", "transformer"])
def test_derivatives_agree_with_difference_quotients(name: str) -> None:
    result = verify(FILES[name], gradients=True)
    assert result.gradient is not None and result.gradient < 1e-5


def test_inputs_come_from_a_file(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((7, 1, 8, 8), np.float32)
    arrays: Any = {"in:image": images}
    np.savez(tmp_path / "x.npz", **arrays)
    result = verify(FILES["digits"], inputs=tmp_path / "x.npz")
    assert result.ok and result.rows[0].shape == (7, 10)
    np.savez(tmp_path / "y.npz", other=images)
    with pytest.raises(InputsError, match="expected an array 'image'"):
        verify(FILES["digits"], inputs=tmp_path / "y.npz")
    sized = verify(FILES["digits"], sizes={"batch": 3}, engine="reference")
    assert sized.rows[0].shape[0] == 3 and sized.engine == "onnx.reference"


def test_random_inputs_have_multiples_of_named_extents() -> None:
    from burn_import.verification.inputs import random_inputs

    types = {"x": (np.dtype(np.float32), ["batch", "4 * height", "past + height"])}
    assert random_inputs(types)["x"].shape == (2, 8, 2)
    sizes = {"height": 3, "past + height": 5}
    assert random_inputs(types, sizes)["x"].shape == (2, 12, 5)


@pytest.mark.parametrize("zipped", [True, False])
def test_maps_of_classes_are_compared_by_key(tmp_path: Path, zipped: bool) -> None:
    """ZipMap ends the exports of scikit-learn's classifiers."""
    probabilities = helper.make_node("Softmax", ["x"], ["p"], axis=1)
    labels = [3, 5, 7]
    zipmap = helper.make_node(
        *("ZipMap", ["p"], ["y"]), classlabels_int64s=labels, domain="ai.onnx.ml"
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    maps = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    y = helper.make_value_info("y", helper.make_sequence_type_proto(maps))
    scores = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(
        *([probabilities, zipmap], "maps", [x], [y, scores] if zipped else [y])
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path = tmp_path / "maps.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    rows = verify(path).rows
    assert all(row.ok and row.difference < 1e-6 for row in rows)


@pytest.mark.parametrize(
    ("actual", "far"),
    [
        ({1: np.float32(0.5), 2: np.float32(0.25)}, 0.0),
        ({1: np.float32(0.5), 2: np.float32(0.5)}, 0.25),
        ({1: np.float32(0.5)}, np.inf),
        ({1: np.float32(0.5), 3: np.float32(0.25)}, np.inf),
        (0.5, np.inf),
    ],
)
def test_a_map_differs_by_its_values(actual: object, far: float) -> None:
    from burn_import.verification.session import difference

    assert difference([actual], [{1: 0.5, 2: 0.25}]) == far
