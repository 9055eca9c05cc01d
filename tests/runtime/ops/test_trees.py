"""Decision trees at size, and trees that are none."""

from typing import Any

import numpy as np
import pytest

from burn import nn, ops, tensor
from burn.ops import trees
from burn_ir import RawGraph, RawModel, RawNode, Type, build
from burn_ir.errors import InvalidModel
from tests.pace import within

DEPTH = 8


def complete(trees: int, rng: np.random.Generator) -> list[Any]:
    """Complete trees of 20 features, numbered breadth first one after the other."""
    inner = 2**DEPTH - 1
    below = 2 * np.arange(inner)[:, None] + np.array([1, 2])
    links = []
    for tree in range(trees):
        leaf = -1 - (below - inner) - tree * (inner + 1)
        links.append(np.where(below < inner, below + tree * inner, leaf))
    count, leaves = trees * inner, trees * (inner + 1)
    return [
        np.arange(trees) * inner,
        rng.integers(0, 20, count),
        np.zeros(count, np.uint8),
        rng.standard_normal(count).astype(np.float32),
        np.concatenate(links),
        rng.integers(0, 3, (leaves, 1)),
        rng.standard_normal((leaves, 1)).astype(np.float32),
    ]


def walked(x: Any, arrays: list[Any]) -> Any:
    """The sums, sample by sample and node by node."""
    roots, features, _, splits, links, targets, weights = arrays
    out = np.zeros((len(x), 3))
    for row, sample in enumerate(x):
        for node in roots:
            while node >= 0:
                node = links[node, int(sample[features[node]] <= splits[node])]
            out[row, targets[-1 - node, 0]] += weights[-1 - node, 0]
    return out


def test_many_samples_take_less_than_two_seconds() -> None:
    rng = np.random.default_rng(0)
    arrays = complete(100, rng)
    x = rng.standard_normal((10_000, 20)).astype(np.float32)
    with within(2):
        got = ops.tree_ensemble(*map(tensor, [x, *arrays]), targets=3).numpy()
    np.testing.assert_allclose(got[:20], walked(x[:20], arrays), rtol=1e-4, atol=1e-4)


def test_layer_is_one_leaf_of_nothing_until_it_is_loaded() -> None:
    layer = nn.TreeEnsemble(trees=2, branches=1, leaves=2, targets=3, base_values=True)
    x = tensor(np.ones((4, 5), np.float32))
    np.testing.assert_array_equal(layer(x).numpy(), np.zeros((4, 3)))
    assert repr(layer) == "TreeEnsemble(trees=2, branches=1, leaves=2, targets=3)"


def test_a_circle_is_refused_when_it_runs() -> None:
    arrays = complete(1, np.random.default_rng(0))
    arrays[4][3] = 0
    x = np.random.default_rng(1).standard_normal((50, 20)).astype(np.float32)
    with pytest.raises(ValueError, match="circle"):
        ops.tree_ensemble(*map(tensor, [x, *arrays]), targets=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": (0, 0, 0)}, "circle"),
        ({"nodes_truenodeids": (9, 0, 0)}, "a node 9 in tree 0"),
        ({"nodes_modes": ("BRANCH_ODD", "LEAF", "LEAF")}, "BRANCH_ODD"),
        ({"nodes_featureids": (3, 0, 0)}, "4 or more features"),
        ({"target_ids": (0, 5)}, r"targets in \[0, 2\), got 5"),
        ({"nodes_values": (0.5, 0.0)}, "lists of one length"),
        ({"base_values": (1.0, 2.0, 3.0)}, "2 base values, got 3"),
    ],
)
def test_what_is_no_tree_is_refused(change: dict[str, Any], message: str) -> None:
    attrs: dict[str, Any] = {
        "nodes_treeids": (0, 0, 0),
        "nodes_nodeids": (0, 1, 2),
        "nodes_featureids": (1, 0, 0),
        "nodes_modes": ("BRANCH_LEQ", "LEAF", "LEAF"),
        "nodes_values": (0.5, 0.0, 0.0),
        "nodes_truenodeids": (1, 0, 0),
        "nodes_falsenodeids": (2, 0, 0),
        "target_treeids": (0, 0),
        "target_nodeids": (1, 2),
        "target_ids": (0, 1),
        "target_weights": (1.0, 2.0),
        "n_targets": 2,
    } | change
    node = RawNode("TreeEnsembleRegressor", "ai.onnx.ml", attrs, ("x",), ("y",), "n")
    x = Type(np.dtype(np.float32), (4, 3))
    graph = RawGraph("main", {"x": x}, ("y",), (node,), {})
    with pytest.raises(InvalidModel, match=message):
        build(RawModel(graph, {"ai.onnx.ml": 3}))


@pytest.mark.parametrize("join", ["add", "fmin", "fmax"])
def test_weights_are_joined_in_the_order_of_trees(join: str) -> None:
    rng = np.random.default_rng(3)
    leaves = rng.integers(0, 40, (7, 90))
    columns = rng.integers(0, 4, (40, 3))  # column 0 is of padding
    weights = rng.standard_normal((40, 3)).astype(np.float32)
    first = np.full((7, 4), 0 if join == "add" else np.nan, np.float32)
    at_once, by_tree = first.copy(), first.copy()
    function, rows = getattr(np, join), np.arange(len(leaves))
    trees._combined(function, at_once, leaves, columns, weights)
    for leaf in leaves.T:
        for k in range(columns.shape[1]):
            key = (rows, columns[leaf, k])
            by_tree[key] = function(by_tree[key], weights[leaf, k])
    # Bit by bit: a sum of another order would be rounded otherwise.
    np.testing.assert_array_equal(at_once, by_tree)


@pytest.mark.parametrize("samples", [0, 1, 700])
def test_blocks_of_samples_are_put_together(samples: int) -> None:
    rng = np.random.default_rng(0)
    arrays = complete(200, rng)  # 327 samples are a block
    x = rng.standard_normal((samples, 20)).astype(np.float32)
    actual = ops.tree_ensemble(*map(tensor, [x, *arrays]), targets=3).numpy()
    assert actual.shape == (samples, 3) and actual.dtype == np.float32
    rows = slice(0, samples, 60)
    np.testing.assert_allclose(
        actual[rows], walked(x[rows], arrays), rtol=1e-4, atol=1e-4
    )
