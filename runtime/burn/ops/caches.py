"""Writing into tensors of fixed extents: caches of keys and values."""

from typing import Any

from burn.ops.support import Array
from burn.primitive import primitive


@primitive(removable=True, infallible=True)
def update_slice(x: Array, update: Array, start: Array, *, axis: int = -2) -> Array:
    """``x`` with ``update`` written over its entries from ``start`` on along ``axis``.

    ``update`` has the dtype and the shape of ``x`` but for a smaller extent of
    ``axis``. ``start`` is one integer in a tensor; it is moved to where ``update``
    fits, as in XLA's ``dynamic_update_slice``. In a compiled function that sets a box
    to its result, the box is written in place.
    """
    out = x.copy()
    write_slice(out, update, start, axis)
    return out


update_slice.no_gradient("caches are written without gradients")


def write_slice(x: Array, update: Array, start: Array, axis: int) -> None:
    """:func:`update_slice` in place."""
    axis %= x.ndim
    count = update.shape[axis]
    first = min(max(int(start.reshape(())), 0), x.shape[axis] - count)
    index: list[Any] = [slice(None)] * x.ndim
    index[axis] = slice(first, first + count)
    x[tuple(index)] = update
