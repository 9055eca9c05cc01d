"""ONNX files as PyTorch's exporters write them, by hand: keys, kinds and values.

``val_3``, ``onnx::Mul_20`` and ``exp`` are what exporters call arrays that they folded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.onnx_files import saved
from tests.importer.roles.checks import State, state_of
from tests.importer.torch_files import Array, drawn, exported, node
from tests.modules import call, generate, import_file, onnxruntime_outputs


def imported(path: Path, proto: onnx.ModelProto, x: Array) -> State:
    """Return the state of a file's module, which computes what onnxruntime does."""
    file = saved(path / "model.onnx", proto)
    module, name = generate(file, path)
    actual = getattr(import_file(module), name).load()
    (expected,) = onnxruntime_outputs(file, {"x": x})
    np.testing.assert_allclose(call(actual, [x])[0], expected, rtol=1e-4, atol=1e-5)
    return state_of(actual)


X = drawn(2, 6, seed=9)


def notes(path: Path) -> str:
    return " ".join(import_model(path / "model.onnx").notes)


def holds(state: State, weights: dict[str, Array], trained: bool = True) -> None:
    """Return if the state has all ``weights`` as they are, as parameters or not."""
    for key, array in weights.items():
        np.testing.assert_array_equal(state.arrays[key], array, err_msg=key)
        assert state.arrays[key].shape == array.shape
        assert (key in state.parameters) == trained, key


def test_a_function_of_a_parameter_is_computed(tmp_path: Path) -> None:
    nodes = [node("Exp", "A", "e", ""), node("Neg", "e", "n", "")]
    nodes.append(node("Mul", "x n", "y", ""))
    weights = {"A": drawn(6)}
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, weights)
    assert len(state.arrays) == 1


def test_a_token_is_expanded_in_the_source(tmp_path: Path) -> None:
    shape = np.array([2, 1, 3])
    nodes = [
        node("Expand", "cls shape", "c", ""),
        node("Concat", "c x", "y", "", axis=1),
    ]
    weights = {"cls": drawn(1, 1, 3)}
    proto = exported(nodes, {**weights, "shape": shape}, [2, 4, 3])
    state = imported(tmp_path, proto, drawn(2, 4, 3))
    holds(state, weights)
    assert len(state.arrays) == 1


def test_rows_of_a_table_are_looked_up_in_the_source(tmp_path: Path) -> None:
    nodes = [
        node("Gather", "table val_1", "rows", ""),
        node("ReduceSum", "rows val_2", "sum", "", keepdims=0),
        node("Add", "x sum", "y", ""),
    ]
    weights = {"table": drawn(5, 6)}
    indices = {"val_1": np.array([0, 2, 2, 1]), "val_2": np.array([0])}
    state = imported(tmp_path, exported(nodes, weights | indices, [2, 6]), X)
    holds(state, weights)
    assert len(state.arrays) == 1


@pytest.mark.parametrize("value", [0.0, 1.0, 2.6592])
@pytest.mark.parametrize("key", ["logit_scale", "head.logit_scale"])
def test_a_named_number_is_a_parameter(tmp_path: Path, value: float, key: str) -> None:
    nodes = [node("Exp", key, "e", "head"), node("Mul", "x e", "a", "head")]
    nodes.append(node("Mul", f"a {key}", "y", "head"))
    weights = {key: np.array(value, np.float32)}
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, weights)


@pytest.mark.parametrize("name", ["onnx::Mul_20", "add_1"])
def test_one_plus_a_weight_is_not_the_weight(tmp_path: Path, name: str) -> None:
    nodes = [
        node("RMSNormalization", f"x {name}", "n", "norm", axis=-1),
        node("Gemm", "n head.weight head.bias", "y", "head", transB=1),
    ]
    weights = {"head.weight": drawn(3, 6), "head.bias": drawn(3)}
    proto = exported(nodes, {name: 1 + drawn(6, seed=3), **weights}, [2, 6])
    proto.opset_import[0].version = 23
    state = imported(tmp_path, proto, X)
    holds(state, weights)
    assert "norm.weight" not in state.arrays
    assert set(state.parameters) == set(weights)
    assert "training=TrainingMode.PRESERVE" in notes(tmp_path)


