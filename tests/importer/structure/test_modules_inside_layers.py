"""Scopes and arrays below a path whose weights suggest a layer."""

from pathlib import Path

import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import

PRODUCERS = ["pytorch", ""]


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("flat", [False, True], ids=["tree", "flat"])
def test_an_array_of_a_module_inside(tmp_path: Path, producer: str, flat: bool) -> None:
    net = ScopedNet(producer)
    x = net.linear("head", net.input("x", 2, 4), 4, 4)
    x = net.run("Add", "head.norm", x, net.weight("head.norm.bias", 4))
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=flat)
    if not flat:
        assert actual.keys == set(net.weights)


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("flat", [False, True], ids=["tree", "flat"])
def test_operations_in_a_scope_inside(
    tmp_path: Path, producer: str, flat: bool
) -> None:
    net = ScopedNet(producer)
    rows = net.linear("head", net.input("x", 2, 4), 4, 4)
    x = net.run("Mul", "head.norm", rows, rows)
    for op in ("Sqrt", "Sigmoid", "Tanh", "Erf"):
        x = net.run(op, "head.norm", x)
    x = net.run("Add", "head.norm", x, rows)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=flat)
    if not flat:
        assert actual.keys == set(net.weights)
