"""Capture of the primitives that a kernel runs, to run them again without the kernel.

A kernel runs primitives of the library on memory that it takes for its results. While
a plan is prepared it takes that memory from the plan, which notes each primitive with
its addresses.
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
    """Memory that a step of a plan leaves to the step of its gradient, or shares.

    ``is_generated`` says that NumPy's calls of elements become generated kernels.
    """

    @property
    def is_generated(self) -> bool: ...

    def is_wanted(self) -> bool:
        """Whether there is a gradient of the current step in the plan."""

    def leave(self, key: Hashable, memory: Any) -> None:
        """Leave ``memory`` in the form ``key`` to the gradient of the current step."""

    def left(self, key: Hashable) -> Any:
        """The memory that was left to the current step in the form ``key``, or None."""

    def shared(
        self, key: Hashable, shape: tuple[int, ...], *, zeros: bool = False
    ) -> Array:
        """Memory of float32 of which steps with one ``key`` share what they ask for.

        With ``zeros`` it is zeros at first, and ``shape`` is the same for all of a key;
        otherwise it has one axis, and is as long as the longest.
        """


class Notes(Protocol):
    """What a plan offers to kernels while it is prepared."""

    @property
    def workspaces(self) -> Workspaces:
        """What the current step may leave to that of its gradient."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Row-major memory of the plan."""

    def like(self, x: Array, read: tuple[Array, ...] = ()) -> Array:
        """Memory of the shape, dtype and order of ``x``.

        Its own if it is free then, and nothing of ``read`` is in it.
        """

    def may_overwrite(self, array: Array, read: tuple[Array, ...]) -> bool:
        """Whether a result may take the place of ``array`` while ``read`` is read."""

    def shaped_as(self, like: Array) -> Array:
        """Memory of the shape, dtype and order of ``like``, of the plan."""

    def order_of(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The axes of a result of ``shape`` in the order of memory that suits best.

        None if it does not matter.
        """

    def assign(self, target: Array, source: Array) -> None:
        """Copy, now and whenever the plan runs."""

    def execute(self, prepared: Prepared, addresses: tuple[int, ...]) -> None:
        """Compute, now and whenever the plan runs."""

    def note(self, call: Callable[[], Any]) -> None:
        """Make this call whenever the plan runs; it was made already."""

    def expect_numbers(self, array: Array) -> None:
        """Leave the plan in every run in which there is a NaN in ``array``."""

    def is_constant(self, array: Array) -> bool:
        """Whether ``array`` is the same whenever the plan runs."""

    def may_round(self, array: Array) -> bool:
        """Whether products with ``array`` may be rounded otherwise than in eager calls.

        It is constant then, and nothing that follows decides where gradients go.
        """

    def keep(self, memory: Block | Array, *, constant: bool = False) -> None:
        """Own memory that primitives were given.

        A ``constant`` array is known as one, which no run changes.
        """


class _Current(local):
    notes: Notes | None = None


_CURRENT = _Current()
# A plain flag in front of the thread's own keeps eager calls fast.
_count = 0


def noting() -> Notes | None:
    """Who takes notes in this thread."""
    return _CURRENT.notes if _count else None


@contextmanager
def noted_by(notes: Notes | None) -> Iterator[None]:
    """Let ``notes`` know of what kernels do in this thread meanwhile."""
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
    """Make a call, now and whenever the plan runs if there is one."""
    call()
    notes = noting()
    if notes is not None:
        notes.note(call)


def empty(shape: tuple[int, ...], dtype: np.dtype = SINGLE) -> Array:
    """Row-major memory."""
    notes = noting()
    return np.empty(shape, dtype) if notes is None else notes.empty(shape, dtype)


def empty_like(x: Array, *read: Array) -> Array:
    """Memory for elements like those of ``x``, in the same order.

    It is that of ``x`` where nobody needs it any more; ``read`` is read meanwhile.
    """
    notes = noting()
    return np.empty_like(x) if notes is None else notes.like(x, read)


def empty_as(x: Array, dtype: np.dtype) -> Array:
    """Memory for as many elements as those of ``x``, in the same order of axes."""
    notes = noting()
    like = np.empty_like(x, dtype)
    return like if notes is None else notes.shaped_as(like)


def order_for(x: Array) -> tuple[int, ...] | None:
    """The axes of a result as large as ``x`` in the order of memory that suits best.

    None if it does not matter, or is that of ``x``.
    """
    notes = noting()
    order = None if notes is None else notes.order_of(x.shape)
    if order is None or x.transpose(order).flags.c_contiguous:
        return None
    return order


def may_overwrite(array: Array | None, *read: Array | None) -> bool:
    """Whether nobody needs ``array`` any more, which is in no memory of ``read``."""
    notes = noting() if array is not None else None
    if notes is None:
        return False
    return notes.may_overwrite(array, tuple(r for r in read if r is not None))


def may_round(array: Array) -> bool:
    """Whether a plan's products with ``array`` may be rounded in another way."""
    notes = noting()
    return notes is not None and notes.may_round(array)


def compact(x: Array) -> Array:
    """``x``, or a row-major copy if it is in another order."""
    if x.flags.c_contiguous:
        return x
    notes = noting()
    if notes is None:
        return np.ascontiguousarray(x)
    copy = notes.empty(x.shape, x.dtype)
    notes.assign(copy, x)
    return copy


def like_memory(x: Array, other: Array) -> Array:
    """``x``, or a copy in the memory order of ``other``, which has no gaps."""
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
    """``x`` with other extents, a view where that is possible."""
    view = x.reshape(shape)
    if noting() is None or view.size == 0 or np.may_share_memory(view, x):
        return view
    return compact(x).reshape(shape)


def has_nan(array: Array, *, part: Array | None = None) -> bool:
    """Whether an element is NaN.

    Plans are for finite numbers and do not look, except at the ``part`` in which there
    may be one even then; they are left in every run in which there is.
    """
    notes = noting()
    if notes is None:
        return bool(np.isnan(np.min(array)))  # the least of them is, then
    if part is not None:
        notes.expect_numbers(part)
    return False
