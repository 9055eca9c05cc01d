"""Binding of steps to calls: each step runs once, and its calls are captured.

A step becomes calls of oneDNN primitives or NumPy functions on fixed memory, or one
call of its kernel if neither is possible. Views become no calls.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import proxy

import numpy as np

from burn.backend.cpu.bind.arena import Arena, Buffer, Releases
from burn.backend.cpu.bind.bounds import SOFTMAX, magnitude
from burn.backend.cpu.bind.calls import (
    StepCall,
    check,
    output_list,
    traced_arguments,
)
from burn.backend.cpu.bind.constants import Constants
from burn.backend.cpu.bind.donated_buffers import DonatedBuffer, finite_check, in_place
from burn.backend.cpu.bind.finite import (
    check_box,
    expect_numbers,
    refuse_nan,
)
from burn.backend.cpu.bind.inputs import Inputs, Setter
from burn.backend.cpu.bind.magnitudes import Magnitudes, check_within
from burn.backend.cpu.bind.memory_orders import wanted_orders
from burn.backend.cpu.bind.numpy_capture import UntraceableError, has_unused, plain
from burn.backend.cpu.bind.sequence import Sequence
from burn.backend.cpu.bind.workspaces import Workspaces
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.capture import noted_by
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.prepared import Fixed, Prepared
from burn.backend.cpu.onednn.binding.scratch import Block, Scratch
from burn.box import Box
from burn.ops.support import Array
from burn.plan.plan_ir import Read, Segment, Step
from burn.plan.replay import arguments, constant, has_bounds
from burn.record.memory_advice import forget
from burn.tensor import innermost


class Builder:
    """Binds the steps of segments in order, with the values of the current run.

    Kernels and traced arrays report their calls to it.
    """

    def __init__(
        self,
        arena: Arena,
        volatile: set[Box],
        held: int = 0,
        gradients: bool = False,
    ) -> None:
        self.arena, self._gradients = arena, gradients
        self._options = (held, gradients)
        self._releases = Releases(arena, held=held)
        self.values: dict[int, Array] = {}
        self.boxes: list[tuple[Box, int]] = []
        self._donated: dict[Box, DonatedBuffer] = {}
        self._volatile = volatile
        self._buffers: dict[int, Buffer] = {}
        self._constants: set[int] = set()
        self._known = Constants()
        self._session = current()
        self._scratch = Scratch(self._session.api) if self._session else None
        self._sequence = Sequence()
        self._fresh, self._free = list[Buffer](), list[Buffer]()
        self._order: tuple[int, ...] = ()
        self._inputs = Inputs(self._session)
        self._is_late = False
        self._magnitudes = Magnitudes(self.values, self._constants)
        self.workspaces = Workspaces(held > 0)

    def branched(self) -> "Builder":
        """Return a builder for a branch that starts here."""
        self._releases.release()
        other = Builder(self.arena.branched(), self._volatile, *self._options)
        other.values, other.boxes = dict(self.values), self.boxes
        other._donated, other._constants = dict(self._donated), set(self._constants)
        other._known, other.workspaces = self._known.copy(), self.workspaces.branched()
        other._magnitudes = self._magnitudes.branched(other.values, other._constants)
        for slot, array in self.values.items():
            buffer = other.arena.owner(array) if array.dtype != object else None
            if buffer is not None and slot in self._buffers:
                other._buffers[slot] = buffer
        return other

    def add_input(self, slot: int, array: Array) -> Setter:
        """Allocate an input, with its current value."""
        target = self.shaped_as(array)
        np.copyto(target, array)
        self._set(slot, target)
        self._release_dead(())
        limit = self._magnitudes.limit(slot, array)
        return self._inputs.add(self._buffers.get(slot), target, limit)

    def build(self, segment: Segment) -> Sequence:
        """Run all steps of a segment but the late ones, and return their calls.

        Raises:
            NotFiniteError: a value is not finite.
            UnforeseenError: a result has another shape than in the recording.
        """
        self._sequence, orders = Sequence(), wanted_orders(segment)
        self.workspaces.enter(segment)
        for step, drops in segment.in_time():
            self._sequence.start(step)
            self._free = self._dead_buffers(drops)
            self._order = orders.get(step.outputs[0], ()) if step.outputs else ()
            if isinstance(step, Read):
                self._bind_read(step)
            else:
                self._bind(step)
            self._release_dead(drops)
        return self._sequence

    def finish(self, segment: Segment) -> tuple[Sequence, list[tuple[Box, Any]]]:
        """Run the late steps; return their calls and the written values.

        The memory of a box is overwritten if no other step reads it later.
        """
        self._sequence, self._order, self._is_late = Sequence(), (), True
        donated = {
            slot.place: self._donated[box]
            for box, slot in segment.writes.items()
            if box in self._donated
        }
        for step, drops in segment.late_ones():
            self._sequence.start(step)
            self._free = self._dead_buffers(drops)
            mine = donated.get(step.outputs[0])
            owner = mine and self.arena.owner(mine.target)
            # The one user that stays is the box.
            if owner and self._counts(drops).get(owner, 0) + 1 == owner.users:
                self._free = [owner]
            self._bind(step)
            check = mine and finite_check(step, mine, self.values)
            if check:
                check()
                self.note(check)
            self._release_dead(drops)
        writes = [(box, self.values[s.place]) for box, s in segment.writes.items()]
        return self._sequence, in_place(self, self._donated, writes)

    # The interface for kernels and traced arrays.

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], *, apart: bool = False
    ) -> Array:
        """Return row-major memory, ``apart`` from that of other branches."""
        array, buffer = self.arena.empty(shape, dtype, apart=apart)
        self._fresh.append(buffer)
        return array

    def shaped_as(self, like: Array, *, apart: bool = False) -> Array:
        """Return memory for a result in the shape and memory order of ``like``."""
        if like.dtype.kind == "O":
            return np.empty_like(like)
        order = sorted(range(like.ndim), key=lambda a: (-abs(like.strides[a]), a))
        shape = tuple(like.shape[a] for a in order)
        memory = self.empty(shape, like.dtype, apart=apart)
        return memory.transpose(np.argsort(order).tolist()) if order else memory

    def like(self, x: Array, read: tuple[Array, ...] = ()) -> Array:
        """Return memory of the shape, dtype and order of ``x``.

        It is the memory of ``x`` if that is free then and does not overlap ``read``.
        """
        return x if self.may_overwrite(x, read) else self.shaped_as(x)

    def may_overwrite(self, array: Array, read: tuple[Array, ...]) -> bool:
        """Return whether a result may overwrite ``array`` while ``read`` is read."""
        owner = self.arena.owner(array)
        if owner is None or owner not in self._free or owner in self._inputs:
            return False
        if any(self.arena.owner(other) is owner for other in read):
            return False
        self._free.remove(owner)
        return True

    def order_of(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the preferred memory order of axes of a result of ``shape``."""
        return self._order if len(self._order) == len(shape) else None

    def assign(self, target: Array, source: Array) -> None:
        """Copy now and in each run."""
        np.copyto(target, source)
        self.note(partial(np.copyto, target, source))

    def execute(self, prepared: Prepared, addresses: tuple[int, ...]) -> None:
        """Run a primitive now and in each run."""
        assert self._scratch is not None
        for address in addresses:
            self._sequence.owned.extend(self._known.at(address))
        fixed: Fixed = prepared.fixed(addresses, self._scratch)
        self._inputs.execute(fixed, addresses)
        with noted_by(None):
            prepared.run(*addresses)
        self._sequence.engine(fixed)

    def expect_numbers(self, array: Array) -> None:
        """Leave the program in runs in which ``array`` contains NaN."""
        expect_numbers(array)
        self.note(partial(expect_numbers, array))

    def is_constant(self, array: Array) -> bool:
        """Return whether ``array`` is the same in each run."""
        return array in self._known

    def may_round(self, array: Array) -> bool:
        """Return whether products with ``array`` may be rounded differently."""
        return not self._gradients and array in self._known

    def keep(self, memory: Block | Array, *, constant: bool = False) -> None:
        """Own memory for primitives, or a constant result."""
        self._sequence.owned.append(memory)
        self._known.add(memory if constant else None)

    def note(self, call: Callable[[], Any]) -> None:
        """Append a call, which has run already, to those of each run."""
        self._sequence.numpy(call)
        self._inputs.call()

    # Steps.

    def _bind_read(self, read: Read) -> None:
        version = read.box.version  # first: it is set, and then counted
        array = innermost(read.held()).data
        check_box(read.box, array, read.box in self._volatile)
        if read.box in self._volatile:
            # It is written only if the box was set: no other reader may exist.
            target = self.shaped_as(array, apart=True)
            np.copyto(target, array)
            donated = self._donated[read.box] = DonatedBuffer(read, target, version)
            self.note(donated.refresh)
            self._set(read.place, target)
            if read.place in self._buffers:
                self._buffers[read.place].users += 1
            return
        forget(array)
        self.boxes.append((read.box, version))
        self._hold(read.place, array)

    def _bind(self, step: Step) -> None:
        kernel = step.primitive.kernel_for(Cpu())
        self._inputs.start(self._counts(step.operand_places))
        template = [constant(arg, Cpu()) for arg in step.args]
        args = [arguments(arg, self.values) for arg in template]
        for arg in template:
            refuse_nan(arg)
            self._known.add(arg)  # as long as the plan is, since it is written there
        if all(slot in self._constants for slot in step.operand_places):
            outputs = output_list(step, kernel(*args, **step.static))
            for slot, array in zip(step.outputs, outputs, strict=True):
                refuse_nan(array)
                self._hold(slot, Cpu().as_data(array))
            return
        results = None
        if not self._is_kept_finite(step):
            kernel = step.primitive.kernel
            self._sequence.explain("an overflow could not be seen after oneDNN")
        elif not any(map(has_bounds, template)):
            results = self._bind_engine(step, kernel, args)
        is_checked = results is not None and step.primitive in SOFTMAX
        bound = 1.0 if is_checked else magnitude(step, self._magnitudes)
        if results is None and step.primitive.traceable:
            results = self._bind_traced(step, template)
        if results is None:
            results = self._bind_whole(step, kernel, template, args)
        for slot, array in zip(step.outputs, results, strict=True):
            self._set(slot, array)
            self._magnitudes.set(slot, bound, step)

    def _is_kept_finite(self, step: Step) -> bool:
        """Return whether oneDNN may compute a step; add limit checks if needed.

        Limits cannot be checked once boxes are being set.
        """
        if self._session is None:
            return True
        magnitudes, rounds = self._magnitudes, not self._gradients
        limits = magnitudes.checks(step, rounds=rounds, may_check=not self._is_late)
        for slot, limit in limits or ():
            array = self.values[slot]
            call = check_within(array, limit)
            if (owner := self.arena.owner(array)) is not None and owner in self._inputs:
                self.note(call)
            else:
                self._sequence.numpy(call)
        return limits is not None

    def _bind_engine(self, step: Step, kernel: Any, args: Any) -> list[Array] | None:
        """Return the results of a kernel that reports all its calls, or None."""
        if self._session is None and not self._gradients:
            from burn.backend.cpu.blas.kernels import KERNELS

            kernel = KERNELS.get(step.primitive, step.primitive.kernel)
        if kernel is step.primitive.kernel:
            self._sequence.explain("no kernel for oneDNN")
            return None
        mark, free = self._sequence.mark(), list(self._free)
        self.workspaces.start(step)
        with noted_by(self):
            results = output_list(step, kernel(*args, **step.static))
        if self._sequence.mark() > mark and self._are_valid(step, results):
            return results
        self._sequence.back_to(mark, "oneDNN's kernel leaves these operands to NumPy")
        self._free = free
        return None

    def _bind_traced(self, step: Step, template: list[Any]) -> list[Array] | None:
        """Return the results of a kernel that only calls NumPy functions, or None."""
        mark, results = self._sequence.mark(), list[Array]()
        with suppress(UntraceableError), self._sequence.limited():
            context = (self.values, self._constants, proxy(self))
            operands = [traced_arguments(arg, *context) for arg in template]
            outputs = step.primitive.kernel(*operands, **step.static)
            results = [plain(array) for array in output_list(step, outputs)]
        if results and not has_unused(operands) and self._are_valid(step, results):
            return results
        self._sequence.back_to(mark)
        return None

    def _bind_whole(
        self, step: Step, kernel: Any, template: list[Any], args: list[Any]
    ) -> list[Array]:
        """Return the results of a kernel that is called in each run."""
        if self._session is None:  # or weights would be packed where they are written
            kernel = step.primitive.kernel
        outputs = output_list(step, kernel(*args, **step.static))
        check(step, outputs)
        targets = [self.shaped_as(Cpu().as_data(array)) for array in outputs]
        for target, array in zip(targets, outputs, strict=True):
            np.copyto(target, array)
        values = {slot: self.values[slot] for slot in step.operand_places}
        self.note(StepCall(kernel, template, values, step, targets))
        return targets

    def _are_valid(self, step: Step, results: list[Array]) -> bool:
        """Return whether results are in memory of the plan, and match the recording."""
        check(step, results)
        return all(
            isinstance(array, np.ndarray) and self.arena.owner(array) is not None
            for array in results
        )

    # Memory.

    def _hold(self, slot: int, array: Array) -> None:
        self.values[slot] = array
        self._constants.add(slot)
        self._known.add(array)

    def _set(self, slot: int, array: Array) -> None:
        self.values[slot] = array
        if array.dtype.kind == "O":
            return
        buffer = self.arena.owner(array)
        assert buffer is not None
        buffer.users += 1
        self._buffers[slot] = buffer

    def _dead_buffers(self, drops: tuple[int, ...]) -> list[Buffer]:
        """Return the buffers that are dead after this step."""
        return [b for b, count in self._counts(drops).items() if count == b.users]

    def _counts(self, drops: tuple[int, ...]) -> Counter[Buffer]:
        """Return the number of dropped places in each buffer."""
        return Counter(b for b in map(self._buffers.get, drops) if b is not None)

    def _release_dead(self, drops: tuple[int, ...]) -> None:
        """Release the memory of dead values and temporaries."""
        self._inputs.start(())
        touched, self._fresh = self._fresh, []
        for slot in drops:
            value = self.values.pop(slot, None)
            if slot in self._constants:
                self._known.drop(value)
            buffer = self._buffers.pop(slot, None)
            if buffer is not None:
                buffer.users -= 1
                touched.append(buffer)
        unused = {id(buffer): buffer for buffer in touched if not buffer.users}
        for buffer in unused.values():
            self._sequence.freed(*self.arena.span(buffer))
            self._inputs.release(buffer)
        self._releases.add(list(unused.values()))
        if self._sequence.ends_in_engine():
            self._releases.release()
