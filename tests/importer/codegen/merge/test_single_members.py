"""Classes that only hold or call one member are replaced by it; keys stay."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn
from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import


def imported(tmp_path: Path, net: ScopedNet, *outputs: str) -> Imported:
    """Return the module of ``net``, after its keys and its results were compared."""
    actual = check_import(tmp_path, net.model(*outputs), net.feeds(), flat=False)
    assert actual.keys == set(net.weights)
    state = {key: array * 2 for key, array in net.weights.items()}
    actual.module.load_state_dict(dict(state))
    for key, tensor in actual.module.state_dict().items():
        assert (tensor.numpy() == state[key]).all(), key
    return actual


def chain(net: ScopedNet, path: str, x: str) -> str:
    """Append two residual blocks of different sizes, in a list at ``path``."""
    for number, width in enumerate((6, 8)):
        scope = f"{path}.{number}"
        y = net.run("Relu", scope, net.linear(f"{scope}.up", x, 4, width))
        x = net.run("Add", scope, net.linear(f"{scope}.down", y, width, 4), x)
    return x


def test_a_class_that_calls_a_list(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    x = chain(net, "encoder.stages", net.run("Relu", "", x))
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert 'record_names = {"encoder": "encoder.stages"}' in actual.source
    assert "class Encoder" not in actual.source
    assert "x = self.encoder(ops.relu(self.stem(x)))" in actual.source


def test_the_paths_of_modules(tmp_path: Path) -> None:
    """Patterns, adapters and summaries read the names of keys."""
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    x = chain(net, "encoder.stages", net.run("Relu", "", x))
    module = imported(tmp_path, net, net.linear("head", x, 4, 3)).module
    assert "encoder.stages.1.down" in dict(module.modules())
    module.to(Autodiff(Cpu())).freeze("encoder.stages.0.*")
    free = {path for path, box in module.parameters() if box.requires_grad}
    assert "encoder.stages.1.up.bias" in free and "encoder.stages.0.up.bias" not in free
    nn.lora(module, "encoder.*.up", rank=2)
    added = {path for path, _ in module.parameters() if "lora" in path}
    assert {path.rpartition(".")[0] for path in added} == {
        "encoder.stages.0.up",
        "encoder.stages.1.up",
    }
    names = [line.split("  class")[0] for line in str(nn.summary(module)).splitlines()]
    assert any(line.startswith("  encoder.stages ") for line in names)
    assert any(line.startswith("    1 ") for line in names)


def test_partial_weights_and_gradients(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    x = chain(net, "encoder.stages", net.run("Relu", "", x))
    module = imported(tmp_path, net, net.linear("head", x, 4, 3)).module
    record = tmp_path / "part.safetensors"
    module.save_weights(record)
    assert "encoder.stages.0.up.weight" in burn.record.open_record(record)
    module.load_weights(record, Autodiff(Cpu()))
    assert callable(module)
    result = module(burn.tensor(np.ones((2, 4), np.float32), Autodiff(Cpu())))
    weight = dict(module.parameters())["encoder.stages.1.down.weight"]
    gradient = result.sum().backward()[weight]
    assert gradient.shape == (4, 8) and np.abs(gradient.numpy()).max() > 0


def test_a_class_that_only_owns_a_weight(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    x = net.run("Add", "", x, net.weight("positions.weight", 4))
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert 'record_names = {"positions": "positions.weight"}' in actual.source
    assert "class Positions" not in actual.source
    assert "+ self.positions" in actual.source


def test_a_class_that_only_owns_two_weights(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    x = net.run("Mul", "", x, net.weight("affine.scale", 4))
    x = net.run("Add", "", x, net.weight("affine.shift", 4))
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert "class Affine" not in actual.source
    assert "* self.affine_scale + self.affine_shift" in actual.source


def test_nested_classes_are_one_field(tmp_path: Path) -> None:
    net = ScopedNet()
    x = chain(net, "m.model.encoder.layers", net.input("x", 2, 4))
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert 'record_names = {"encoder": "m.model.encoder.layers"}' in actual.source
    assert "self.head(self.encoder(x))" in actual.source
    assert actual.source.count("class ") == 2


def test_elements_of_lists_have_their_number_in_keys(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for number in range(3):
        x = chain(net, f"stages.{number}.layers", x)
        x = net.run("Relu", "", x)
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert "class Stage(" not in actual.source
    assert 'record_names = {"stages": "stages.{0}.layers"}' in actual.source


@pytest.mark.parametrize("plain", [True, False])
def test_one_attribute_name_in_two_classes(tmp_path: Path, plain: bool) -> None:
    """``table.weight`` is read of a wrapper in one class, of a layer in the other."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for path in ("a", "b"):
        y = net.linear(f"{path}.up", x, 4, 4)
        table = net.weight(f"{path}.table.weight", 4)
        y = net.run("Add", path, y, table)
        if path == "b" and not plain:
            y = net.run("Mul", path, y, net.weight(f"{path}.table.scale", 4))
        x = net.run("Add", "", x, net.run("Tanh", path, y))
    actual = imported(tmp_path, net, net.linear("head", x, 4, 3))
    assert "class Table" not in actual.source
    assert ("self.table_scale" in actual.source) != plain


def test_equal_attributes_of_two_classes_of_a_list(tmp_path: Path) -> None:
    """The members of a list have other classes, and arrays of one name."""
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    for number, names in enumerate((("conv1", "conv2", "extra"), ("conv1", "conv2"))):
        for name in names:
            bias = net.weight(f"blocks.{number}.{name}.bias", 4)
            x = net.run("Tanh", "", net.run("Add", "", x, bias))
    source = imported(tmp_path, net, net.linear("head", x, 4, 3)).source
    assert "conv1_bias = nn.parameter(4)" in source
