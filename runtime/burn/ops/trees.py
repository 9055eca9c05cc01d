"""Decision trees: many samples walk down many trees at once."""

from typing import Any

import numpy as np

from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive

#: How many pairs of a sample and a tree are walked together, to stay in the cache.
_BLOCK = 1 << 16

_COMPARISONS = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)


@primitive
def tree_ensemble(
    x: Array,
    roots: Array,
    features: Array,
    modes: Array,
    splits: Array,
    links: Array,
    leaf_targets: Array,
    leaf_weights: Array,
    missing: Array | None = None,
    base_values: Array | None = None,
    *,
    targets: int = 1,
    aggregate: str = "sum",
) -> Array:
    """What the trees make of every row of ``x``: [samples, targets].

    Branch ``i`` compares feature ``features[i]`` with ``splits[i]``; ``modes[i]`` says
    how: 0 to 5 for ``<=``, ``<``, ``>=``, ``>``, ``==``, ``!=``. The walk goes on at
    ``links[i, 1]`` if so, else at ``links[i, 0]``; where ``missing[i]``, NaN
    counts as true. A number below 0 is a leaf, -1 the first. ``roots`` are numbers of
    the same kind, one for each tree. A leaf adds ``leaf_weights`` [leaves, width] to
    the targets ``leaf_targets`` [leaves, width]; -1 there is padding. ``aggregate`` is
    "sum", "average" (over the trees), "min" or "max"; ``base_values`` [targets] is
    added to the result. ``x`` is compared in the dtype of ``splits``, which is that of
    the result.

    Raises:
        ValueError: the branches of a tree go round in a circle.
    """
    xp = namespace(x)
    x = xp.ascontiguousarray(x.astype(splits.dtype, copy=False))
    out = xp.zeros((len(x), targets), accumulate(leaf_weights[:0]).dtype)
    step = max(1, _BLOCK // max(1, len(roots)))
    branches = (features, modes, splits, xp.ravel(links), missing)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        leaves = _leaves(x[rows], roots, branches)
        out[rows] = _aggregated(leaves, leaf_targets, leaf_weights, targets, aggregate)
    if base_values is not None:
        out += base_values
    return out.astype(leaf_weights.dtype, copy=False)


tree_ensemble.no_gradient("the result is piecewise constant in the features")


def _leaves(x: Array, roots: Array, branches: tuple[Array, ...]) -> Array:
    """The number of the leaf that each row of ``x`` reaches: [rows, trees]."""
    xp = namespace(x)
    features, modes, splits, links, missing = branches
    kind = int(modes[0]) if len(modes) and bool((modes == modes[0]).all()) else None
    current = xp.tile(roots.astype(np.intp), len(x))
    offset = xp.repeat(xp.arange(len(x)) * x.shape[1], len(roots))
    flat = xp.ravel(x)
    active = xp.flatnonzero(current >= 0)
    node = current[active]
    for _ in range(len(features) + 1):
        if not len(active):
            return (-1 - current).reshape(len(x), len(roots))
        value = flat[offset[active] + features[node]]
        goes = _compare(value, splits[node], kind, modes, node)
        if missing is not None:
            goes = goes | (missing[node] & xp.isnan(value))
        node = links[2 * node + goes]
        current[active] = node
        inner = node >= 0
        active, node = active[inner], node[inner]
    raise ValueError("expected trees, got branches that go round in a circle")


def _compare(
    value: Array, split: Array, kind: int | None, modes: Any, node: Any
) -> Any:
    xp = namespace(value)
    if kind is not None:
        return getattr(xp, _COMPARISONS[kind].__name__)(value, split)
    asked = modes[node]
    goes = xp.zeros(len(value), bool)
    for mode, comparison in enumerate(_COMPARISONS):
        goes |= (asked == mode) & getattr(xp, comparison.__name__)(value, split)
    return goes


def _aggregated(
    leaves: Array, leaf_targets: Array, weights: Array, targets: int, aggregate: str
) -> Array:
    """The weights of ``leaves`` [rows, trees] put together: [rows, targets]."""
    xp = namespace(leaves)
    rows = xp.arange(len(leaves))
    weights = accumulate(weights)
    # One column more takes what pads.
    out = xp.zeros((len(leaves), targets + 1), weights.dtype)
    if aggregate in ("min", "max"):
        out[:] = np.nan  # of which fmin and fmax take the other
    for tree in range(leaves.shape[1]):
        leaf = leaves[:, tree]
        for k in range(leaf_targets.shape[1]):
            key = (rows, leaf_targets[leaf, k])
            if aggregate in ("min", "max"):
                join = xp.fmin if aggregate == "min" else xp.fmax
                out[key] = join(out[key], weights[leaf, k])
            else:
                out[key] += weights[leaf, k]
    out = out[:, :targets]
    if aggregate == "average":
        return out / max(1, leaves.shape[1])
    return xp.where(xp.isnan(out), 0, out) if aggregate in ("min", "max") else out
