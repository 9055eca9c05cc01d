"""In-place updates of fixed-size tensors such as key-value caches."""

from typing import Any

from burn.ops.activation import clip
from burn.ops.creation import arange, zeros_like
from burn.ops.indexing import getitem, take
from burn.ops.shape import reshape
from burn.ops.support import Array
from burn.primitive import primitive


@primitive(removable=True, infallible=True, autocast="keep")
def update_slice(x: Array, update: Array, start: Array, *, axis: int = -2) -> Array:
    """Return ``x`` with entries from ``start`` along ``axis`` replaced by ``update``.

    ``update`` has the dtype and the shape of ``x`` except for a smaller extent along
    ``axis``. ``start`` is an integer in a tensor, clamped so that ``update`` fits, as
    in XLA's ``dynamic_update_slice``. In a compiled function that sets a box to its
    result, the box is updated in place.
    """
    out = x.copy()
    write_slice(out, update, start, axis)
    return out


@update_slice.vjp_reading({1: (2,), 0: (2,)})
def _(
    grad: Any, out: Any, x: Any, update: Any, start: Any, *, axis: int = -2
) -> tuple[Any, ...]:
    count = update.shape[axis]

    def grad_x() -> Any:
        part = getitem(grad, (slice(None),) * (axis % len(x.shape)) + (slice(count),))
        return update_slice(grad, zeros_like(part), start, axis=axis)

    def grad_update() -> Any:
        first = clip(reshape(start, ()), 0, x.shape[axis] - count)
        return take(grad, first + arange(count), axis)

    return grad_x, grad_update, None


def write_slice(x: Array, update: Array, start: Array, axis: int) -> None:
    """Execute :func:`update_slice` in place."""
    axis %= x.ndim
    count = update.shape[axis]
    first = min(max(int(start.reshape(())), 0), x.shape[axis] - count)
    index: list[Any] = [slice(None)] * x.ndim
    index[axis] = slice(first, first + count)
    x[tuple(index)] = update
