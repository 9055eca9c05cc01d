"""Scopes of PyTorch's exporter lack an ``nn.ModuleDict`` around a module."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from burn_import.provenance.path_segments import scope_paths
from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import

WIDTH = 4


def heads(folder: Path, names: Sequence[str]) -> Imported:
    """Return heads of layers and scales, in scopes without the container ``heads``."""
    net = ScopedNet()
    x = net.input("x", "batch", WIDTH)
    results = []
    for name in names:
        key, scope = f"net.heads.{name}", f"net.{name}"
        y = x
        for layer in ("fc1", "fc2"):
            weight = net.weight(f"{key}.{layer}.weight", WIDTH, WIDTH)
            bias = net.weight(f"{key}.{layer}.bias", WIDTH)
            y = net.run("Gemm", f"{scope}.{layer}", y, weight, bias, transB=1)
        scale = net.weight(f"{key}.gate.scale", WIDTH)
        y = net.run("Mul", f"{scope}.gate", net.run("Sin", f"{scope}.gate", y), scale)
        results.append(net.run("Tanh", scope, y))
    model = net.model(net.run("Sum", "net", *results))
    imported = check_import(folder, model, net.feeds())
    assert imported.keys == set(net.weights)
    return imported


def test_modules_in_a_dict_are_whole(tmp_path: Path) -> None:
    source = heads(tmp_path, ("left", "right")).source
    assert source.count("ops.sin(") == 1
    assert source.count("nn.Linear(4, 4)") == 2


@pytest.mark.parametrize(
    "pairs",
    [
        [(("a", "x", "fc"), ("a", "d", "x", "fc")), (("a", "x", "o"), ("a", "x", "o"))],
        [
            (("a", "x", "fc"), ("a", "d", "x", "fc")),
            (("a", "x", "o"), ("a", "e", "x", "o")),
        ],
    ],
    ids=["a module without a container", "two containers"],
)
def test_layers_in_a_scope_must_agree(
    pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
) -> None:
    scope = (*pairs[0][0][:-1], "act")
    assert scope_paths(pairs).path(scope) == scope


def test_all_layers_of_a_scope_have_the_container() -> None:
    pairs = [(("a", "x", name), ("a", "d", "x", name)) for name in ("fc", "o")]
    paths = scope_paths([*pairs, (("b", "fc"), ("b", "fc"))])
    assert paths.path(("a", "x", "act")) == ("a", "d", "x", "act")
    assert paths.path(("b", "act")) == ("b", "act")
