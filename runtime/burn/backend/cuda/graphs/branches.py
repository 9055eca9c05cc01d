"""Plans with branches as CUDA graphs: one graph for each part between two guards.

A part with steps that graphs cannot repeat is cut there, and the parts between these
steps become graphs.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burn.backend.cuda.graphs.graph import GraphReplay
from burn.backend.cuda.graphs.state import SharedState
from burn.backend.cuda.graphs.unrepeatable import unrepeatable_steps
from burn.plan.executable import Executable, Plan
from burn.plan.parts import Part, parts_of
from burn.plan.plan_ir import Step, UnforeseenError
from burn.plan.replay import Replay

if TYPE_CHECKING:
    from burn.backend.cuda.device import Cuda


def bound(plan: Plan, device: "Cuda") -> Executable:
    """Return the graphs of ``plan``, or an executable that launches each kernel."""
    if plan.is_observed:  # its values pass through the host
        return GraphReplay(plan, device)
    return BranchingGraphs(parts_of(plan), device)


class BranchingGraphs(Executable):
    """Parts of a plan that are launched as CUDA graphs, or kernel by kernel.

    One thread at a time launches the parts of a run.
    """

    def __init__(
        self, first: Part, device: "Cuda", shared: SharedState | None = None
    ) -> None:
        self._device, self._lock = device, threading.Lock()
        shared = shared or SharedState()
        self._first = Branch(first, device, shared, is_whole=first.is_last)

    @property
    def notes(self) -> list[str]:
        branches = self._first.all()
        return list(dict.fromkeys(n for each in branches for n in each.notes))

    @property
    def kernels(self) -> int | None:
        """The number of kernels in all graphs, None without graphs."""
        counts = [getattr(b.executable, "kernels", None) for b in self._first.all()]
        return sum(filter(None, counts)) if any(counts) else None

    def run(self, inputs: list[Any]) -> Any:
        if self._first.is_whole:
            return self._first.compute(inputs)
        values = dict(enumerate(inputs))
        branch: Branch | None = self._first
        with self._lock, self._device.current():
            while branch is not None:
                result = branch.run(values)
                branch = branch.successor(values)
        return result

    def compared(self, inputs: list[Any]) -> Iterator[tuple[int, Step, float]]:
        """Yield each fused step with its number in its part, and its error against
        unfused steps.
        """
        values = dict(enumerate(inputs))
        branch: Branch | None = self._first
        with self._device.current():
            while branch is not None:
                yield from branch.compared(values)
                branch.run(values)
                branch = branch.successor(values)

    def release_memory(self) -> None:
        for branch in self._first.all():
            branch.executable.release_memory()


class Branch:
    """A part that is bound to a device, and its successors that were needed so far."""

    def __init__(
        self, part: Part, device: "Cuda", shared: SharedState, is_whole: bool = False
    ) -> None:
        self._part, self._device, self._shared = part, device, shared
        self.is_whole = is_whole
        self.executable: Executable = (
            GraphReplay(part.plan, device, shared)
            if is_whole or _is_worth_a_graph(part)
            else Replay(part.plan, device)
        )
        self._successors: dict[bytes, Branch] = {}

    def all(self) -> "Iterator[Branch]":
        """Yield this branch and those after it."""
        yield self
        for branch in list(self._successors.values()):
            yield from branch.all()

    @property
    def notes(self) -> list[str]:
        return self.executable.notes

    def run(self, values: dict[int, Any]) -> Any:
        """Return the result of the part, and add the values that it gives."""
        result = self.compute([values[place] for place in self._part.takes])
        if not self._part.is_last:
            arrays = (tensor.data for tensor in result)
            values.update(zip(self._part.gives, arrays, strict=True))
        return result

    def compute(self, inputs: list[Any]) -> Any:
        """Return the result of the part for the values that it takes."""
        executable = self.executable
        result = executable.run(inputs)
        if isinstance(executable, GraphReplay) and executable.take_failure():
            self._cut(inputs)
        return result

    def compared(self, values: dict[int, Any]) -> Iterator[tuple[int, Step, float]]:
        """Yield the fused steps with their errors, as :class:`BranchingGraphs`."""
        inputs = [values[place] for place in self._part.takes]
        if isinstance(self.executable, GraphReplay | BranchingGraphs):
            yield from self.executable.compared(inputs)

    def successor(self, values: dict[int, Any]) -> "Branch | None":
        """Return the next branch, None after the last.

        Raises:
            UnforeseenError: no recording covers the value that is read.
        """
        part, seen = self._part, b""
        if part.guard is not None:
            seen = values[part.guard].tobytes()
        branch = self._successors.get(seen)
        if branch is not None or part.is_last:
            return branch
        following = part.then if part.guard is None else part.children.get(seen)
        if following is None:
            raise UnforeseenError(f"{values[part.guard or 0]} was read")
        branch = Branch(following, self._device, self._shared)
        self._successors[seen] = branch
        return branch

    def _cut(self, inputs: list[Any]) -> None:
        """Replace the part by graphs between the steps that a graph cannot repeat."""
        plan = self._part.plan
        cuts = unrepeatable_steps(plan, self._device, inputs)
        first = parts_of(plan, cuts)
        part: Part | None = first
        while part is not None:
            if _is_worth_a_graph(part):
                self.executable = BranchingGraphs(first, self._device, self._shared)
                return
            part = part.then


def _is_worth_a_graph(part: Part) -> bool:
    """Return whether a graph launches less than its part: it copies what is passed."""
    return not part.is_cut and part.count > len(part.takes) + len(part.gives)
