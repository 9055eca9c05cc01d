"""Examples of ensembles of decision trees."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, generator

ML = "ai.onnx.ml"
FEATURES = 4
SYMBOLS: Any = {0: ("rows", FEATURES)}
_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")


def grown(rng: np.random.Generator, depth: int) -> Any:
    """A random tree: (feature, mode, split, missing, false, true), or None, a leaf."""
    if depth == 0 or rng.random() < 0.2:
        return None
    mode = int(rng.integers(0, 6)) if rng.random() < 0.3 else 0
    split = float(rng.integers(-4, 5)) / 2
    feature, missing = int(rng.integers(0, FEATURES)), int(rng.integers(0, 2))
    return feature, mode, split, missing, grown(rng, depth - 1), grown(rng, depth - 1)


def samples(draw: Draw, dtypes: list[str]) -> Array:
    """Features, many of which are equal to a split, and NaN among the floats."""
    rng = generator(draw)
    x = rng.integers(-5, 6, (draw(st.integers(1, 6)), FEATURES)) / 2
    dtype = draw(st.sampled_from(dtypes))
    if dtype.startswith("f"):
        x = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    return np.asarray(x).astype(dtype)


def listed(trees: list[Any], leaf: Any) -> tuple[dict[str, Any], list[Any]]:
    """The nodes of ``trees`` as the older operators list them, and those of leaves.

    ``leaf()`` makes the (target, weight) pairs of one leaf.
    """
    lists: dict[str, list[Any]] = {}
    entries: list[Any] = []

    def add(tree: int, node: Any, ids: list[int]) -> int:
        number = ids[0]
        ids[0] += 1
        index = len(lists.get("nodes_treeids", ()))
        feature, mode, split, missing = node[:4] if node else (0, 0, 0.0, 0)
        row = {
            "nodes_treeids": tree,
            "nodes_nodeids": number,
            "nodes_featureids": feature,
            "nodes_modes": "LEAF" if node is None else f"BRANCH_{_MODES[mode]}",
            "nodes_values": split,
            "nodes_missing_value_tracks_true": missing,
            "nodes_truenodeids": 0,
            "nodes_falsenodeids": 0,
        }
        for name, value in row.items():
            lists.setdefault(name, []).append(value)
        if node is None:
            entries.extend((tree, number, *pair) for pair in leaf())
        else:
            lists["nodes_falsenodeids"][index] = add(tree, node[4], ids)
            lists["nodes_truenodeids"][index] = add(tree, node[5], ids)
        return number

    for tree, node in enumerate(trees):
        add(tree, node, [0])
    return {name: tuple(values) for name, values in lists.items()}, entries


def as_tensors(attrs: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """The attributes with tensors for lists of floats."""
    moved = {}
    for name, value in attrs.items():
        floats = isinstance(value, tuple) and value and isinstance(value[0], float)
        if floats:
            moved[f"{name}_as_tensor"] = np.array(value, dtype)
        else:
            moved[name] = value
    return moved


def entries_as(prefix: str, entries: list[Any]) -> dict[str, Any]:
    trees, nodes, ids, weights = zip(*entries, strict=True)
    names = ("treeids", "nodeids", "ids", "weights")
    values = (trees, nodes, ids, weights)
    return {f"{prefix}_{n}": tuple(v) for n, v in zip(names, values, strict=True)}


def finished(version: int, attrs: dict[str, Any], x: Array, outputs: int) -> Example:
    """The example; version 5 is deprecated, with the meaning of version 3."""
    if x.dtype == np.float64:
        attrs = as_tensors(attrs, np.float64)
    newer = (3, attrs) if version == 5 else None
    return Example(
        attrs, [x], outputs, smooth=False, newer=newer, atol=1e-5, symbols=SYMBOLS
    )


def numbers(version: int) -> list[str]:
    """The dtypes of features; onnxruntime has no doubles in lists."""
    return ["f4", "f4", "i4", "i8"] + ["f8"] * (version >= 3)


@case("TreeEnsembleRegressor", domain=ML)
def regressor(draw: Draw, version: int) -> Example:
    rng = generator(draw)
    targets = draw(st.integers(1, 3))
    based = draw(st.booleans())
    trees = [grown(rng, 3) for _ in range(draw(st.integers(1, 4)))]

    def leaf() -> list[tuple[int, float]]:
        # onnxruntime adds no base value where no leaf adds anything.
        count = targets if based else int(rng.integers(1, targets + 1))
        chosen = rng.permutation(targets)[:count]
        if targets == 1 and rng.random() < 0.2:
            chosen = np.zeros(3, int)  # only the first weight counts
        return [(int(t), float(rng.integers(-8, 9)) / 4) for t in chosen]

    attrs, entries = listed(trees, leaf)
    attrs |= entries_as("target", entries) | {"n_targets": targets}
    attrs["aggregate_function"] = draw(
        st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"])
    )
    attrs["post_transform"] = draw(st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC"]))
    if based:
        attrs["base_values"] = tuple(0.5 + t for t in range(targets))
    x = samples(draw, ["f4"] + ["f8"] * (version >= 3))
    return finished(version, attrs, x, 1)


@case("TreeEnsembleClassifier", domain=ML)
def classifier(draw: Draw, version: int) -> Example:
    rng = generator(draw)
    classes = draw(st.integers(2, 4))
    signed = draw(st.booleans())
    trees = [grown(rng, 3) for _ in range(draw(st.integers(1, 4)))]

    def leaf() -> list[tuple[int, float]]:
        low = -1.0 if signed else 0.05
        weights = rng.uniform(low, 1.0, classes if classes > 2 else 1)
        return [(i, float(np.float32(w))) for i, w in enumerate(weights)]

    attrs, entries = listed(trees, leaf)
    attrs |= entries_as("class", entries)
    if draw(st.booleans()):
        attrs["classlabels_strings"] = ("ham", "egg", "rye", "jam")[:classes]
    else:
        attrs["classlabels_int64s"] = draw(st.permutations([0, 1, 5, -3]))[:classes]
        attrs["classlabels_int64s"] = tuple(attrs["classlabels_int64s"])
    attrs["post_transform"] = draw(st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC"]))
    if draw(st.booleans()):
        attrs["base_values"] = (0.25, -0.5, 0.125, 0.0)[: classes if classes > 2 else 1]
    x = samples(draw, numbers(version))
    return finished(version, attrs, x, 2)


def branching(trees: list[Any], leaf: Any, members: bool) -> dict[str, Any]:
    """``trees`` as TreeEnsemble has them; with ``members`` some ask for sets."""
    rows: list[list[int]] = []
    splits: list[float] = []
    leaves: list[tuple[int, float]] = []
    sets: list[float] = []
    roots = []

    def add(node: Any) -> tuple[int, int]:
        if node is None:
            leaves.extend(leaf())
            return len(leaves) - 1, 1
        feature, mode, split, missing, false, true = node
        index = len(rows)
        if members and mode in (4, 5):
            mode = 6
            # onnxruntime has sets of small positive integers alone.
            sets.extend([1.0 + abs(round(split)), 4.0, 5.0, np.nan])
        rows.append([feature, mode, missing])
        splits.append(split)
        rows[index] += [*add(false), *add(true)]
        return index, 0

    for tree in trees:
        # A tree of one leaf has a branch whose both ways lead there.
        node = tree or (0, 0, 0.0, 0, None, None)
        roots.append(add(node)[0])
    attrs = _branch_attributes(rows)
    attrs["nodes_splits"] = np.array(splits)
    attrs["tree_roots"] = tuple(roots)
    attrs["leaf_targetids"] = tuple(target for target, _ in leaves)
    attrs["leaf_weights"] = np.array([weight for _, weight in leaves])
    if sets:
        attrs["membership_values"] = np.array(sets)
    return attrs


def _branch_attributes(rows: list[list[int]]) -> dict[str, Any]:
    """Return the integers of branches as attributes, from one row for each branch."""
    table = [tuple(column) for column in zip(*rows, strict=True)]
    names = ["featureids", "modes", "missing_value_tracks_true", "falsenodeids"]
    names += ["falseleafs", "truenodeids", "trueleafs"]
    attrs: dict[str, Any] = {
        f"nodes_{n}": column for n, column in zip(names, table, strict=True)
    }
    attrs["nodes_modes"] = np.array(attrs["nodes_modes"], np.uint8)
    return attrs


@case("TreeEnsemble", domain=ML)
def tree_ensemble(draw: Draw, version: int) -> Example:
    rng = generator(draw)
    targets = draw(st.integers(1, 3))
    trees = [grown(rng, 3) for _ in range(draw(st.integers(1, 4)))]

    def leaf() -> list[tuple[int, float]]:
        return [(int(rng.integers(0, targets)), float(rng.integers(-8, 9)) / 4)]

    attrs = branching(trees, leaf, draw(st.booleans()))
    x = samples(draw, ["f4", "f8"])
    for name in ("nodes_splits", "leaf_weights", "membership_values"):
        if name in attrs:
            attrs[name] = attrs[name].astype(x.dtype)
    # onnxruntime takes 1 for the logistic function and 2 for softmax, which the
    # specification has the other way round.
    attrs |= {"n_targets": targets, "post_transform": draw(st.sampled_from([0, 3]))}
    attrs["aggregate_function"] = draw(st.integers(0, 3))
    return Example(attrs, [x], smooth=False, atol=1e-5, symbols=SYMBOLS)


@case("Trees", domain="burn")
def trees(draw: Draw, version: int) -> Example:
    """Two trees: one of two branches, and one leaf, each leaf for two targets."""
    x = samples(draw, ["f4"])
    arrays: list[Array | None] = [
        np.array([0, -4]),
        np.array([1, 3]),
        np.array([0, draw(st.integers(0, 5))], np.uint8),
        np.array([0.5, -1.0], np.float32),
        np.array([[1, -1], [-2, -3]]),
        np.array([[0, 1], [1, -1], [2, 0], [1, 2]]),
        np.array(generator(draw).standard_normal((4, 2)), np.float32),
    ]
    if draw(st.booleans()):
        arrays.append(np.array([True, False]))
        arrays.append(np.array([0.5, -1.0, 2.0], np.float32))
    aggregate = draw(st.sampled_from(["sum", "average", "min", "max"]))
    attrs = {"targets": 3, "aggregate": aggregate}
    fixed = frozenset(range(1, len(arrays) + 1))
    return Example(attrs, [x, *arrays], smooth=False, always_stored=fixed)
