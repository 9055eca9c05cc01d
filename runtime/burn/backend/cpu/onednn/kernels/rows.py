"""In-place updates of table rows in plans.

oneDNN has no primitive for it: NumPy does it, without a copy of the table.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.capture import do, noting
from burn.backend.cpu.onednn.binding.memory import Array
from burn.ops.caches import update_slice as update_slice_op, write_slice
from burn.ops.fused import add_rows_at, rows_added as rows_added_op
from burn.ops.indexing import getitem_grad as getitem_grad_op, take_grad as take_grad_op

_HALVES = 2


@rows_added_op.on(Cpu)
def rows_added(x: Array, rows: Array, indices: Array) -> Array:
    """Compute :func:`burn.ops.fused.rows_added`; in plans in place of a dead ``x``."""
    notes = noting()
    if notes is None:
        return rows_added_op.kernel(x, rows, indices)
    if notes.may_overwrite(x, (rows, indices)):
        out = x
    else:
        out = notes.shaped_as(x)
        notes.assign(out, x)
    do(partial(add_rows_at, out, rows, indices))
    return out


@update_slice_op.on(Cpu)
def update_slice(x: Array, update: Array, start: Array, *, axis: int = -2) -> Array:
    """Compute :func:`burn.ops.caches.update_slice`; in plans in a dead ``x``."""
    notes = noting()
    if notes is None:
        return update_slice_op.kernel(x, update, start, axis=axis)
    if notes.may_overwrite(x, (update, start)):
        out = x
    else:
        out = notes.shaped_as(x)
        notes.assign(out, x)
    do(partial(write_slice, out, update, start, axis))
    return out


@take_grad_op.on(Cpu)
def take_grad(
    grad: Array, indices: Array, axis: int = 0, *, shape: tuple[int, ...]
) -> Array:
    """Compute :func:`burn.ops.take_grad`, in memory of the plan if there is one."""
    notes = noting()
    if notes is None or axis % len(shape) or grad.itemsize <= _HALVES:
        return take_grad_op.kernel(grad, indices, axis, shape=shape)
    out = notes.empty(shape, grad.dtype)
    do(partial(_add_rows, out, grad, np.asarray(indices)))
    return out


def _add_rows(out: Array, rows: Array, indices: Array) -> None:
    out.fill(0)
    add_rows_at(out, rows, indices)


@getitem_grad_op.on(Cpu)
def getitem_grad(grad: Array, key: Any, *, shape: tuple[int, ...]) -> Array:
    """Compute :func:`burn.ops.getitem_grad`, in memory of the plan for view keys."""
    notes = noting()
    key = key if isinstance(key, tuple) else (key,)
    if notes is None or grad.itemsize <= _HALVES or not _is_plain(key):
        return getitem_grad_op.kernel(grad, key, shape=shape)
    out = notes.empty(shape, grad.dtype)
    do(partial(out.fill, 0))
    view = out[key] if ... in key else out[*key, ...]  # never a number
    do(partial(np.copyto, view, grad))
    return out


def _is_plain(key: tuple[Any, ...]) -> bool:
    """Return whether a key selects elements at most once, without reading an array."""
    return all(part is None or type(part) in (int, slice, type(...)) for part in key)