@pytest.mark.parametrize("name", ["onnx::Mul_20", "val_8", "unsqueeze_1"])
def test_a_group_normalization_has_its_scale_with_more_axes(
    tmp_path: Path, name: str
) -> None:
    """The exporters compute with [C, 1, 1], which is the author's [C] in storage."""
    shapes = {"val_1": np.array([0, 3, -1]), "val_2": np.array([2, 6, 4, 4])}
    ones = {"val_3": np.ones(3, np.float32), "val_4": np.zeros(3, np.float32)}
    nodes = [
        node("Reshape", "x val_1", "r", "body/norm"),
        node("InstanceNormalization", "r val_3 val_4", "i", "body/norm"),
        node("Reshape", "i val_2", "n", "body/norm"),
        node("Mul", f"n {name}", "m", "body/norm"),
        node("Add", f"m {name}1", "a", "body/norm"),
        node("Conv", "a body.conv.weight", "y", "body/conv"),
    ]
    folded = {name: drawn(6, 1, 1), f"{name}1": drawn(6, 1, 1, seed=2)}
    weights = {"body.conv.weight": drawn(2, 6, 1, 1)}
    proto = exported(nodes, shapes | ones | folded | weights, [2, 6, 4, 4])
    state = imported(tmp_path, proto, drawn(2, 6, 4, 4))
    norm = {"body.norm.weight": drawn(6), "body.norm.bias": drawn(6, seed=2)}
    holds(state, weights | norm)
    assert len(state.arrays) == 3
    assert notes(tmp_path) == ""


def test_a_mean_of_zeros_is_not_subtracted(tmp_path: Path) -> None:
    nodes = [
        node("Sub", "x mean", "c", ""),
        node("Mul", "c head.scale", "y", "head"),
    ]
    weights = {"head.scale": drawn(6)}
    zeros = {"mean": np.zeros((1, 6), np.float32)}
    state = imported(tmp_path, exported(nodes, weights | zeros, [2, 6]), X)
    assert set(state.arrays) == set(weights)


def test_a_table_of_relative_positions_is_a_buffer(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x onnx::MatMul_5", "h", "attn/qk"),
        node("Add", "h onnx::Add_7", "s", "attn"),
        node("Mul", "s attn.gamma", "y", "attn"),
    ]
    folded = {"onnx::MatMul_5": drawn(6, 6), "onnx::Add_7": drawn(2, 6, seed=4)}
    weights = {"attn.gamma": drawn(6)}
    state = imported(tmp_path, exported(nodes, folded | weights, [2, 6]), X)
    holds(state, weights)
    assert state.parameters == {"attn.gamma", "attn.qk.weight"}
    assert "attn.folded_bias" in state.arrays
    assert "attn" in notes(tmp_path)


def test_a_tensor_made_in_forward_is_not_trained(tmp_path: Path) -> None:
    """``torch.export`` names it below the module whose ``forward`` makes it."""
    name = "block.lifted_tensor_0"
    nodes = [
        node("Add", f"x {name}", "a", "block"),
        node("Mul", "a block.scale", "y", "block"),
    ]
    weights = {name: drawn(6, seed=3), "block.scale": drawn(6)}
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, {"block.scale": weights["block.scale"]})
    assert state.parameters == {"block.scale"}


def test_a_folded_batch_norm_is_noted(tmp_path: Path) -> None:
    nodes = [node("Conv", "x onnx::Conv_5 onnx::Conv_6", "y", "body/0")]
    folded = {"onnx::Conv_5": drawn(4, 3, 3, 3), "onnx::Conv_6": drawn(4)}
    proto = exported(nodes, folded, [2, 3, 6, 6])
    state = imported(tmp_path, proto, drawn(2, 3, 6, 6))
    assert len(state.parameters) == 2
    assert "optimize=False" in notes(tmp_path)
    assert "do_constant_folding=False" in notes(tmp_path)


def test_what_was_not_folded_is_not_noted(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x val_3", "h", "a"),
        node("Add", "h a.bias", "y", "a"),
    ]
    proto = exported(nodes, {"val_3": drawn(6, 4), "a.bias": drawn(4)}, [2, 6])
    state = imported(tmp_path, proto, X)
    assert state.parameters == {"a.weight", "a.bias"}
    assert notes(tmp_path) == ""


def test_sums_begin_with_zeros_that_are_not_trained(tmp_path: Path) -> None:
    zeros = np.zeros((4, 6), np.float32)
    nodes = [
        node("Mul", "x conv.scale", "h", "conv"),
        node("ScatterND", "zeros val_1 h", "y", "conv", reduction="add"),
    ]
    stored = {"zeros": zeros, "val_1": np.array([[1], [3]])}
    weights = {"conv.scale": drawn(6)}
    state = imported(tmp_path, exported(nodes, stored | weights, [2, 6]), X)
    holds(state, weights)
    assert state.parameters == {"conv.scale"}


ROWS = np.outer(np.arange(5.0), 100.0 ** -(np.arange(6) / 6)).astype(np.float32)
PE = np.where(np.arange(6) % 2 == 0, np.sin(ROWS), np.cos(ROWS)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("encode.pe", PE),
        ("window", np.hanning(6).astype(np.float32)),
        ("stft.window", np.hanning(6).astype(np.float32)),
        ("pixel_mean", drawn(6)),
        ("head.anchors", drawn(5, 6)),
        ("codebook", drawn(5, 6)),
    ],
)
def test_what_is_commonly_a_buffer_is_one(
    tmp_path: Path, name: str, array: Array
) -> None:
    rows = node("Reshape", "x val_1", "r", "")
    nodes = [rows, node("Mul", f"r {name}", "a", ""), node("Mul", "a w", "y", "")]
    weights = {"w": drawn(6)}
    proto = exported(
        nodes, {name: array, "val_1": np.array([2, 1, 6]), **weights}, [2, 6]
    )
    state = imported(tmp_path, proto, X)
    holds(state, weights)
    holds(state, {name: array}, trained=False)


