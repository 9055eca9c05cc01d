"""A weight that is expanded in one module and added in another is stored once."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import


def test_an_expanded_weight_is_an_argument_of_modules(tmp_path: Path) -> None:
    """Learned queries enter blocks expanded, so that all blocks are of one class."""
    net = ScopedNet()
    image = net.input("image", "batch", 3, 4)
    queries = net.weight("queries", 1, 3, 4)
    whole = net.run("Shape", "", image)
    x = net.run("Expand", "", queries, whole)
    for block in ("blocks.0", "blocks.1"):
        first = net.weight(f"{block}.first.weight", 4, 4)
        second = net.weight(f"{block}.second.weight", 4, 4)
        y = net.run("Mul", block, net.run("MatMul", f"{block}.first", x, first), image)
        x = net.run("Add", block, x, net.run("MatMul", f"{block}.second", y, second))
    result = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    assert [key for key in result.keys if key.endswith("queries")] == ["queries"]
    module: Any = result.module
    blocks = [type(block) for block in module.blocks]
    assert blocks[0] is blocks[1]
    np.testing.assert_array_equal(module.queries.value.numpy(), net.weights["queries"])
