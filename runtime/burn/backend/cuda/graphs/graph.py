"""Plans as CUDA graphs: one launch for all kernels of a plan.

The first run of a plan captures the kernels on a stream; later runs copy the inputs
into the graph's memory, launch it, and copy the results out.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from burn.backend.cuda.graphs.nodes import (
    CudaGraph,
    capturing_graph,
    check_nodes,
    starts_early,
    wait_for_ends,
)
from burn.backend.cuda.graphs.program import Program, difference
from burn.backend.cuda.graphs.state import SharedState, State
from burn.backend.cuda.libraries import CaptureMemory, capturing
from burn.box import Box, changes
from burn.plan.executable import Executable, Plan
from burn.plan.plan_ir import Step, boxes_read, boxes_written
from burn.plan.pytree import mapped
from burn.plan.replay import Replay
from burn.tensor import Tensor, innermost

if TYPE_CHECKING:
    from burn.backend.cuda.device import Cuda

#: How often a plan is captured anew because parameters were set. The last captures
#: copy those that were, before each launch; then it is replayed kernel by kernel.
_CAPTURES = 8
#: The first capture that copies parameters.
_COPYING = 3
#: The largest difference of a graph's results from those of its kernels, relative to
#: the largest element.
_MOST = 1e-3
#: The share of boxes that may be set to something further away: optimizers divide
#: gradients by their size, so that those that are nothing but rounding become steps.
_FEW = 0.05
#: How often a new graph is launched and checked: results that depend on which kernel
#: ends first are correct in some launches.
_CHECKS = 4


class GraphError(RuntimeError):
    """The results of a graph differ from those of its kernels."""


class GraphReplay(Executable):
    """A straight plan, launched as a CUDA graph, or kernel by kernel if that fails.

    Fused steps are disabled if their graph differs from its kernels. ``shared`` is the
    memory of boxes of a plan of which ``plan`` is a part.
    """

    def __init__(
        self, plan: Plan, device: "Cuda", shared: SharedState | None = None
    ) -> None:
        self._shared = shared or SharedState()
        self._replay, self._device, self._plan = Replay(plan, device), device, plan
        state = set(boxes_written(plan.root))
        self._boxes = [box for box in boxes_read(plan.root) if box not in state]
        #: Boxes that were set between runs, and those of them that are copied.
        self._changed = self._varying = frozenset(plan.root.varying - state)
        self._captured: CapturedGraph | None = None
        self._program: Program | None = None
        self._captures = 0
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._unfused: str | None = None
        self._has_failed = False
        if plan.is_observed:
            self._reason = "its values are observed"

    @property
    def notes(self) -> list[str]:
        notes = list(self._replay.notes)
        if self._program is not None:
            notes += self._program.notes
        if self._unfused is not None:
            notes.append(f"no fused kernels: {self._unfused}")
        if self._reason is not None:
            notes.append(f"no CUDA graph: {self._reason}")
        return notes

    @property
    def kernels(self) -> int | None:
        """The number of kernels that the graph launches, None without a graph."""
        captured = self._captured
        return None if captured is None else captured.kernels

    def run(self, inputs: list[Any]) -> Any:
        with self._device.current():
            return self._run(inputs)

    def _run(self, inputs: list[Any]) -> Any:
        if self._reason is None:
            with self._lock:
                captured = self._current(inputs)
                if captured is not None:
                    return captured.launch(inputs)
        return self._replay.run(inputs)

    def take_failure(self) -> bool:
        """Return whether a kernel did something that a graph cannot repeat, once."""
        has_failed, self._has_failed = self._has_failed, False
        return has_failed

    def compared(self, inputs: list[Any]) -> Iterator[tuple[int, Step, float]]:
        """Yield each fused step with its number and error against unfused steps."""
        with self._device.current():
            program = Program(self._plan, self._device)
            state = State(program, self._device).values()
            yield from program.compared(inputs, {**program.constants(), **state})

    def release_memory(self) -> None:
        with self._lock:
            self._captured = None
            self._shared.held.clear()

    def _current(self, inputs: list[Any]) -> "CapturedGraph | None":
        """Return the graph for the current parameters, None if there is none."""
        captured = self._captured
        if captured is not None:
            changed = captured.changed()
            if not changed:
                return captured
            self._changed |= changed
        self._captured = None
        if self._captures == _CAPTURES:
            self._reason = "parameters are set between its runs"
            return None
        self._captures += 1
        if self._captures >= _COPYING and self._varying != self._changed:
            self._varying, self._program = self._changed, None
        boxes = [box for box in self._boxes if box not in self._varying]
        read = [(box, innermost(box.held()).data) for box in boxes]
        try:
            self._captured = self._capture(inputs, read)
        except (RuntimeError, NotImplementedError) as error:
            self._reason = str(error).splitlines()[0]
            self._has_failed = not isinstance(error, GraphError)
        return self._captured

    def _capture(self, inputs: list[Any], read: list[Any]) -> "CapturedGraph":
        """Return a verified graph; fall back to fills between kernels, or no fusion."""
        plan, device, varying = self._plan, self._device, self._varying
        if self._program is None:
            self._program = Program(plan, device, varying=varying)
        given = (device, inputs, read, self._shared)
        with suppress(GraphError):
            return CapturedGraph(self._program, *given)
        try:
            return CapturedGraph(self._program, *given, separates=True)
        except GraphError as error:
            if not self._program.is_fused:
                raise
            self._unfused = str(error)
        self._program = Program(plan, device, is_fused=False, varying=varying)
        return CapturedGraph(self._program, *given)


class CapturedGraph:
    """A CUDA graph with the memory that it reads and writes.

    ``read`` are the boxes whose arrays it reads, with these arrays. With ``separates``
    there are fills before library kernels.

    Raises:
        RuntimeError: a kernel does something that a graph cannot repeat.
    """

    def __init__(
        self,
        program: Program,
        device: "Cuda",
        inputs: list[Any],
        read: list[Any],
        shared: SharedState | None = None,
        separates: bool = False,
    ) -> None:
        cupy = device.cupy
        self._device, self._read, self._changes = device, read, changes()
        self._inputs = [array.copy() for array in inputs]
        cupy.cuda.get_current_stream().synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        self._state = State(program, device, shared)
        cupy.cuda.get_current_stream().synchronize()
        self._memory = CaptureMemory(cupy.cuda.MemoryPool(), separates)
        # Memory of the first run. A graph needs less: there kernels are not compared,
        # and algorithms are not chosen.
        trial = cupy.cuda.MemoryPool()
        with stream:
            constants, expected = self._first_run(program, stream, trial)
            with capturing(self._memory):
                self._graph = self._recorded(program, stream, constants)
        # From another pool, since free memory of this one is scratch memory of the
        # graph.
        self._state.set_outputs(self._separate)
        cupy.cuda.get_current_stream().synchronize()
        self.kernels = check_nodes(self._graph)
        for _ in range(_CHECKS):
            self._graph.launch(stream)
            stream.synchronize()
            self._check(expected)
        del expected
        trial.free_all_blocks()
        self._memory.free_unused()
        # The recording call, kernel by kernel, has left its memory there.
        cupy.get_default_memory_pool().free_all_blocks()
        self._stream = 0

    def _first_run(
        self, program: Program, stream: Any, pool: Any
    ) -> tuple[dict[int, Any], Any]:
        """Return the constants, and the result of a run with memory of ``pool``.

        Kernels are compiled, algorithms are chosen.
        """
        with self._memory.lasting():
            constants = program.constants()
        self._memory.add_constants(constants.values())
        with (
            capturing(self._memory),
            self._device.cupy.cuda.using_allocator(pool.malloc),
        ):
            expected = self._warm_up(program, constants)
            stream.synchronize()
        return constants, expected

    def _warm_up(self, program: Program, constants: dict[int, Any]) -> Any:
        """Return the result of a run after the state has its final memory layout."""
        values = {**constants, **self._state.values()}
        expected = program.run_checked(self._inputs, values)
        if not self._state:
            return expected
        with self._memory.lasting():
            self._state.lay_out(expected[1])
        return program.run(self._inputs, {**constants, **self._state.values()})

    def _recorded(
        self, program: Program, stream: Any, constants: dict[int, Any]
    ) -> CudaGraph:
        """Return the graph of a run, with full dependencies between kernels."""
        cupy, state = self._device.cupy, self._state.values()
        while True:
            self._pool = cupy.cuda.MemoryPool()
            with (
                cupy.cuda.using_allocator(self._pool.malloc),
                capturing_graph(stream) as graphs,
                self._memory.recorded((*self._inputs, *state.values())),
            ):
                values = {**constants, **state}
                self._result, new_values = program.run(self._inputs, values)
                self._separate = self._state.separate_values(new_values)
            (graph,) = graphs
            if self._memory.separates or wait_for_ends(graph, None, starts_early):
                return graph
            self._memory.separates = True

    def _check(self, expected: Any) -> None:
        """Check that the graph computes the same as its kernels outside of it.

        Raises:
            GraphError: the results differ.
        """
        result, new_values = expected
        for ours, theirs in zip(_arrays(self._result), _arrays(result), strict=True):
            error = difference(ours, theirs)
            if not error <= _MOST:
                raise GraphError(f"the graph differs from its kernels by {error:.1e}")
        pairs = zip(self._separate, new_values, strict=True)
        far = sum(_are_apart(*pair) for pair in pairs)
        if far > len(new_values) * _FEW:
            raise GraphError(
                f"{far} of {len(new_values)} boxes differ from its kernels"
            )

    def __del__(self) -> None:
        """Release the memory: CuPy's pools do not release free blocks when deleted."""
        with suppress(RuntimeError, AttributeError, TypeError):  # at the end of Python
            for name in ("_graph", "_result", "_separate", "_state", "_inputs"):
                vars(self).pop(name, None)
            with self._device.current():
                self._memory.close()
                self._pool.free_all_blocks()

    def changed(self) -> frozenset[Box]:
        """Return the boxes whose arrays differ from those that the graph reads."""
        count = changes()
        if count == self._changes:
            return frozenset()
        changed = frozenset(
            box for box, array in self._read if innermost(box.held()).data is not array
        )
        if not changed:
            self._changes = count
        return changed

    def launch(self, inputs: list[Any]) -> Any:
        """Return the result of the plan, in new memory, on CuPy's current stream."""
        stream, state = self._device.cupy.cuda.get_current_stream(), self._state
        if stream.ptr != self._stream:  # the last run may not have ended
            stream.wait_event(state.done)
            self._stream = stream.ptr
        state.refresh()
        with state.lock:
            for target, array in zip(self._inputs, inputs, strict=True):
                target[...] = array
            self._graph.launch(stream)
            result = mapped(self._copy_leaf, self._result)
            state.commit(stream)
        return result

    def _copy_leaf(self, leaf: Any) -> Any:
        """Return ``leaf`` with a copy of its array if that is on the device."""
        if type(leaf) is not Tensor:
            return leaf
        if type(leaf.data) is Tensor:
            return Tensor(self._copy_leaf(leaf.data), leaf.backend)
        if leaf.backend is not self._device:
            return leaf
        return Tensor(leaf.data.copy(order="K"), leaf.backend)


def _are_apart(ours: Any, theirs: Any) -> bool:
    """Return whether two new values of a box differ, or their updated slices."""
    if isinstance(ours, tuple):
        ours, theirs = ours[0], theirs[0]
    return not difference(ours, theirs.data) <= _MOST


def _arrays(result: Any) -> list[Any]:
    """Return the arrays in the result of a plan."""
    arrays: list[Any] = []

    def collect(leaf: Any) -> Any:
        if type(leaf) is Tensor:
            arrays.append(innermost(leaf).data)
        return leaf

    mapped(collect, result)
    return [array for array in arrays if hasattr(array, "device")]
