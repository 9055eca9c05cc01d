"""One module that is called with inputs of several sizes."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import


def head(net: ScopedNet, x: str, *target: int) -> str:
    """Run convolutions and a reshape to ``target`` in the scope ``head``."""
    x = net.run("Relu", "head.tower.1", net.conv("head.tower.0", x, 4, 4, 3))
    x = net.run("Relu", "head.tower.3", net.conv("head.tower.2", x, 4, 4, 3))
    x = net.run("Transpose", "head", net.conv("head.out", x, 4, 6), perm=[0, 2, 3, 1])
    shape = net.stored(f"target{target}", np.array(target))
    return net.run("Reshape", "head", x, shape)


@pytest.mark.parametrize("extents", [(-1, -1), (256, 64)])
def test_a_head_over_feature_maps_is_called_for_each(
    tmp_path: Path, extents: tuple[int, int]
) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4, 8, 16)
    small = net.conv("down", net.run("MaxPool", "", x, **pool()), 4, 4)
    results = [
        head(net, one, 2, extent, 3)
        for one, extent in zip((x, small), extents, strict=True)
    ]
    actual = check_import(tmp_path, net.model(*results), net.feeds())
    assert actual.source.count("self.head(") == 2
    assert "def __call__(self, x: Tensor) -> Tensor:" in actual.source
    assert ".reshape(2, -1, 3)" in actual.source
    assert "[2, 4, height, width]" in actual.source


def pool() -> dict[str, list[int]]:
    """Return the attributes of a pool that halves height and width."""
    return {"kernel_shape": [2, 2], "strides": [2, 2]}


def test_code_that_needs_the_sizes_is_one_call(tmp_path: Path) -> None:
    """The maps are padded to 8 x 8 by numbers that differ."""
    net = ScopedNet()
    x = net.input("x", 2, 4, 8, 8)
    small = net.conv("down", net.run("MaxPool", "", x, **pool()), 4, 4)
    results = []
    for one, extent in ((x, 0), (small, 4)):
        y = net.conv("head.out", one, 4, 6)
        pads = net.stored(f"pads{extent}", np.array([0] * 6 + [extent, extent]))
        results.append(net.run("Sigmoid", "head", net.run("Pad", "head", y, pads)))
    actual = check_import(tmp_path, net.model(*results), net.feeds())
    assert actual.source.count("self.head(") == 1


def test_a_table_of_positions_is_read_by_two_calls(tmp_path: Path) -> None:
    net = ScopedNet()
    results = []
    for name in ("source", "target"):
        x = net.input(name, 2, f"{name}_length", 4)
        end = net.run("Shape", "positions", x, start=1, end=2)
        bounds = [
            net.stored(key, np.array([n])) for key, n in (("zero", 0), ("one", 1))
        ]
        table = net.weight("positions.table", 16, 4)
        rows = net.run(
            "Slice", "positions", table, bounds[0], end, bounds[0], bounds[1]
        )
        results.append(net.run("Add", "positions", x, rows))
    actual = check_import(
        tmp_path, net.model(*results), net.feeds(3), net.feeds(5), flat=False
    )
    assert "self.positions(source)" in actual.source
    assert "self.positions(target)" in actual.source
    assert actual.keys == {"positions.table"}
