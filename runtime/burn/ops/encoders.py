"""Mappings between categories and numbers."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.support import Array, namespace
from burn.primitive import primitive


@primitive(no_gradient="the result jumps from one key to the next")
def lookup(x: Array, keys: Array, values: Array, *, default: Any = 0) -> Array:
    """Return, for each element of ``x``, the entry of ``values`` at its index in
    ``keys``.

    Elements that are not in ``keys`` become ``default``. ``keys`` and ``values`` are
    vectors of numbers or strings; of equal keys the last is used, and NaN equals NaN.
    """
    index, present = _places(x, keys)
    out = namespace(values).full(x.shape, default, values.dtype)
    out[present] = values[index[present]]
    return out


@primitive(no_gradient="the result is piecewise constant")
def one_hot_encode(x: Array, categories: Array, *, strict: bool = False) -> Array:
    """Return float32 one-hot encodings of categories, along a new last axis.

    Elements that are no category become zeros.

    Raises:
        ValueError: ``strict``, and an element is no category.
    """
    index, present = _places(x, categories)
    if strict and not bool(present.all()):
        raise ValueError("expected elements among the categories, got others")
    xp = namespace(index)
    hot = index[..., None] == xp.arange(len(categories))
    return (hot & present[..., None]).astype(np.float32)


def _places(x: Array, keys: Array) -> tuple[Array, Array]:
    """Return the index of each element of ``x`` in ``keys``, and whether it exists."""
    if keys.dtype == dtypes.string:
        numbers = {key: i for i, key in enumerate(keys.tolist())}
        flat = [numbers.get(item, -1) for item in x.ravel().tolist()]
        index = np.array(flat, np.int64).reshape(x.shape)
        return index, index >= 0
    xp = namespace(x)
    if not len(keys):
        return xp.zeros(x.shape, np.int64), xp.zeros(x.shape, bool)
    # A stable order, searched from the right: the last of equal keys is found.
    order = xp.argsort(keys, kind="stable")
    ranked = keys[order]
    index = xp.maximum(xp.searchsorted(ranked, x, side="right") - 1, 0)
    near = ranked[index]
    present = near == x
    if keys.dtype.kind == "f":
        present |= xp.isnan(near) & xp.isnan(x)
    return order[index].reshape(x.shape), present.reshape(x.shape)
