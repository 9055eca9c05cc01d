"""Modules ``layer1``, ``layer2``, ... become a list; their keys stay the same."""

from pathlib import Path

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from burn import nn
from burn_import.codegen.containers.progressions import progression
from burn_import.pipeline import import_model

WIDTH, GROWTH = 4, 2


def layer(number: int, at: str) -> list[NodeProto]:
    """Return a layer of two convolutions, concatenated with its input features."""
    scope, n = f"block.layer{number}", number
    slash = "/" + scope.replace(".", "/")
    first, second = f"{scope}.conv1.weight", f"{scope}.conv2.weight"
    return [
        helper.make_node("Conv", [at, first], [f"a{n}"], f"{slash}/conv1/Conv"),
        helper.make_node("Relu", [f"a{n}"], [f"r{n}"], f"{slash}/Relu"),
        helper.make_node("Conv", [f"r{n}", second], [f"b{n}"], f"{slash}/conv2/Conv"),
        helper.make_node("Concat", [at, f"b{n}"], [f"x{n}"], f"/block/Cat_{n}", axis=1),
    ]


def dense(path: Path, count: int) -> Path:
    """Write a dense block: each layer reads the features of all before it."""
    nodes: list[NodeProto] = []
    stored = []
    rng = np.random.default_rng(0)
    at, width = "x", WIDTH
    for number in range(1, count + 1):
        for name, channels in (("conv1", width), ("conv2", GROWTH)):
            weight = rng.normal(size=(GROWTH, channels, 1, 1)).astype(np.float32)
            key = f"block.layer{number}.{name}.weight"
            stored.append(numpy_helper.from_array(weight, key))
        nodes += layer(number, at)
        at, width = f"x{number}", width + GROWTH
    given, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", channels, 3, 3])
        for name, channels in (("x", WIDTH), (at, width))
    )
    graph = helper.make_graph(nodes, "dense", [given], [result], stored)
    model = helper.make_model(
        graph, producer_name="pytorch", opset_imports=[helper.make_opsetid("", 17)]
    )
    path.write_bytes(model.SerializeToString())
    return path


def test_numbered_layers_are_a_list_with_the_keys_of_the_file(tmp_path: Path) -> None:
    result = import_model(dense(tmp_path / "dense.onnx", 5))
    assert 'record_names = {"layers": "layer{1}"}' in result.text
    assert "+ 2 * i) for i in range(5)" in result.text
    assert "for layer in self.layers:" in result.text
    expected = {f"block.layer{n}.conv{k}.weight" for n in range(1, 6) for k in (1, 2)}
    assert {key for key, _ in result.weights} == expected


def test_few_numbered_layers_keep_their_names(tmp_path: Path) -> None:
    text = import_model(dense(tmp_path / "dense.onnx", 3)).text
    assert "self.layer3" in text and "{1}" not in text


def test_a_list_lends_its_members_numbered_keys() -> None:
    class Block(nn.Module):
        record_names = {"layers": "layer{1}"}

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(2))

    block = Block()
    assert list(block.state_dict()) == ["layer1.weight", "layer2.weight"]
    state = {f"layer{n}.weight": np.full((2, 2), n, np.float32) for n in (1, 2)}
    block.load_state_dict(state)
    assert block.layers[1].weight.value.numpy().tolist() == [[2, 2], [2, 2]]
    assert [path for path, _ in block.modules()] == ["", "layer1", "layer2"]


def test_calls_whose_numbers_grow_evenly_are_one() -> None:
    assert progression(["A(4, 0.5)", "A(6, 0.5)", "A(8, 0.5)"]) == "A(4 + 2 * i, 0.5)"
    assert progression(["A((0, 9))", "A((1, 8))", "A((2, 7))"]) == "A((i, 9 - i))"
    assert progression(["A(4)", "A(6)", "A(9)"]) == ""
    assert progression(["A(4)", "B(6)", "A(8)"]) == ""
    assert progression(["A(0.5)", "A(1.5)", "A(2.5)"]) == ""
    # A term would be part of the quotient.
    assert progression(["A(n // 2)", "A(n // 4)"]) == ""


def test_lists_of_different_depth_keep_their_own_keys(tmp_path: Path) -> None:
    class Block(nn.Module):
        record_names = {"layers": "layer{1}"}

        def __init__(self, depth: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(depth))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([Block(2), Block(3)])

    net = Net()
    expected = [f"blocks.0.layer{n}" for n in (1, 2)]
    expected += [f"blocks.1.layer{n}" for n in (1, 2, 3)]
    keys = [f"{path}.{leaf}" for path in expected for leaf in ("weight", "bias")]
    assert list(net.state_dict()) == keys
    net.save_weights(tmp_path / "net.safetensors")
    other = Net().load_weights(tmp_path / "net.safetensors")
    for key, tensor in other.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), net.state_dict()[key].numpy())


def test_a_weight_tied_into_a_list_is_listed_under_each_key() -> None:
    class Net(nn.Module):
        record_names = {"layers": "layer{1}"}

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(2))
            self.head = nn.Linear(2, 2, bias=False)
            self.head.weight = self.layers[1].weight

    net = Net()
    assert list(net.state_dict()) == ["layer1.weight", "layer2.weight", "head.weight"]
    state = {"layer1.weight": np.ones((2, 2), np.float32)}
    state |= dict.fromkeys(
        ("layer2.weight", "head.weight"), np.full((2, 2), 3, np.float32)
    )
    net.load_state_dict(state)
    assert net.layers[1].weight.value.numpy().tolist() == [[3, 3], [3, 3]]
    assert net.head.weight is net.layers[1].weight
