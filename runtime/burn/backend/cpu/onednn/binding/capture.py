"""Capture of the primitives that a kernel runs, to replay them without the kernel.

A kernel runs primitives on memory that it allocates for its results. While a plan is
bound it allocates from the plan, which records each primitive with its addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from burn.backend.cpu.onednn.binding.memory import Array
    from burn.backend.cpu.onednn.binding.prepared import Prepared
    from burn.backend.cpu.onednn.binding.scratch import Block


class Workspaces(Protocol):
    """The interface to workspaces that steps leave for their gradients, or share.

    ``is_generated`` is true if elementwise NumPy calls become generated kernels.
    """

    @property
    def is_generated(self) -> bool: ...

    def is_wanted(self) -> bool:
        """Return whether the plan has a gradient of the current step."""

    def leave(self, key: Hashable, memory: Any) -> None:
        """Store ``memory`` under ``key`` for the gradient of the current step."""

    def left(self, key: Hashable) -> Any:
        """Return the current step's memory that was stored under ``key``, or None."""

    def shared(
        self, key: Hashable, shape: tuple[int, ...], *, zeros: bool = False
    ) -> Array:
        """Return float32 memory that all steps with the same ``key`` share.

        With ``zeros`` it is initially zero, and ``shape`` is the same for all of a key;
        otherwise it is one-dimensional, and as long as the longest request.
        """


class Notes(Protocol):
    """The interface that a plan offers to kernels while it is bound."""

    @property
    def workspaces(self) -> Workspaces:
        """The workspaces of the current step."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Return row-major memory of the plan."""

    def like(self, x: Array, read: tuple[Array, ...] = ()) -> Array:
        """Return memory of the shape, dtype and order of ``x``.

        It is the memory of ``x`` if that is free then and does not overlap ``read``.
        """

    def may_overwrite(self, array: Array, read: tuple[Array, ...]) -> bool:
        """Return whether a result may overwrite ``array`` while ``read`` is read."""

    def shaped_as(self, like: Array) -> Array:
        """Return memory of the plan of the shape, dtype and order of ``like``."""

    def order_of(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the preferred memory order of axes of a result of ``shape``.

        None if it does not matter.
        """

    def assign(self, target: Array, source: Array) -> None:
        """Copy now and in each run."""

    def execute(self, prepared: Prepared, addresses: tuple[int, ...]) -> None:
        """Run a primitive now and in each run."""

    def note(self, call: Callable[[], Any]) -> None:
        """Append a call, which has run already, to those of each run."""

    def expect_numbers(self, array: Array) -> None:
        """Leave the program in each run in which ``array`` contains NaN."""

    def is_constant(self, array: Array) -> bool:
        """Return whether ``array`` is the same in each run."""

    def may_round(self, array: Array) -> bool:
        """Return whether products with ``array`` may be rounded unlike eager calls.

        The array is constant then, and no gradient mask depends on the product.
        """

    def keep(self, memory: Block | Array, *, constant: bool = False) -> None:
        """Own memory for primitives; a ``constant`` array is registered as such.

        A ``constant`` array is known as one, which no run changes.
        """


class _Current(local):
    notes: Notes | None = None


_CURRENT = _Current()
# A plain flag in front of the thread's own keeps eager calls fast.
_count = 0


def noting() -> Notes | None:
    """Return the plan that captures calls of this thread, or None."""
    return _CURRENT.notes if _count else None


@contextmanager
def noted_by(notes: Notes | None) -> Iterator[None]:
    """Let ``notes`` capture the calls of kernels in this thread and context."""
    global _count
    before, _CURRENT.notes = _CURRENT.notes, notes
    _count += 1
    try:
        yield
    finally:
        _count -= 1
        _CURRENT.notes = before


SINGLE = np.dtype(np.float32)


def do(call: Callable[[], Any]) -> None:
    """Make a call now, and in each run if a plan is being bound."""
    call()
    notes = noting()
    if notes is not None:
        notes.note(call)


def empty(shape: tuple[int, ...], dtype: np.dtype = SINGLE) -> Array:
    """Return row-major memory."""
    notes = noting()
    return np.empty(shape, dtype) if notes is None else notes.empty(shape, dtype)


def empty_like(x: Array, *read: Array) -> Array:
    """Return memory for elements like those of ``x``, in the same order.

    It is that of ``x`` if it is dead; ``read`` is read meanwhile.
    """
    notes = noting()
    return np.empty_like(x) if notes is None else notes.like(x, read)


def empty_as(x: Array, dtype: np.dtype) -> Array:
    """Return memory for as many elements as ``x`` has, in the same order of axes."""
    notes = noting()
    like = np.empty_like(x, dtype)
    return like if notes is None else notes.shaped_as(like)


def order_for(x: Array) -> tuple[int, ...] | None:
    """Return the preferred memory order of a result with the shape of ``x``.

    None if it does not matter, or is that of ``x``.
    """
    notes = noting()
    order = None if notes is None else notes.order_of(x.shape)
    if order is None or x.transpose(order).flags.c_contiguous:
        return None
    return order


def may_overwrite(array: Array | None, *read: Array | None) -> bool:
    """Return whether ``array`` is dead and does not overlap ``read``."""
    notes = noting() if array is not None else None
    if notes is None:
        return False
    return notes.may_overwrite(array, tuple(r for r in read if r is not None))


def may_round(array: Array) -> bool:
    """Return whether products with ``array`` may be rounded differently in a plan."""
    notes = noting()
    return notes is not None and notes.may_round(array)


def compact(x: Array) -> Array:
    """Return ``x``, or a row-major copy if it is in another order."""
    if x.flags.c_contiguous:
        return x
    notes = noting()
    if notes is None:
        return np.ascontiguousarray(x)
    copy = notes.empty(x.shape, x.dtype)
    notes.assign(copy, x)
    return copy


def like_memory(x: Array, other: Array) -> Array:
    """Return ``x``, or a copy in the memory order of ``other``, which is dense."""
    if x.strides == other.strides:
        return x
    notes = noting()
    copy = np.empty_like(other) if notes is None else notes.shaped_as(other)
    if notes is None:
        np.copyto(copy, x)
    else:
        notes.assign(copy, x)
    return copy


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` reshaped, as a view if possible."""
    view = x.reshape(shape)
    if noting() is None or view.size == 0 or np.may_share_memory(view, x):
        return view
    return compact(x).reshape(shape)


def has_nan(array: Array, *, part: Array | None = None) -> bool:
    """Return whether an element is NaN.

    In plans, which are for finite numbers, only ``part`` is checked, in which NaN may
    occur nevertheless; such runs leave the program.
    """
    notes = noting()
    if notes is None:
        return bool(np.isnan(np.min(array)))  # if any is NaN, the minimum is NaN
    if part is not None:
        notes.expect_numbers(part)
    return False