@pytest.mark.parametrize("slope", (np.full(4, 0.25), np.linspace(0.1, 0.7, 4)))
def test_slopes_that_the_exporter_reshaped_are_parameters(
    tmp_path: Path, slope: Array
) -> None:
    """The exporter stores ``[4]`` as ``[1, 4, 1]`` under another name."""
    nodes = [
        node("Mul", "x net.0.scale", "a", "net.0"),
        node("Reshape", "a val_1", "b", ""),
        node("PRelu", "b val_2", "y", "net.1"),
    ]
    weights = {"net.0.scale": drawn(6)}
    slopes = slope.astype(np.float32).reshape(1, 4, 1)
    stored = {"val_1": np.array([-1, 4, 3]), "val_2": slopes}
    state = imported(tmp_path, exported(nodes, weights | stored, [2, 6]), X)
    holds(state, weights)
    assert state.parameters == {"net.0.scale", "slope"}


def test_layouts_of_a_parameter_are_made_in_the_source(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", "a.e val_1", "m", "a"),
        node("Transpose", "m", "t", "a", perm=[1, 0]),
        node("MatMul", "x t", "h", "a"),
        node("Reshape", "a.c val_2", "c", "a"),
        node("Add", "h c", "y", "a"),
    ]
    weights = {"a.e": drawn(24), "a.c": drawn(2, 2)}
    shapes = {"val_1": np.array([4, 6]), "val_2": np.array([1, 4])}
    state = imported(tmp_path, exported(nodes, weights | shapes, [2, 6]), X)
    holds(state, weights)
    assert len(state.arrays) == 2


def test_a_step_trains_the_parameter_itself(tmp_path: Path) -> None:
    """The gradient of ``x * -exp(A)`` by ``A`` is ``x * -exp(A)``."""
    import burn

    nodes = [node("Exp", "A", "e", ""), node("Neg", "e", "n", "")]
    nodes.append(node("Mul", "x n", "y", ""))
    a = drawn(6)
    file = saved(tmp_path / "model.onnx", exported(nodes, {"A": a}, [2, 6]))
    model = load(file).to(burn.Autodiff(burn.Cpu()))
    ((key, box),) = model.parameters()
    grads = model(burn.tensor(X)).sum().backward()  # type: ignore[operator]
    assert key == "A"
    expected = (X * -np.exp(a)).sum(0)
    np.testing.assert_allclose(grads[box].numpy(), expected, rtol=1e-5)


def layer(number: int, x: str, y: str) -> onnx.NodeProto:
    weights = f"{number}.weight {number}.bias"
    return node("Gemm", f"{x} {weights}", y, str(number), transB=1)


def numbered(*numbers: int) -> dict[str, Array]:
    results: dict[str, Array] = {}
    for n in numbers:
        results |= {f"{n}.weight": drawn(6, 6, seed=n), f"{n}.bias": drawn(6, seed=n)}
    return results


@pytest.mark.parametrize("last", ["", "Softmax", "Neg"])
def test_a_model_that_is_a_list_keeps_its_keys(tmp_path: Path, last: str) -> None:
    nodes = [layer(0, "x", "a"), node("Relu", "a", "b", "1")]
    nodes.append(layer(3, "b", "c" if last else "y"))
    if last:
        nodes.append(node(last, "c", "y", "4"))
    weights = numbered(0, 3)
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, weights)
    assert set(state.arrays) == set(weights)
    assert "(nn.Sequential)" in (tmp_path / "net.py").read_text("utf-8")


def test_lists_in_a_list_keep_their_keys(tmp_path: Path) -> None:
    weights: dict[str, Array] = {}
    nodes, x = [], "x"
    for n in range(6):
        weights |= {f"{n}.{key}": a for key, a in numbered(0).items()}
        names = f"{x} {n}.0.weight {n}.0.bias"
        nodes += [
            node("Gemm", names, f"h{n}", f"{n}/0", transB=1),
            node("Relu", f"h{n}", f"r{n}" if n < 5 else "y", f"{n}/1"),
        ]
        x = f"r{n}"
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, weights)
    assert set(state.arrays) == set(weights)


def test_parameters_in_a_list_keep_their_numbers(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "x scales.0", "a", ""),
        node("Add", "a scales.2", "y", ""),
    ]
    weights = {"scales.0": drawn(6), "scales.2": drawn(6, seed=2)}
    state = imported(tmp_path, exported(nodes, weights, [2, 6]), X)
    holds(state, weights)
    assert set(state.arrays) == set(weights)
