"""One head that is applied to several feature maps, as detectors do."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import


def heads(net: ScopedNet, count: int, axes: list[list[int]]) -> str:
    """Append a head of two layers for each of ``count`` maps; return their rows.

    The rows of map ``n`` are transposed by ``axes[n]``.
    """
    rows = net.stored("rows", np.array([0, -1, 4]))
    results = []
    for n in range(count):
        x = net.input(f"map{n}", 2, 3, 4 + n)
        x = net.run("MatMul", "head.first", net.weight("head.first.weight", 4, 3), x)
        x = net.run("Relu", "head", x)
        x = net.run("MatMul", "head.last", net.weight("head.last.weight", 4, 4), x)
        x = net.run("Transpose", "head", x, perm=axes[n])
        results.append(net.run("Reshape", "head", x, rows))
    return net.run("Concat", "head", *results, axis=1)


def test_a_head_for_each_map_is_a_loop(tmp_path: Path) -> None:
    net = ScopedNet()
    y = heads(net, 4, [[0, 2, 1]] * 4)
    source = check_import(tmp_path, net.model(y), net.feeds(), flat=False).source
    assert source.count("for ") >= 1
    assert "in (map0, map1, map2, map3):" in source or "in (x, y, z, w):" in source
    assert source.count(".permute(") + source.count(".transpose(") == 1


@pytest.mark.parametrize("count", [2, 4])
def test_other_heads_are_no_loop(tmp_path: Path, count: int) -> None:
    """Two calls are no series, and one transpose is another one than the others."""
    net = ScopedNet()
    axes = [[0, 2, 1]] * count
    if count > 2:
        axes[1] = [0, 1, 2]
    y = heads(net, count, axes)
    source = check_import(tmp_path, net.model(y), net.feeds(), flat=False).source
    assert "states.append" not in source
