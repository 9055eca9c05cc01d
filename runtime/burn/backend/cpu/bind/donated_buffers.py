"""Donated buffers: storage of state tensors that a plan updates in place."""

import threading
from collections.abc import Callable
from functools import partial

import numpy as np

from burn.backend.cpu.bind.finite import NotFiniteError, is_finite
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.capture import Notes
from burn.box import Box
from burn.ops.caches import update_slice
from burn.ops.fused import rows_added
from burn.ops.support import Array
from burn.plan.plan_ir import Read, Step
from burn.plan.replay import arguments, constant
from burn.tensor import Tensor, innermost

#: The lock that is held while plans write donated buffers, and while these are copied.
WRITING = threading.Lock()
#: Arrays of more bytes than this are no longer in the cache after they are written.
CACHED = 1 << 20
_CPU = Cpu()


class DonatedBuffer:
    """The value of a box in memory of the plan, which is updated in place.

    Nothing is copied between runs: the box refers to this memory, and gets its own copy
    when other code reads it.
    """

    def __init__(self, read: Read, target: Array, version: int) -> None:
        self.target = target
        self._read, self._version = read, version
        self._is_finite, self._will_be_finite = True, False

    def has(self, array: Array) -> bool:
        """Return whether ``array`` is the donated buffer."""
        return _are_same(self.target, array)

    def check_finite(self, rows: Array | None) -> None:
        """Update whether the value is finite; only ``rows`` changed, unless None."""
        written = self.target if rows is None else self.target[rows]
        self._will_be_finite = is_finite(written)

    def check_slice(self, update: Array) -> None:
        """Update whether the value is finite; only the slice ``update`` was written."""
        self._will_be_finite = is_finite(update)

    def refresh(self) -> None:
        """Copy the value of the box if other code has set it.

        Raises:
            NotFiniteError: the value is not finite.
        """
        version = self._read.box.version  # first: it is set, and then counted
        if self._version == version:
            if not self._is_finite and not is_finite(self.target):
                raise NotFiniteError
            self._is_finite = True
            return
        value = innermost(self._read.held())
        if not is_finite(value.data):
            raise NotFiniteError
        np.copyto(self.target, value.data)
        self._version, self._is_finite = version, True

    def commit(self) -> None:
        """Set the box to the value in the donated buffer."""
        self._is_finite, self._will_be_finite = self._will_be_finite, False
        self._version = self._read.box.lend(partial(_copy_tensor, self.target))


def finite_check(
    step: Step, buffer: DonatedBuffer, values: dict[int, Array]
) -> Callable[[], None] | None:
    """Return a call that checks the updated value while it is in the cache, or None.

    For tables and caches only the part that a step changed is checked.
    """
    rows = None
    if step.primitive is update_slice and buffer.has(values[step.outputs[0]]):
        return partial(
            buffer.check_slice, arguments(constant(step.args[1], _CPU), values)
        )
    if step.primitive is rows_added:
        rows = arguments(constant(step.args[2], _CPU), values)
    elif buffer.target.nbytes > CACHED:
        return None
    return (
        partial(buffer.check_finite, rows)
        if buffer.has(values[step.outputs[0]])
        else None
    )


def in_place(
    memory: Notes, donated: dict[Box, DonatedBuffer], writes: list[tuple[Box, Array]]
) -> list[tuple[Box, Array | DonatedBuffer]]:
    """Return boxes with their next values, copied into donated buffers if needed."""
    moved = [
        donated[box].target
        for box, value in writes
        if box in donated and not donated[box].has(value)
    ]
    updates: list[tuple[Box, Array | DonatedBuffer]] = []
    for position, (box, value) in enumerate(writes):
        # Values that are overwritten are copied first, as in a swap of two boxes.
        if any(np.may_share_memory(value, target) for target in moved):
            aside = memory.shaped_as(value)
            memory.assign(aside, value)
            writes[position] = (box, aside)
    for box, value in writes:
        if box in donated and not donated[box].has(value):
            memory.assign(donated[box].target, value)
        updates.append((box, donated.get(box, value)))
    return updates


def _are_same(a: Array, b: Array) -> bool:
    return a.ctypes.data == b.ctypes.data and bool(a.strides == b.strides)


def commit(boxes: list[tuple[Box, Array | DonatedBuffer]]) -> None:
    """Set boxes to the computed values, in their own memory or that of the plan."""
    for box, value in boxes:
        if isinstance(value, DonatedBuffer):
            value.commit()
        else:
            box.set(Tensor(value.copy("K"), _CPU))


def _copy_tensor(target: Array) -> Tensor:
    with WRITING:
        return Tensor(target.copy("K"), _CPU)
