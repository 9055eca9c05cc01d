"""Decision tree ensembles in two kernels, without a read on the host.

One thread walks one tree for one row; then one adds up a target of a row, in the order
of the trees.
"""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.libraries import is_recorded
from burn.ops.support import Array, accumulate
from burn.ops.trees import CIRCLE, tree_ensemble as tree_ensemble_op

_THREADS = 256
_TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.int64): "long long",
    np.dtype(np.int32): "int",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.bool_): "bool",
}
_NAN = "__int_as_float(0x7fc00000)"
#: The operation that adds a leaf's weight, and the initial value, by aggregate.
_JOINS = {"min": ("fmin(sum, w)", _NAN), "max": ("fmax(sum, w)", _NAN)}
_SOURCE = r"""
extern "C" __global__ void walk(
    const VALUE* x, const ROOT* roots, const FEATURE* features, const MODE* modes,
    const VALUE* splits, const LINK* links, const MISSING* missing, LINK* leaves,
    long long pairs, int trees, int columns, int most
) {
    const long long pair = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const VALUE* row = x + pair / trees * columns;
    LINK node = roots[pair % trees];
    for (int i = 0; i < most && node >= 0; i++) {
        const VALUE value = row[features[node]], split = splits[node];
        bool goes;
        switch ((int)modes[node]) {
            case 0: goes = value <= split; break;
            case 1: goes = value < split; break;
            case 2: goes = value >= split; break;
            case 3: goes = value > split; break;
            case 4: goes = value == split; break;
            default: goes = value != split;
        }
        if (missing && isnan(value)) goes |= missing[node] != 0;
        node = links[2 * node + goes];
    }
    leaves[pair] = -1 - node;
}
extern "C" __global__ void join(
    const LINK* leaves, const TARGET* targets, const WEIGHT* weights, WEIGHT* out,
    long long size, int trees, int width, int count
) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= size) return;
    const LINK* mine = leaves + at / count * trees;
    WEIGHT sum = FIRST;
    for (int tree = 0; tree < trees; tree++) {
        if (mine[tree] < 0) { out[at] = NONE; return; }
        for (int k = 0; k < width; k++) {
            const long long leaf = (long long)mine[tree] * width + k;
            if (targets[leaf] == at % count) {
                const WEIGHT w = weights[leaf];
                sum = JOINED;
            }
        }
    }
    out[at] = RESULT;
}
"""


@tree_ensemble_op.on(Cuda)
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
    """:func:`burn.ops.tree_ensemble`.

    In a CUDA graph trees that go round in a circle give NaN.
    """
    import cupy

    x = cupy.ascontiguousarray(x.astype(splits.dtype, copy=False))
    weights = accumulate(leaf_weights)
    arrays = (x, roots, features, modes, splits, links, leaf_targets, weights)
    arrays = tuple(cupy.ascontiguousarray(array) for array in arrays)
    out = cupy.empty((len(x), targets), weights.dtype)
    if out.size:
        leaves = _walk_trees(arrays, missing)
        _sum_leaves(leaves, arrays, out, aggregate)
        if not is_recorded() and bool((leaves < 0).any()):
            raise ValueError(CIRCLE)
    if base_values is not None:
        out += base_values
    return out.astype(leaf_weights.dtype, copy=False)


def _walk_trees(arrays: tuple[Array, ...], missing: Array | None) -> Array:
    """Return each row's leaf in each tree, [rows, trees]; below 0 in a circle."""
    import cupy

    x, roots, features, modes, splits, links, targets, weights = arrays
    leaves = cupy.empty((len(x), len(roots)), links.dtype)
    if not leaves.size:
        return leaves
    masks = np.uint64(0) if missing is None else cupy.ascontiguousarray(missing)
    walk = _kernel("walk", _types(arrays, missing), "sum")
    sizes = (np.int64(leaves.size), *map(np.int32, (len(roots), x.shape[1])))
    operands = (x, roots, features, modes, splits, links, masks, leaves)
    walk(_grid(leaves), (_THREADS,), (*operands, *sizes, np.int32(len(features) + 1)))
    return leaves


def _sum_leaves(
    leaves: Array, arrays: tuple[Array, ...], out: Array, aggregate: str
) -> None:
    """Write the aggregated weights of ``leaves`` to ``out``, [rows, targets]."""
    targets, weights = arrays[-2:]
    join = _kernel("join", _types(arrays, None), aggregate)
    numbers = (leaves.shape[1], targets.shape[1], out.shape[1])
    sizes = (np.int64(out.size), *map(np.int32, numbers))
    join(_grid(out), (_THREADS,), (leaves, targets, weights, out, *sizes))


def _grid(out: Array) -> tuple[int]:
    return (-(-out.size // _THREADS),)


def _types(arrays: tuple[Array, ...], missing: Array | None) -> tuple[str, ...]:
    """Names in CUDA C of the element types, in the order of the source's macros."""
    _, roots, features, modes, splits, links, targets, weights = arrays
    masks = modes if missing is None else missing
    several = (splits, roots, features, modes, links, masks, targets, weights)
    return tuple(_TYPES[array.dtype] for array in several)


@cache
def _kernel(name: str, types: tuple[str, ...], aggregate: str) -> Any:
    import cupy

    return cupy.RawKernel(tree_source(types, aggregate), name)


def tree_source(types: tuple[str, ...], aggregate: str) -> str:
    """CUDA C of both kernels, for element types and an aggregate."""
    macros = ("VALUE", "ROOT", "FEATURE", "MODE", "LINK", "MISSING", "TARGET", "WEIGHT")
    joined, first = _JOINS.get(aggregate, ("sum + w", "0"))
    result = {"average": "sum / trees", "sum": "sum"}.get(
        aggregate, "isnan(sum) ? 0 : sum"
    )
    definitions = dict(zip(macros, types, strict=True))
    definitions |= {"NONE": _NAN, "FIRST": first, "JOINED": joined, "RESULT": result}
    lines = [f"#define {name} {value}" for name, value in definitions.items()]
    return "\n".join([*lines, _SOURCE])
