"""Programs: lists of prepared calls on fixed addresses."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from burn.backend.arrays import ERRORS, IGNORED
from burn.backend.cpu.bind.arena import Arena
from burn.backend.cpu.bind.builder import Builder
from burn.backend.cpu.bind.donated_buffers import WRITING, commit
from burn.backend.cpu.bind.finite import NotFiniteError, is_finite
from burn.backend.cpu.bind.heap import trim_heap
from burn.backend.cpu.bind.inputs import Setter
from burn.backend.cpu.bind.sequence import Sequence
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.jit.policy import KernelPolicy, held_bytes
from burn.backend.cpu.onednn.binding.engine import LARGE, current, forks
from burn.box import Box, Parameter, changes
from burn.ops.support import Array
from burn.plan.executable import PlanMemoryError
from burn.plan.lifetimes import peak_bytes
from burn.plan.plan_ir import (
    Segment,
    Slot,
    StackedResult,
    UnforeseenError,
    boxes_read,
    boxes_written,
)
from burn.plan.pytree import is_named
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.plan.profile import Profiler

#: A box that changed this often is read in every run; values that depend on it are not
#: constants any more.
CHANGES = 3
#: After how many calls at most a plan tries to bind again.
MOST_WAITING = 64
#: With fewer bytes of values than this, recording frees too little memory to trim.
LARGE_PEAK = 1 << 24
_CPU = Cpu()


class _Node:
    """A bound segment, and its successors that were needed so far."""

    def __init__(
        self,
        segment: Segment,
        builder: Builder,
        policy: KernelPolicy,
        profiler: "Profiler | None",
    ) -> None:
        self.segment, self.builder = segment, builder
        self.policy, self.profiler = policy, profiler
        self.sequence = self._with_generated_kernels(builder.build(segment))
        self.result = _result(segment.result, builder)
        self._end: tuple[Sequence, list[tuple[Box, Any]]] | None = None
        self.children: dict[bytes, _Node] = {}

    def _with_generated_kernels(self, sequence: Sequence) -> Sequence:
        """Return the sequence with generated kernels and timers, if requested."""
        is_asked = self.policy is KernelPolicy.ALL or self.profiler is not None
        if self.policy.is_generating:
            join = sequence.join if is_asked else sequence.join_later
            join(self.policy)
        if self.profiler is not None:
            from burn.backend.cpu.bind.measuring import measure_calls

            measure_calls(sequence, self.profiler, self.policy)
        return sequence

    def finish(self) -> None:
        """Set the boxes that are written."""
        with WRITING:
            if self._end is None:
                sequence, writes = self.builder.finish(self.segment)
                self._end = (self._with_generated_kernels(sequence), writes)
            else:
                self._end[0].run()
        commit(self._end[1])


class Program:
    """The plan of one signature on the CPU.

    Its memory is used by one thread at a time; others wait. It is valid for finite
    arguments and boxes only. ``policy`` says which of the remaining NumPy calls become
    generated kernels. With ``gradients`` forward values are bitwise those of eager
    calls: a mask that a gradient uses may not differ. A ``profiler`` times each call.
    """

    def __init__(
        self,
        root: Segment,
        policy: KernelPolicy = KernelPolicy.NONE,
        gradients: bool = False,
        profiler: "Profiler | None" = None,
    ) -> None:
        self._profiler = profiler
        self._root, self._policy, self._gradients = root, policy, gradients
        self._lock = threading.Lock()
        self._node: _Node | None = None
        self._forks = forks()
        self._inputs: list[Setter] = []
        self._changed: Counter[Box] = Counter()
        self._seen = -1
        self._failures = self._waiting = 0
        self._is_large = False

    def run(self, inputs: list[Array]) -> Any:
        """Return the result of the function.

        Raises:
            NotFiniteError: there are infinities or NaN.
            UnforeseenError: a guard value, a shape or a box matches no recording.
            PlanMemoryError: there is not enough memory; no box is set.
        """
        with self._lock:
            token = ERRORS.set(IGNORED)
            try:
                return self._run(inputs)
            except MemoryError as error:
                self._node = None
                raise PlanMemoryError(str(error)) from error
            finally:
                ERRORS.reset(token)

    def release_memory(self) -> None:
        """Release the memory until the next run, unless one is in progress."""
        if self._lock.acquire(blocking=False):
            self._node, self._inputs = None, []
            self._lock.release()

    def _run(self, inputs: list[Array]) -> Any:
        node = self._node
        if node is not None and self._is_stale():
            node = self._node = None
        is_new = node is None
        if node is None:
            for array in inputs:
                if not is_finite(array):
                    raise NotFiniteError
            node = self._bound_root(inputs)
        else:
            for set_input, array in zip(self._inputs, inputs, strict=True):
                set_input(array)
            node.sequence.run()
        while node.segment.guard is not None:
            node = self._successor(node, node.segment.guard)
        result = node.result()
        if node.segment.writes:
            node.finish()
        if is_new and self._is_large:  # the previous values of boxes are released
            trim_heap()
        return result

    def _bound_root(self, inputs: list[Array]) -> _Node:
        """Return the root segment, bound with these inputs.

        Raises:
            NotFiniteError: an intermediate value is not finite, or was not in earlier
                calls: attempts are repeated with exponential back-off.
        """
        if self._waiting:
            self._waiting -= 1
            raise NotFiniteError
        try:
            node = self._bound_now(inputs)
        except NotFiniteError:
            self._failures += 1
            self._waiting = min(2**self._failures, MOST_WAITING)
            raise
        self._failures = 0
        return node

    def _bound_now(self, inputs: list[Array]) -> _Node:
        volatile = {box for box, count in self._changed.items() if count >= CHANGES}
        volatile.update(boxes_written(self._root))
        if self._gradients:  # trained parameters change between runs
            volatile.update(filter(_is_trained, boxes_read(self._root)))
        peak = peak_bytes(self._root, inputs, volatile)
        options = (held_bytes(self._policy, peak), self._gradients)
        self._is_large = peak > LARGE_PEAK
        if self._is_large:
            trim_heap()
        builder = Builder(Arena(peak), volatile, *options)
        self._inputs = [builder.add_input(i, array) for i, array in enumerate(inputs)]
        node = _Node(self._root, builder, self._policy, self._profiler)
        self._forks = forks()
        self._node = node
        return node

    def _successor(self, node: _Node, slot: int) -> _Node:
        seen = node.builder.values[slot].tobytes()
        child = node.children.get(seen)
        if child is not None:
            child.sequence.run()
            return child
        if seen not in node.segment.children:
            raise UnforeseenError(f"{node.builder.values[slot]} was read")
        segment = node.segment.children[seen]
        options = (self._policy, self._profiler)
        child = _Node(segment, node.builder.branched(), *options)
        node.children[seen] = child
        return child

    def _is_stale(self) -> bool:
        """Return whether a box that the calls rely on was set, or threads are gone."""
        assert self._node is not None
        if forks() != self._forks:
            current(LARGE)  # warns that the engine is missing in this process
            return True
        seen = changes()  # first: a box is set, and then counted
        if seen == self._seen:
            return False
        stale = [
            box for box, version in self._node.builder.boxes if box.version != version
        ]
        self._changed.update(stale)
        self._seen = seen
        return bool(stale)


def _is_trained(box: Box) -> bool:
    return isinstance(box, Parameter) and box.requires_grad


def _result(result: Any, builder: Builder) -> Callable[[], Any]:
    """Return a function that creates the result of a segment, in its own memory."""
    kind = type(result)
    if kind is StackedResult:
        inner, backend = _result(result.value, builder), result.backend
        return lambda: Tensor(inner(), backend)
    if kind is Slot:
        array = builder.values[result.place]
        if array.dtype == object or builder.arena.owner(array) is not None:
            return partial(_copy_array, array)
        result = Tensor(array, Cpu())
    items = result.values() if kind is dict else result
    if (
        kind is not dict
        and kind is not list
        and kind is not tuple
        and not is_named(kind)
    ):
        return lambda: result
    makers = [_result(item, builder) for item in items]
    if kind is dict:
        names = list(result)
        return lambda: {name: make() for name, make in zip(names, makers, strict=True)}
    if is_named(kind):
        return lambda: kind(*(make() for make in makers))
    return lambda: kind([make() for make in makers])


def _copy_array(array: Array) -> Tensor:
    return Tensor(array.copy("K"), _CPU)
