"""Layers of a list with equal weights, which exporters store once, as new copies have.

``nn.TransformerEncoder`` copies its layer: until they are trained, all have the keys of
the first one in an ONNX file.
"""

from pathlib import Path
from typing import Any

import numpy as np

from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import

COUNT = 3


def imported(net: ScopedNet, x: str, folder: Path) -> Imported:
    return check_import(folder, net.model(x), net.feeds(), flat=False)


def layers(result: Imported) -> list[Any]:
    module: Any = result.module
    return list(module.layers)


def block_classes(result: Imported) -> set[type]:
    return set(map(type, layers(result)))


def test_a_projection_stays_in_its_element(tmp_path: Path) -> None:
    """The node has the scope of the module around the layer, as a function has."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    weight, bias = (f"layers.0.attn.out_proj.{name}" for name in ("weight", "bias"))
    net.weight(weight, 4, 4), net.weight(bias, 4)
    for n in range(COUNT):
        scope = f"layers.{n}.attn"
        y = net.run("Tanh", scope, net.run("Mul", scope, x, x))
        y = net.run("Gemm", scope, y, weight, bias, transB=1)
        x = net.run("Add", f"layers.{n}", x, net.run("Sigmoid", scope, y))
    result = imported(net, x, tmp_path)
    leaves = ("weight", "bias")
    expected = {f"layers.{n}.attn.out_proj.{x}" for n in range(COUNT) for x in leaves}
    assert result.keys == expected
    assert len(block_classes(result)) == 1
    loop = """        for layer in self.layers[1:]:
            layer.attn.out_proj.weight = self.layers[0].attn.out_proj.weight
            layer.attn.out_proj.bias = self.layers[0].attn.out_proj.bias
"""
    assert loop in result.source
    options = Options(stem="net", target="torch")
    assert loop in import_model(tmp_path / "model.onnx", options).text
    first, *others = (layer.attn.out_proj.weight for layer in layers(result))
    assert all(other is first for other in others)


def test_ties_of_some_elements_are_no_loop(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for n, key in enumerate(("layers.0.fc", "layers.1.fc", "layers.0.fc")):
        weight = net.weight(f"{key}.weight", 4, 4)
        y = net.run("Gemm", f"layers.{n}.fc", x, weight, transB=1)
        x = net.run("Add", f"layers.{n}", x, net.run("Tanh", f"layers.{n}", y))
    result = imported(net, x, tmp_path)
    assert "self.layers[2].fc.weight = self.layers[0].fc.weight" in result.source
    assert layers(result)[1].fc.weight is not layers(result)[0].fc.weight


def test_zeros_of_several_layers_name_none(tmp_path: Path) -> None:
    """A bias of zeros has the key of the layer that the exporter met first."""
    net = ScopedNet()
    x = net.input("x", 2, 3, 4)
    zeros = net.stored("layers.0.attn.out_proj.bias", np.zeros(4, np.float32))
    for n in range(COUNT):
        scope = f"layers.{n}.attn"
        y = net.run("MatMul", scope, x, net.weight(f"onnx::MatMul_{n}1", 4, 4))
        y = net.run("Tanh", scope, net.run("Add", scope, y, zeros))
        y = net.run("MatMul", scope, y, net.weight(f"onnx::MatMul_{n}2", 4, 4))
        x = net.run("Add", f"layers.{n}", x, net.run("Add", scope, y, zeros))
    result = imported(net, x, tmp_path)
    assert len(block_classes(result)) == 1
    assert "out_proj_2" not in result.source


def test_a_matrix_is_named_after_a_bias_of_all_elements(tmp_path: Path) -> None:
    """The matrices of new layers have one bias of zeros, or are equal themselves."""
    net = ScopedNet()
    x = net.input("x", 2, 3, 4)
    zeros = net.stored("layers.0.attn.in_proj_bias", np.zeros(4, np.float32))
    for n in range(COUNT):
        scope = f"layers.{n}.attn"
        matrix = net.weight(f"onnx::MatMul_{100 + min(n, 1)}", 4, 4)
        y = net.run("MatMul", scope, net.run("Sin", scope, x), matrix)
        y = net.run("Tanh", scope, net.run("Add", scope, zeros, y))
        out = net.weight(f"layers.{n}.attn.out_proj.weight", 4, 4)
        y = net.run("Sigmoid", scope, net.run("MatMul", f"{scope}.out_proj", y, out))
        x = net.run("Add", f"layers.{n}", x, y)
    result = imported(net, x, tmp_path)
    leaves = ("in_proj_weight", "in_proj_bias", "out_proj.weight")
    expected = {f"layers.{n}.attn.{leaf}" for n in range(COUNT) for leaf in leaves}
    assert result.keys == expected
    assert len(block_classes(result)) == 1


def test_parts_of_a_bias_are_taken_in_each_module(tmp_path: Path) -> None:
    """Exporters merge the equal splits of equal biases."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    bias = net.weight("layers.0.attn.in_proj_bias", 8)
    bounds = [net.stored(f"bound{n}", np.array([n])) for n in (0, 4, 8)]
    parts = [
        net.run("Slice", "layers.0.attn", bias, *bounds[n : n + 2]) for n in (0, 1)
    ]
    for n in range(COUNT):
        scope = f"layers.{n}.attn"
        y = net.run("Tanh", scope, net.run("Add", scope, x, parts[0]))
        y = net.run("Sigmoid", scope, net.run("Add", scope, y, parts[1]))
        x = net.run("Add", f"layers.{n}", x, y)
    result = imported(net, x, tmp_path)
    assert len(block_classes(result)) == 1
