"""Decision tree ensembles, evaluated for many samples and trees at once."""

from typing import Any

import numpy as np

from burn.ops.support import Array, accumulate
from burn.primitive import primitive

#: The number of (sample, tree) pairs per block, which fits in the cache.
_BLOCK = 1 << 16

#: The message about branches that never reach a leaf.
CIRCLE = "expected trees, got branches that go round in a circle"

_COMPARISONS = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)


@primitive(no_gradient="the result is piecewise constant in the features")
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
    """Return the scores of a tree ensemble for every row of ``x``: [samples, targets].

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
    x = np.ascontiguousarray(x.astype(splits.dtype, copy=False))
    step = max(1, _BLOCK // max(1, len(roots)))
    branches = (features, modes, splits, links, missing)
    blocks = []
    for start in range(0, max(1, len(x)), step):
        leaves = _leaves(x[start : start + step], roots, branches)
        blocks.append(
            _aggregated(leaves, leaf_targets, leaf_weights, targets, aggregate)
        )
    out = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    if base_values is not None:
        out += base_values
    return out.astype(leaf_weights.dtype, copy=False)


def _leaves(x: Array, roots: Array, branches: tuple[Array, ...]) -> Array:
    """Return the number of the leaf that each row of ``x`` reaches: [rows, trees]."""
    features, modes, splits, links, missing = branches
    kind = _common_mode(modes)
    shape = (len(x), len(roots))
    current: Array = np.empty(shape, np.intp)
    offset: Array = np.empty(shape, np.intp)
    current[:] = roots
    offset.T[:] = np.arange(len(x)) * x.shape[1]
    current, offset, flat = current.reshape(-1), offset.reshape(-1), x.reshape(-1)
    if_false, if_true = links[:, 0], links[:, 1]
    active: Any = slice(None)
    node = current
    inner = node >= 0
    for _ in range(len(features) + 1):
        if not inner.all():
            (reached,) = inner.nonzero()
            active = reached if isinstance(active, slice) else active[reached]
            node, offset = node[reached], offset[reached]
        if not len(node):
            return (-1 - current).reshape(shape)
        value = flat[offset + features[node]]
        goes = _compare(value, splits[node], kind, modes, node)
        if missing is not None:
            goes = goes | (missing[node] & np.isnan(value))
        node = np.where(goes, if_true[node], if_false[node])
        current[active] = node
        inner = node >= 0
    raise ValueError(CIRCLE)


def _common_mode(modes: Array) -> int | None:
    """Return the comparison of all branches, None if they differ."""
    if not modes.any():
        return 0
    return int(modes[0]) if bool((modes == modes[0]).all()) else None


def _compare(
    value: Array, split: Array, kind: int | None, modes: Any, node: Any
) -> Any:
    if kind is not None:
        return _COMPARISONS[kind](value, split)
    asked = modes[node]
    goes = np.zeros(len(value), bool)
    for mode, comparison in enumerate(_COMPARISONS):
        goes |= (asked == mode) & comparison(value, split)
    return goes


def _aggregated(
    leaves: Array, leaf_targets: Array, weights: Array, targets: int, aggregate: str
) -> Array:
    """Return the aggregated weights of ``leaves`` [rows, trees]: [rows, targets]."""
    weights = accumulate(weights)
    join = {"min": "fmin", "max": "fmax"}.get(aggregate, "add")
    # fmin and fmax ignore a NaN. The first column is the target of padding.
    first = 0 if join == "add" else np.nan
    out = np.full((len(leaves), targets + 1), first, weights.dtype)
    _combined(getattr(np, join), out, leaves, leaf_targets + 1, weights)
    out = out[:, 1:]
    if aggregate == "average":
        return out / max(1, leaves.shape[1])
    return out if join == "add" else np.where(np.isnan(out), 0, out)


def _combined(
    join: Any, out: Array, leaves: Array, columns: Array, weights: Array
) -> None:
    """Add the weights of leaves to ``out``, in the order of trees."""
    rows = np.arange(len(leaves)) * out.shape[1]
    keys = columns[leaves] + rows[:, None, None]
    join.at(out.reshape(-1), keys.reshape(-1), weights[leaves].reshape(-1))
