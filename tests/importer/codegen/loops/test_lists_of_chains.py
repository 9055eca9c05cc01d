"""Lists of lists whose members are called in chains, as the heads of a detector."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import


def heads(has_last: bool) -> ScopedNet:
    """Return a network with a list of layers for each of three maps.

    The lists have two blocks, and a plain convolution behind them if ``has_last``.
    """
    net = ScopedNet()
    rows = net.stored("rows", np.array([0, 3, -1]))
    results = []
    for n in range(3):
        x = net.input(f"map{n}", 2, 3, 4 + n, 4)
        for layer in range(2):
            scope = f"head.lists.{n}.{layer}"
            x = net.run("Relu", scope, net.conv(f"{scope}.conv", x, 3, 3, size=3))
        if has_last:
            x = net.conv(f"head.lists.{n}.2", x, 3, 3)
        results.append(net.run("Reshape", "head", x, rows))
    net.run("Concat", "head", *results, axis=2)
    return net


@pytest.mark.parametrize("has_last", [False, True])
def test_lists_of_several_classes_are_sequences(has_last: bool, tmp_path: Path) -> None:
    net = heads(has_last)
    imported = check_import(tmp_path, net.model(net.nodes[-1].output[0]), net.feeds())
    assert ("nn.Sequential(" in imported.source) is has_last
    loops = re.findall(r"^ +for .*:$", imported.source, re.MULTILINE)
    assert len(loops) == (1 if has_last else 2)
    assert "nn.ModuleTuple" not in imported.source


def test_a_loop_over_several_classes_has_no_other_items(tmp_path: Path) -> None:
    """Type checkers do not know what ``zip`` of members of several classes yields."""
    net = ScopedNet()
    x = net.linear("stem", net.input("x", 2, 4), 4, 4)
    functions = ("Tanh", "Neg", "Exp", "Sin")
    scales = [net.run("Sigmoid", "", net.run(op, "", x)) for op in functions]
    for number, scale in enumerate(scales):
        scope = f"layers.{number}"
        if number % 2:
            gate = net.run("Sigmoid", scope, net.linear(f"{scope}.gate", x, 4, 6))
            up = net.linear(f"{scope}.up", x, 4, 6)
            y = net.linear(f"{scope}.down", net.run("Mul", scope, gate, up), 6, 4)
            y = net.run("Softmax", scope, net.run("Add", scope, x, y))
            x = net.run("Sub", scope, y, scale)
        else:
            y = net.run("Tanh", scope, net.linear(f"{scope}.mix", x, 4, 4))
            x = net.run("Mul", scope, net.run("Exp", scope, y), scale)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.ModuleTuple(" in imported.source
    assert "zip(" not in imported.source
