"""Keys of the modules that are generated from files with PyTorch's names."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from burn import nn
from burn.record import open_record
from burn_import import load
from tests.importer.onnx_files import saved
from tests.importer.torch_files import Array, drawn, exported, node
from tests.modules import call, generate, import_file, onnxruntime_outputs


def imported(tmp_path: Path, proto: onnx.ModelProto, x: Array) -> nn.Module:
    """Return the module of a file, after a comparison with onnxruntime."""
    path = saved(tmp_path / "model.onnx", proto)
    module, name = generate(path, tmp_path)
    actual = getattr(import_file(module), name).load()
    assert isinstance(actual, nn.Module)
    (expected,) = onnxruntime_outputs(path, {"x": x})
    for each in (actual, load(path)):
        np.testing.assert_allclose(call(each, [x])[0], expected, rtol=1e-5)
    return actual


def source(tmp_path: Path) -> str:
    return (tmp_path / "net.py").read_text("utf-8")


def keys(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {key: tensor.shape for key, tensor in module.state_dict().items()}


def kinds(module: nn.Module) -> dict[str, bool]:
    """Return whether each array is trainable."""
    return {path: isinstance(box, nn.Parameter) for path, box in module.boxes()}


X = np.array([[1, 4, 2], [0, 3, 3]])
FLOATS = drawn(2, 3, 6, seed=9)


def language_model(back: Array, name: str) -> onnx.ModelProto:
    nodes = [
        node("Gather", "lm_head.weight x", "a", "transformer/wte"),
        node("Tanh", "a", "b", "transformer"),
        node("MatMul", f"b {name}", "y", "lm_head"),
    ]
    weights = {"lm_head.weight": drawn(5, 6), name: back}
    return exported(nodes, weights, [2, 3], kind=TensorProto.INT64)


@pytest.mark.parametrize("name", ["val_12", "onnx::MatMul_12"])
def test_a_projection_back_is_tied_to_the_table(tmp_path: Path, name: str) -> None:
    module = imported(tmp_path, language_model(drawn(5, 6).T, name), X)
    assert keys(module) == {"transformer.wte.weight": (5, 6), "lm_head.weight": (5, 6)}
    assert len(list(module.parameters())) == 1
    assert "self.lm_head.weight = self.transformer.wte.weight" in source(tmp_path)
    assert list(open_record(tmp_path / "net.safetensors")) == ["transformer.wte.weight"]


def test_a_projection_of_other_numbers_is_its_own(tmp_path: Path) -> None:
    back = drawn(6, 5, seed=3)
    module = imported(tmp_path, language_model(back, "val_12"), X)
    assert len(list(module.parameters())) == 2
    np.testing.assert_array_equal(module.state_dict()["lm_head.weight"].numpy(), back.T)


def two_layers(second: str, bias: Array) -> onnx.ModelProto:
    nodes = [
        node("Gemm", "x a.weight a.bias", "h", "a", transB=1),
        node("Gemm", "h a.weight a.bias", "y", second, transB=1),
    ]
    return exported(nodes, {"a.weight": drawn(6, 6), "a.bias": bias}, [2, 6])


def test_one_weight_in_two_modules_is_tied(tmp_path: Path) -> None:
    module = imported(tmp_path, two_layers("b", drawn(6)), FLOATS[:, 0])
    assert list(keys(module)) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert [path for path, _ in module.parameters()] == ["a.weight", "a.bias"]


def test_zeros_that_an_exporter_merged_are_not_tied(tmp_path: Path) -> None:
    module = imported(tmp_path, two_layers("b", np.zeros(6, np.float32)), FLOATS[:, 0])
    assert [p for p, _ in module.parameters()] == ["a.weight", "a.bias", "b.bias"]


def test_a_module_that_is_called_again_is_one(tmp_path: Path) -> None:
    module = imported(tmp_path, two_layers("a_1", drawn(6)), FLOATS[:, 0])
    assert list(keys(module)) == ["a.weight", "a.bias"]


def test_a_table_used_by_its_module_is_read_there(tmp_path: Path) -> None:
    nodes = [
        node("Gather", "emb.table.weight x", "a", "emb/table"),
        node("MatMul", "a val_3", "y", "emb"),
    ]
    weights = {"emb.table.weight": drawn(5, 6), "val_3": drawn(6, 6, seed=2)}
    module = imported(
        tmp_path, exported(nodes, weights, [2, 3], kind=TensorProto.INT64), X
    )
    assert "emb.table.weight" in keys(module)


@pytest.mark.parametrize("outer", ["", "quantize"])
def test_a_product_with_a_table_beside_it_is_no_second_layer(
    tmp_path: Path, outer: str
) -> None:
    """A codebook: the nearest row of a table is computed, then gathered."""
    inner = f"{outer}/codes".strip("/")
    key = f"{inner.replace('/', '.')}.weight"
    nodes = [
        node("Gemm", f"x {key}", "a", outer, transB=1),
        node("ArgMax", "a", "b", outer, axis=1, keepdims=0),
        node("Gather", f"{key} b", "y", inner),
    ]
    graph = exported(nodes, {key: drawn(5, 6)}, [2, 6])
    module = imported(tmp_path, graph, FLOATS[:, 0])
    assert keys(module) == {key: (5, 6)}


def test_an_own_parameter_that_a_module_is_given_is_one(tmp_path: Path) -> None:
    """Decoder queries: expanded by the model, added to by its first layer."""
    nodes = [
        node("Add", "x queries", "a", ""),
        node("Gemm", "a layer.up.weight", "b", "layer/up", transB=1),
        node("Add", "b queries", "c", "layer"),
        node("Gemm", "c layer.down.weight", "y", "layer/down", transB=1),
    ]
    weights = {"layer.up.weight": drawn(6, 6), "layer.down.weight": drawn(4, 6, seed=2)}
    graph = exported(nodes, {"queries": drawn(2, 6, seed=3), **weights}, [2, 6])
    module = imported(tmp_path, graph, FLOATS[:, 0])
    assert set(keys(module)) == {"queries", "layer.queries", *weights}
    assert len(list(module.parameters())) == 3
    assert set(open_record(tmp_path / "net.safetensors")) == {"queries", *weights}


def test_a_turned_copy_of_an_own_parameter_is_tied(tmp_path: Path) -> None:
    """A pattern memory whose transpose the exporter stores as well."""
    nodes = [
        node("MatMul", "x t", "a", ""),
        node("Softmax", "a", "b", "", axis=1),
        node("MatMul", "b patterns", "y", ""),
    ]
    patterns = drawn(5, 6)
    graph = exported(nodes, {"patterns": patterns, "t": patterns.T}, [2, 6])
    module = imported(tmp_path, graph, FLOATS[:, 0])
    assert list(keys(module).values()) == [(5, 6), (5, 6)]
    assert len(list(module.parameters())) == 1
    assert list(open_record(tmp_path / "net.safetensors")) == ["patterns"]


def test_a_matrix_that_is_not_turned_keeps_its_layout(tmp_path: Path) -> None:
    nodes = [node("Gemm", "x h.c.weight h.c.bias", "y", "h/c")]
    weights = {"h.c.weight": drawn(6, 4), "h.c.bias": drawn(4)}
    module = imported(tmp_path, exported(nodes, weights, [2, 6]), FLOATS[:, 0])
    assert keys(module) == {"h.c.weight": (6, 4), "h.c.bias": (4,)}
    assert "nn.Conv1D(4, 6)" in source(tmp_path)


def test_the_parameters_of_an_author_keep_their_names(tmp_path: Path) -> None:
    nodes = [
        node("Gemm", "x cell.weight_ih cell.bias_ih", "a", "cell", transB=1),
        node("Mul", "a block.lambda_1", "b", "block"),
        node("MatMul", "b block.proj_in", "y", "block"),
    ]
    weights = {
        "cell.weight_ih": drawn(4, 6),
        "cell.bias_ih": drawn(4),
        "block.lambda_1": drawn(4),
        "block.proj_in": drawn(4, 2),
    }
    module = imported(tmp_path, exported(nodes, weights, [2, 6]), FLOATS[:, 0])
    assert keys(module) == {key: array.shape for key, array in weights.items()}
    for key, array in weights.items():
        np.testing.assert_array_equal(module.state_dict()[key].numpy(), array)


def test_what_runs_elsewhere_is_where_its_name_says(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "x enc.rel.weight", "a", "enc"),
        node("Gemm", "a enc.layers.0.lin.weight", "y", "enc/layers.0/lin", transB=1),
    ]
    weights = {"enc.rel.weight": drawn(6), "enc.layers.0.lin.weight": drawn(4, 6)}
    module = imported(tmp_path, exported(nodes, weights, [2, 6]), FLOATS[:, 0])
    assert set(keys(module)) == set(weights)


def test_a_model_that_is_wrapped_has_its_key_in_front(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x onnx::MatMul_7", "a", "enc/lin"),
        node("Add", "a m.enc.lin.bias", "b", "enc/lin"),
        node("MatMul", "b onnx::MatMul_8", "y", "head"),
    ]
    weights = {
        "onnx::MatMul_7": drawn(6, 4),
        "m.enc.lin.bias": drawn(4),
        "onnx::MatMul_8": drawn(4, 2),
    }
    module = imported(tmp_path, exported(nodes, weights, [2, 6]), FLOATS[:, 0])
    assert set(keys(module)) == {"m.enc.lin.weight", "m.enc.lin.bias", "m.head.weight"}


def test_buffers_are_told_from_weights(tmp_path: Path) -> None:
    angles = (10000.0 ** -(np.arange(8) / 8)).astype(np.float32)
    mask = np.where(np.tri(8, dtype=bool), 0.0, -3e38).astype(np.float32)
    nodes = [
        node("Mul", "x rot.inv_freq", "a", "rot"),
        node("Mul", "a mul_3", "b", "rot"),
        node("Add", "b att.scale", "c", "att"),
        node("Add", "c att.attn_mask", "d", "att"),
        node("Add", "d sub_1", "y", "att"),
    ]
    weights = {
        "rot.inv_freq": drawn(8),
        "mul_3": angles,
        "att.scale": drawn(8),
        "att.attn_mask": mask,
        "sub_1": mask,
    }
    module = imported(tmp_path, exported(nodes, weights, [8, 8]), drawn(8, 8, seed=5))
    actual = kinds(module)
    assert [path for path, trained in actual.items() if trained] == ["att.scale"]
    assert len(actual) == 4  # the triangle is computed


def test_positions_and_types_without_a_key_are_computed(tmp_path: Path) -> None:
    nodes = [
        node("Add", "x expand", "a", "emb"),
        node("Add", "a arange_1", "y", "emb"),
    ]
    weights = {
        "expand": np.zeros((1, 12), np.int64),
        "arange_1": np.arange(12)[None],
    }
    proto = exported(nodes, weights, [2, 12], kind=TensorProto.INT64)
    module = imported(tmp_path, proto, np.ones((2, 12), np.int64))
    assert keys(module) == {}


def test_what_computes_with_a_weight_stays(tmp_path: Path) -> None:
    nodes = [
        node("Exp", "att.logit_scale", "a", "att"),
        node("Mul", "x a", "y", "att"),
    ]
    proto = exported(nodes, {"att.logit_scale": drawn(6)}, [2, 6])
    module = imported(tmp_path, proto, FLOATS[:, 0])
    assert keys(module) == {"att.logit_scale": (6,)}
    assert kinds(module) == {"att.logit_scale": True}


def test_a_turned_array_is_computed_from_what_has_the_key(tmp_path: Path) -> None:
    nodes = [
        node("Transpose", "h.c.weight", "t", "h/c", perm=[1, 0]),
        node("Mul", "x t", "y", "h/c"),
    ]
    proto = exported(nodes, {"h.c.weight": drawn(6, 6)}, [6, 6])
    module = imported(tmp_path, proto, drawn(6, 6, seed=5))
    assert list(keys(module)) == ["h.c.weight"]
    np.testing.assert_array_equal(module.state_dict()["h.c.weight"], drawn(6, 6))


def test_norms_without_weights_have_no_keys_of_any(tmp_path: Path) -> None:
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    statistics = "bn.running_mean bn.running_var"
    nodes = [
        node("InstanceNormalization", "x new.weight new.bias", "a", "new"),
        node("InstanceNormalization", "a val_1 val_2", "b", "plain"),
        node("BatchNormalization", f"b val_1 val_2 {statistics}", "y", "bn"),
    ]
    weights = {"new.weight": ones, "new.bias": zeros, "val_1": ones, "val_2": zeros}
    weights |= {"bn.running_mean": drawn(3), "bn.running_var": drawn(3) ** 2 + 1}
    x = drawn(2, 3, 4, 5, seed=6)
    module = imported(tmp_path, exported(nodes, weights, [2, 3, 4, 5]), x)
    # An untrained weight may have the same numbers.
    assert set(keys(module)) == {"new.weight", "new.bias", *statistics.split()}
    assert "self.bn = nn.BatchNorm2d(3, affine=False)" in source(tmp_path)
