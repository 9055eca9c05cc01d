"""Parameters of norms that a file stores as one array, since they are equal."""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from tests.importer.looped import normal
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import Array, generate, import_file

KEYS = ("weight", "bias", "running_mean", "running_var")
#: The names of a weight and a bias that are also the variance and the mean.
ONE = ("first.weight", "first.bias", "first.bias", "first.weight")


def norms(*operands: tuple[str, ...], paths: str = "first second") -> list[NodeProto]:
    """Return norms one after the other, in the modules ``paths``."""
    nodes = []
    for number, (path, names) in enumerate(zip(paths.split(), operands, strict=True)):
        given = "x" if number == 0 else f"v{number}"
        target = "y" if number == len(operands) - 1 else f"v{number + 1}"
        name = f"/{path}/BatchNormalization"
        nodes.append(
            helper.make_node("BatchNormalization", [given, *names], [target], name=name)
        )
    return nodes


def loaded(folder: Path, nodes: list[NodeProto], weights: dict[str, Array]) -> Any:
    """Return an instance of the module that is written for nodes."""
    arrays = tuple(stored(name, array) for name, array in weights.items())
    net = graph(nodes, {"x": ["n", 3, 4]}, initializers=arrays)
    proto = model(net, producer_name="pytorch")
    module, name = generate(saved(folder / "net.onnx", proto), folder)
    return getattr(import_file(module), name).load()


def initial(value: float) -> Array:
    """Return a vector of three equal numbers."""
    return np.full(3, value, np.float32)


def keys(*paths: str) -> set[str]:
    """Return the keys of batch norms."""
    return {f"{path}.{key}" for path in paths for key in KEYS}


def test_each_norm_has_its_own_parameters(tmp_path: Path) -> None:
    weights = {"first.weight": initial(1), "first.bias": initial(0)}
    net = loaded(tmp_path, norms(ONE, ONE), weights)
    assert set(net.state_dict()) == keys("first", "second")
    net.first.weight.set(net.first.weight.value * 2)
    state = net.state_dict()
    assert state["first.weight"].numpy().tolist() == [2, 2, 2]
    for key in ("first.running_var", "second.weight", "second.running_var"):
        assert state[key].numpy().tolist() == [1, 1, 1]


def test_a_norm_that_is_called_twice_has_one_weight(tmp_path: Path) -> None:
    weights = {"first.weight": initial(1), "first.bias": initial(0)}
    net = loaded(tmp_path, norms(ONE, ONE, paths="first first"), weights)
    assert set(net.state_dict()) == keys("first")


def test_trained_parameters_stay_shared(tmp_path: Path) -> None:
    weights = {"first.weight": np.abs(normal(3)) + 1, "first.bias": normal(3)}
    net = loaded(tmp_path, norms(ONE, ONE), weights)
    assert keys("second").isdisjoint(net.state_dict())
