"""Pieces of an array that shift, scale and gate others have these names."""

from pathlib import Path

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import


def modulated(net: ScopedNet, one: float) -> str:
    """Return rows modulated by three pieces of a linear function of ``c``."""
    x = net.input("x", 2, 4)
    packed = net.linear("ada", net.input("c", 2, 4), 4, 12)
    sizes = net.stored("sizes", np.array([4, 4, 4]))
    shift = net.run("Split", "", packed, sizes, axis=1)
    scale, gate = f"{shift}b", f"{shift}c"
    net.nodes[-1].output.extend([scale, gate])
    factor = net.run(
        "Add", "", scale, net.stored("/Constant_output_0", np.float32(one))
    )
    y = net.run("Add", "", net.run("Mul", "", net.run("Tanh", "", x), factor), shift)
    branch = net.run("Mul", "", gate, net.linear("mlp", y, 4, 4))
    return net.run("Add", "", x, branch)


def test_pieces_that_modulate(tmp_path: Path) -> None:
    net = ScopedNet()
    result = modulated(net, 1.0)
    source = check_import(tmp_path, net.model(result), net.feeds()).source
    assert "shift, scale, gate = ops.chunk(" in source


def test_another_term_is_no_scale(tmp_path: Path) -> None:
    net = ScopedNet()
    result = modulated(net, 2.0)
    source = check_import(tmp_path, net.model(result), net.feeds()).source
    assert "shift, scale" not in source
