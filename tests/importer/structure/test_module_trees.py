"""Random module trees are imported, load their records and give equal results."""

import re
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from burn_import.provenance.path_segments import clean
from tests.importer.structure.module_trees import TreeModel
from tests.importer.structure.scoped_net import check_import

#: Seeds, including those that found defects.
SEEDS = (14, 20, 38, 39, 53, 78, 160, *range(300, 310), 1011)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled(4)
def test_random_module_trees(tmp_path: Path, seed: int) -> None:
    check_tree(tmp_path, seed)


def test_many_random_module_trees(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Test as many as ``--fuzz-seconds`` allow."""
    end = time.monotonic() + request.config.getoption("--fuzz-seconds")
    seed = 1000
    while time.monotonic() < end:
        check_tree(tmp_path, seed)
        seed += 1


def check_tree(folder: Path, seed: int) -> None:
    """Check the model of ``seed``, as a tree and flat."""
    tree = TreeModel(seed)
    model = tree.model()
    feeds = [tree.net.feeds(extent) for extent in (1, 3)]
    actual = check_import(folder, model, *feeds)
    if not any(node.op_type == "If" for node in model.graph.node):
        assert not layer_keys(tree.net.weights) - set(map(plain, actual.keys))


def layer_keys(weights: Collection[str]) -> set[str]:
    """Return the keys of layers among dotted names: with weight and bias."""
    stems = {name.rpartition(".")[0] for name in weights if name.endswith(".bias")}
    keys = {f"{stem}.{leaf}" for stem in stems for leaf in ("weight", "bias")}
    return set(map(plain, keys & set(weights)))


def plain(key: str) -> str:
    """Return ``key`` without the numbers of modules outside lists.

    An attribute that would need two names of the author keeps its own.
    """
    return re.sub(r"(?<![^.])part_(?=\d)", "", ".".join(clean(key.split("."))))
