"""Exported programs of PyTorch: read without it, refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export import read
from burn_import.pipeline import import_model
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from tests.importer.exported_files import (
    archive,
    call,
    linear_program,
    meta,
    program,
    ref,
    saved,
)


def test_a_program_computes_what_it_says(tmp_path: Path) -> None:
    content, weights = linear_program()
    model: Any = load(saved(tmp_path, content, weights))
    assert {key: value.shape for key, value in model.state_dict().items()} == {
        "head.weight": (3, 5),
        "head.bias": (3,),
    }
    for batch in (2, 5):
        x = np.random.default_rng(batch).normal(size=(batch, 4, 5)).astype(np.float32)
        expected = np.maximum(x @ weights["head.weight"].T + weights["head.bias"], 0)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_what_is_not_trained_yet_is_a_weight(tmp_path: Path) -> None:
    content, weights = linear_program()
    weights["head.bias"] = np.zeros(3, np.float32)
    weights["scale"] = np.ones(3, np.float32)
    rows = meta("float32", ["s7", 4, 3])
    nodes = [
        content["graph_module"]["graph"]["nodes"][0],
        call("aten.mul.Tensor", "mul", self=ref("linear"), other=ref("p_scale")),
    ]
    values = {"linear": rows, "mul": rows}
    inputs = {"x": meta("float32", ["s7", 4, 5])}
    content = program(inputs, weights, nodes, values, ["mul"])
    model: Any = load(saved(tmp_path, content, weights))
    assert model.state_dict().keys() == weights.keys()


def test_parameters_and_buffers_are_told_apart(tmp_path: Path) -> None:
    two = meta("float32", [2])
    mean, mask = np.array([[0.5, 2.0], [1.0, -1.0]], np.float32)
    weights = {"mean": mean, "mask": mask}  # misleading names
    nodes = [
        call("aten.mul.Tensor", "mul", self=ref("x"), other=ref("b_mean")),
        call("aten.add.Tensor", "add", self=ref("mul"), other=ref("p_mask")),
    ]
    values = {"mul": two, "add": two}
    content = program({"x": two}, weights, nodes, values, ["add"], ["mean"])
    model: Any = load(saved(tmp_path, content, weights))
    assert sorted(model.state_dict()) == ["mask", "mean"]
    assert [name for name, _ in model.parameters()] == ["mask"]


def test_everything_that_is_not_supported_is_named(tmp_path: Path) -> None:
    content, weights = linear_program()
    nodes = content["graph_module"]["graph"]["nodes"]
    nodes[0]["target"] = "torch.ops.aten.frobnicate.default"
    nodes[1]["target"] = "torch.ops.aten.knurl.default"
    with pytest.raises(UnsupportedModel) as caught:
        read(saved(tmp_path, content, weights))
    assert str(caught.value).splitlines() == [
        "node 'linear' (aten.frobnicate.default): this operator is not supported",
        "node 'relu' (aten.knurl.default): this operator is not supported",
    ]


def test_steps_of_vmap_are_refused_with_the_remedy(tmp_path: Path) -> None:
    content, weights = linear_program()
    node = content["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch._functorch.predispatch._add_batch_dim"
    with pytest.raises(UnsupportedModel, match=r"program\.run_decompositions\(\)"):
        read(saved(tmp_path, content, weights))


def test_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    content, weights = linear_program()
    node = content["graph_module"]["graph"]["nodes"][1]
    node["inputs"].append({"name": "slope", "arg": {"as_float": 0.5}, "kind": 1})
    with pytest.raises(UnsupportedModel, match=r"'relu' .*expected arguments .*slope"):
        read(saved(tmp_path, content, weights))


def test_another_schema_is_refused(tmp_path: Path) -> None:
    content, weights = linear_program()
    content["schema_version"]["major"] = 9
    with pytest.raises(UnsupportedModel, match="expected a program of schema 8, got 9"):
        read(saved(tmp_path, content, weights))


def test_a_change_in_place_is_seen_by_what_follows(tmp_path: Path) -> None:
    two = {name: meta("float32", [2, 3]) for name in ("x", "exp", "add_", "mul")}
    nodes = [
        call("aten.exp.default", "exp", self=ref("x")),
        call("aten.add_.Tensor", "add_", self=ref("exp"), other={"as_int": 1}),
        call("aten.mul.Tensor", "mul", self=ref("exp"), other=ref("x")),
    ]
    content = program({"x": two["x"]}, {}, nodes, two, ["mul"])
    model: Any = load(saved(tmp_path, content, {}))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, (np.exp(x) + 1) * x, rtol=1e-5)


def counted(*nodes: Any, result: str = "y") -> tuple[Any, dict[str, Any]]:
    """Return a program that counts its calls in a buffer, by ``nodes``."""
    weights = {"steps.count": np.array([5.0, 7.0], np.float32)}
    two = meta("float32", [2])
    names = {node["outputs"][0]["as_tensor"]["name"] for node in nodes}
    values = dict.fromkeys(names, two)
    output = program({"x": two}, weights, nodes, values, [result], weights.keys())
    return output, weights


COUNT = ref("b_steps_count")


def test_a_buffer_that_is_changed_in_place_is_kept(tmp_path: Path) -> None:
    content, weights = counted(
        call("aten.add_.Tensor", "add_", self=COUNT, other={"as_int": 1}),
        call("aten.mul_.Tensor", "mul_", self=ref("add_"), other={"as_int": 2}),
        call("aten.mul.Tensor", "y", self=COUNT, other=ref("x")),
    )
    path = saved(tmp_path, content, weights)
    x = np.array([1.0, -2.0], np.float32)
    for _ in range(2):  # each begins with the stored value
        held = weights["steps.count"]
        model: Any = load(path)
        for _ in range(3):
            held = (held + 1) * 2
            np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), held * x)
            kept = model.state_dict()["steps.count"].numpy()
            np.testing.assert_array_equal(kept, held)


def test_a_buffer_that_the_signature_says_to_change_is_kept(tmp_path: Path) -> None:
    content, weights = counted(
        call("aten.add.Tensor", "add", self=COUNT, other={"as_int": 1}),
        call("aten.mul.Tensor", "y", self=COUNT, other=ref("x")),
    )
    body = {"arg": {"name": "add"}, "buffer_name": "steps.count"}
    specs = content["graph_module"]["signature"]["output_specs"]
    specs.insert(0, {"buffer_mutation": body})
    x = np.array([1.0, -2.0], np.float32)
    model: Any = load(saved(tmp_path, content, weights))
    for held in ([5.0, 7.0], [6.0, 8.0]):
        np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), held * x)
    body["buffer_name"] = "steps.time"
    with pytest.raises(InvalidModel, match=r"expected a tensor 'steps\.time'"):
        load(saved(tmp_path, content, weights))


def through(target: str, **args: Any) -> tuple[Any, dict[str, Any]]:
    """Return a program that adds to a buffer through a view of it."""
    return counted(
        call(target, "v", self=COUNT, **args),
        call("aten.add_.Tensor", "add_", self=ref("v"), other={"as_int": 1}),
        call("aten.mul.Tensor", "y", self=COUNT, other=ref("x")),
    )


def test_a_buffer_that_is_changed_by_a_view_of_it_is_kept(tmp_path: Path) -> None:
    model: Any = load(saved(tmp_path, *through("aten.t.default")))
    x = np.array([1.0, -2.0], np.float32)
    for held in ([6.0, 8.0], [7.0, 9.0]):
        np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), held * x)


def test_a_change_of_what_may_be_a_copy_is_refused(tmp_path: Path) -> None:
    content, weights = through("aten.reshape.default", shape={"as_ints": [2]})
    with pytest.raises(UnsupportedModel, match="'add_' .*in place of 'v'"):
        read(saved(tmp_path, content, weights))


def test_a_change_in_place_of_what_was_viewed_before_is_done(tmp_path: Path) -> None:
    two = {name: meta("float32", [3, 2]) for name in ("t", "exp", "relu_", "y")}
    x = meta("float32", [2, 3])
    nodes = [
        call("aten.exp.default", "exp", self=ref("x")),
        call("aten.t.default", "t", self=ref("exp")),
        call("aten.relu_.default", "relu_", self=ref("t")),
        call("aten.t.default", "y", self=ref("t")),
    ]
    content = program({"x": x}, {}, nodes, two | {"exp": x, "y": x}, ["y"])
    model: Any = load(saved(tmp_path, content, {}))
    array = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    actual = model(burn.tensor(array)).numpy()
    np.testing.assert_allclose(actual, np.exp(array), rtol=1e-6)


def test_a_change_in_place_of_what_is_viewed_is_refused(tmp_path: Path) -> None:
    two = {name: meta("float32", [2, 3]) for name in ("x", "exp", "add_")}
    two |= {"t": meta("float32", [3, 2])}
    nodes = [
        call("aten.exp.default", "exp", self=ref("x")),
        call("aten.t.default", "t", self=ref("exp")),
        call("aten.add_.Tensor", "add_", self=ref("exp"), other={"as_int": 1}),
    ]
    content = program({"x": two["x"]}, {}, nodes, two, ["t"])
    with pytest.raises(UnsupportedModel, match="'add_' .*in place of 'exp'"):
        read(saved(tmp_path, content, {}))


@pytest.mark.parametrize(
    ("dtype", "other", "result"),
    [("int64", {"as_float": 2.5}, "float32"), ("float16", {"as_int": 2}, "float16")],
)
def test_numbers_promote_as_in_pytorch(
    tmp_path: Path, dtype: str, other: Any, result: str
) -> None:
    x = meta(dtype, [2, 3])
    nodes = [call("aten.mul.Tensor", "mul", self=ref("x"), other=other)]
    content = program({"x": x}, {}, nodes, {"mul": meta(result, [2, 3])}, ["mul"])
    model: Any = load(saved(tmp_path, content, {}))
    array = np.arange(6).reshape(2, 3).astype(dtype)
    actual = model(burn.tensor(array)).numpy()
    assert actual.dtype == result
    np.testing.assert_array_equal(actual, array * next(iter(other.values())))


def test_a_weight_that_is_too_short_is_refused(tmp_path: Path) -> None:
    content, weights = linear_program()
    weights["head.bias"] = weights["head.bias"][:2]
    data = archive(content, weights)
    path = tmp_path / "net.pt2"
    path.write_bytes(data)
    with pytest.raises(InvalidModel, match="head"):
        load(path)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(archive(*linear_program())[:-30])
    with pytest.raises(UnreadableFile, match="net.pt2"):
        read(path)


def test_calls_of_the_root_stay_outside_of_the_last_block(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights, nodes, last = {}, [], "x"
    for block in range(3):
        path = f"blocks.{block}.linear"
        weights[f"{path}.weight"] = rng.normal(size=(5, 5)).astype(np.float32)
        weights[f"{path}.bias"] = rng.normal(size=5).astype(np.float32)
        around = f"L__self__,,Net;L__self__b,blocks.{block},app.Block"
        inside = f"{around};L__self__l,{path},torch.nn.modules.linear.Linear"
        names = {k: ref(f"p_{path}.{k}".replace(".", "_")) for k in ("weight", "bias")}
        nodes += [
            call("aten.linear.default", f"l{block}", inside, input=ref(last), **names),
            call("aten.tanh.default", f"t{block}", around, self=ref(f"l{block}")),
        ]
        last = f"t{block}"
    nodes.append(call("aten.exp.default", "y", self=ref(last)))
    kind = meta("float32", [2, 5])
    values = {node["name"]: kind for node in nodes}
    content = program({"x": kind}, weights, nodes, values, ["y"])
    text = import_model(saved(tmp_path, content, weights)).text
    assert text.count("(nn.Module):") == 2  # the model and one class of its blocks
