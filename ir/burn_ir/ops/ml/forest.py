"""Decision trees as arrays for traversal, from the attributes in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from burn_ir.errors import InvalidOperand
from burn_ir.types import Array

#: Comparisons by number; MEMBER tests whether the feature is in a set.
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
EQUAL, MEMBER = 4, 6
#: Maximum number of stored values for the leaves.
_LEAF_LIMIT = 2**28
#: Trees, nodes, targets and weights of the contributions of leaves.
Entries = tuple[Sequence[int], Sequence[int], Sequence[int], Array]


@dataclass(frozen=True)
class Forest:
    """Arrays for ``ops.tree_ensemble``; ``missing`` is None if it is never used."""

    roots: Array
    features: Array
    modes: Array
    splits: Array
    links: Array
    leaf_targets: Array
    leaf_weights: Array
    missing: Array | None = None

    def operands(self) -> dict[str, Array | None]:
        """Return the arrays by name, in the order of the operands."""
        missing = self.missing
        keep = missing is not None and bool(missing.any())
        return {
            "roots": self.roots,
            "features": self.features,
            "modes": self.modes,
            "splits": self.splits,
            "links": self.links,
            "leaf_targets": self.leaf_targets,
            "leaf_weights": self.leaf_weights,
            "missing": missing if keep else None,
        }


def same_length(**lists: Sequence[object] | Array) -> int:
    """Return the common length of all ``lists``.

    Raises:
        InvalidOperand: they differ.
    """
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{n} of {name}" for name, n in lengths.items())
        raise InvalidOperand(f"expected lists of one length, got {shown}")
    return next(iter(lengths.values()))


def checked(forest: Forest, targets: int) -> Forest:
    """Check that all indices in ``forest`` are valid; return it.

    Raises:
        InvalidOperand: one is not, or the branches have a cycle.
    """
    branches, leaves = len(forest.features), len(forest.leaf_weights)
    for name, indices in (("roots", forest.roots), ("links", forest.links)):
        if np.any(indices >= branches) or np.any(indices < -leaves):
            raise InvalidOperand(f"expected {name} among the nodes, got others")
    if np.any(forest.features < 0):
        raise InvalidOperand("expected features from 0 on, got a negative one")
    wrong = (forest.leaf_targets >= targets) | (forest.leaf_targets < -1)
    if np.any(wrong):
        got = int(forest.leaf_targets[wrong][0])
        raise InvalidOperand(f"expected targets in [0, {targets}), got {got}")
    level = np.unique(forest.roots[forest.roots >= 0])
    for _ in range(branches + 1):
        if not len(level):
            return forest
        below = forest.links[level]
        level = np.unique(below[below >= 0])
    raise InvalidOperand("expected trees, got branches that go round in a circle")


def from_branches(
    roots: Array,
    features: Array,
    modes: Array,
    splits: Array,
    true: tuple[Array, Array],
    false: tuple[Array, Array],
    leaves: tuple[Array, Array],
    missing: Array | None,
    members: Array | None,
) -> Forest:
    """Return trees from separate lists of branches and leaves.

    ``true`` and ``false`` are (number, whether it is a leaf) for every branch,
    ``leaves`` are targets and weights, ``members`` the sets, separated by NaN.
    """
    links = np.stack(
        [np.where(is_leaf != 0, -1 - ids, ids) for ids, is_leaf in (false, true)], 1
    )
    targets, weights = leaves
    forest = Forest(
        roots, features, modes, splits, links, targets[:, None], weights[:, None]
    )
    if missing is not None:
        forest = replace(forest, missing=missing)
    return _expand_sets(forest, np.zeros(0) if members is None else members)


def _expand_sets(forest: Forest, members: Array) -> Forest:
    """Replace every set-membership branch by a chain of equality branches."""
    branches = np.flatnonzero(forest.modes == MEMBER)
    sets = _sets(members)
    if len(sets) != len(branches):
        raise InvalidOperand(
            f"expected membership_values of {len(branches)} sets, got {len(sets)}"
        )
    sources, values, links = [], [], forest.links.copy()
    splits, modes = forest.splits.copy(), forest.modes.copy()
    count = len(modes)
    extra: list[list[int]] = []
    for branch, items in zip(branches.tolist(), sets, strict=True):
        otherwise, then = links[branch]
        # Nothing equals NaN, so an empty set has no members.
        splits[branch], modes[branch] = (items[0] if len(items) else np.nan), EQUAL
        last = branch
        for item in items[1:]:
            number = count + len(extra)
            extra.append([otherwise, then])
            sources.append(branch)
            values.append(item)
            _link(links, extra, last, count, number)
            last = number
    if not extra:
        return replace(forest, modes=modes, splits=splits)
    rest = np.array(sources)
    missing = forest.missing
    return replace(
        forest,
        features=np.concatenate([forest.features, forest.features[rest]]),
        modes=np.concatenate([modes, np.full(len(rest), EQUAL, modes.dtype)]),
        splits=np.concatenate([splits, np.array(values, splits.dtype)]),
        links=np.concatenate([links, np.array(extra, links.dtype)]),
        missing=None if missing is None else np.append(missing, missing[rest]),
    )


def _link(
    links: Array, extra: list[list[int]], last: int, count: int, number: int
) -> None:
    """Set the false successor of branch ``last`` to ``number``."""
    if last < count:
        links[last, 0] = number
    else:
        extra[last - count][0] = number


def _sets(members: Array) -> list[Array]:
    """Return the sets between NaNs; a NaN at the end ends the last set."""
    if not len(members):
        return []
    ends = np.flatnonzero(np.isnan(members))
    parts = [part[1:] if i else part for i, part in enumerate(np.split(members, ends))]
    return parts if len(parts[-1]) else parts[:-1]


@dataclass(frozen=True)
class Nodes:
    """Nodes, including leaves, identified by tree and number."""

    trees: Sequence[int]
    numbers: Sequence[int]
    features: Sequence[int]
    modes: Sequence[str]
    splits: Array
    true: Sequence[int]
    false: Sequence[int]
    missing: Sequence[int]

    def places(self) -> dict[tuple[int, int], int]:
        """Return the index of every node by (tree, number).

        Raises:
            InvalidOperand: the lists differ in length, or a node occurs twice.
        """
        count = same_length(
            nodes_treeids=self.trees,
            nodes_nodeids=self.numbers,
            nodes_featureids=self.features,
            nodes_modes=self.modes,
            nodes_values=self.splits,
            nodes_truenodeids=self.true,
            nodes_falsenodeids=self.false,
        )
        names = zip(self.trees, self.numbers, strict=True)
        positions = {name: i for i, name in enumerate(names)}
        if len(positions) < count:
            raise InvalidOperand("expected every node of a tree once, got one twice")
        return positions


def from_nodes(nodes: Nodes, entries: Entries) -> Forest:
    """Return trees from a list of nodes, and the contributions of their leaves."""
    positions = nodes.places()
    codes = _codes(nodes.modes)
    branches = np.flatnonzero(codes >= 0)
    numbers = np.where(
        codes < 0, _running_count(codes < 0) * -1, _running_count(codes >= 0) - 1
    )
    below = np.empty((len(branches), 2), np.int64)
    for column, ids in ((1, nodes.true), (0, nodes.false)):
        links = [_place(positions, nodes.trees[i], ids[i]) for i in branches.tolist()]
        below[:, column] = np.array(links, np.int64)
    inner = np.zeros(len(codes), bool)
    inner[below.ravel()] = True
    targets, weights = _leaves(entries, positions, numbers)
    missing = np.array(nodes.missing, bool)
    return Forest(
        numbers[_roots(nodes, inner, codes < 0)],
        np.array(nodes.features, np.int64)[branches],
        codes[branches].astype(np.uint8),
        nodes.splits[branches],
        numbers[below],
        targets,
        weights,
        missing[branches] if len(missing) == len(codes) else None,
    )


def first_of_each_leaf(entries: Entries) -> Entries:
    """Return the entries without all but the first of each tree and node."""
    trees, nodes, targets, weights = entries
    same_length(treeids=trees, nodeids=nodes, ids=targets, weights=weights)
    positions: dict[tuple[int, int], int] = {}
    for position, leaf in enumerate(zip(trees, nodes, strict=True)):
        positions.setdefault(leaf, position)
    rows = list(positions.values())
    first = [[numbers[i] for i in rows] for numbers in (trees, nodes, targets)]
    return first[0], first[1], first[2], weights[rows]


def _running_count(flags: Array) -> Array:
    """Return the number of set flags up to and including each index."""
    return np.cumsum(flags, dtype=np.int64)


def _codes(modes: Sequence[str]) -> Array:
    """Return the number of each mode, -1 for a leaf."""
    numbers = {f"BRANCH_{name}": i for i, name in enumerate(MODES[:MEMBER])}
    numbers["LEAF"] = -1
    unknown = sorted(set(modes) - set(numbers))
    if unknown:
        raise InvalidOperand(
            f"expected modes among {list(numbers)}, got {unknown[0]!r}"
        )
    return np.array([numbers[mode] for mode in modes], np.int64)


def _place(positions: dict[tuple[int, int], int], tree: int, node: int) -> int:
    position = positions.get((tree, node))
    if position is None:
        raise InvalidOperand(f"expected a node {node} in tree {tree}, found none")
    return position


def _roots(nodes: Nodes, below: Array, leaf: Array) -> Array:
    """Return the first node of every tree without a predecessor.

    A leaf is a root only if it is the whole tree.
    """
    sizes = Counter(nodes.trees)
    roots: dict[int, int] = {}
    for i in np.flatnonzero(~below).tolist():
        tree = nodes.trees[i]
        if not leaf[i] or sizes[tree] == 1:
            roots.setdefault(tree, i)
    if len(roots) < len(sizes):
        raise InvalidOperand("expected trees, got branches that go round in a circle")
    return np.array(list(roots.values()), np.int64)


def _leaves(
    entries: Entries, positions: dict[tuple[int, int], int], number: Array
) -> tuple[Array, Array]:
    """Return targets and weights of all leaves, padded to the largest leaf."""
    trees, nodes, targets, weights = entries
    same_length(treeids=trees, nodeids=nodes, ids=targets, weights=weights)
    keys = zip(trees, nodes, strict=True)
    at = np.array([_place(positions, tree, node) for tree, node in keys], np.int64)
    leaf = -1 - number[at] if len(at) else at
    order = np.argsort(leaf, kind="stable")
    order = order[leaf[order] >= 0]  # entries of branches have no effect
    leaf = leaf[order]
    count = int((number < 0).sum())
    sizes = np.bincount(leaf, minlength=count) if len(leaf) else np.zeros(count, int)
    width = int(sizes.max(initial=1))
    if count * width > _LEAF_LIMIT:
        raise InvalidOperand(f"expected leaves of few targets, got one of {width}")
    column = np.arange(len(leaf)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ids = np.full((count, width), -1, np.int64)
    ids[leaf, column] = np.array(targets, np.int64)[order]
    values = np.zeros((count, width), weights.dtype)
    values[leaf, column] = weights[order]
    return ids, values
