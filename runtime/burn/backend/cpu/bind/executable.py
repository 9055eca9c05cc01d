"""Executables of plans on the CPU, which are optimized at their first run.

The call that records a plan has its result already: passes and the binder are imported,
and run, when the plan is used a second time.
"""

import threading
from typing import TYPE_CHECKING, Any

from burn.plan.executable import Executable, Plan
from burn.structs import replace

if TYPE_CHECKING:
    from burn.backend.cpu.bind.optimization import OptimizedPlan
    from burn.backend.cpu.bind.program import Program


class CpuExecutable(Executable):
    """A program of prepared calls, with a fallback to the recorded plan."""

    def __init__(self, plan: Plan) -> None:
        # Later recordings of the function grow the tree of the first one.
        self.plan = replace(plan, root=plan.root.snapshot())
        self.is_lowered = bool(plan.lowering) and plan.can_lower
        self._lock = threading.Lock()
        self._optimized: OptimizedPlan | None = None
        self._notes: list[str] = []
        if not plan.can_lower:
            self._notes.append(f"{plan.precision} is not used: it sets boxes")

    @property
    def notes(self) -> list[str]:
        plan, notes = self.plan, [*self._notes]
        if plan.is_observed:
            return notes
        if self.is_lowered and not self.optimized().has_lower_precision:
            why = "it has no layer for it, or none with scales"
            notes.append(f"{plan.precision} is not used: {why}")
        from burn.backend.cpu.onednn.binding.engine import no_gain

        idle = no_gain(plan.precision)
        return notes if idle is None else [*notes, idle]

    @property
    def program(self) -> "Program | None":
        """The program of the optimized plan."""
        return self.optimized().program

    def optimized(self) -> "OptimizedPlan":
        """Return the plan after its passes, which run once."""
        with self._lock:
            if self._optimized is None:
                from burn.backend.cpu.bind.optimization import OptimizedPlan

                self._optimized = OptimizedPlan(self.plan)
            return self._optimized

    def run(self, inputs: list[Any]) -> Any:
        return (self._optimized or self.optimized()).run(inputs)

    def release_memory(self) -> None:
        if self._optimized is not None and self._optimized.program is not None:
            self._optimized.program.release_memory()

    def allocate_in_each_run(self, reason: str) -> None:
        self.optimized().program = None
        self._notes.append(f"a plan runs without memory of its own: {reason}")
