"""The seam between plans and devices: what is bound, and what a device makes of it.

A backend's ``bind`` turns a :class:`Plan` into an :class:`Executable`. It may run the
passes of :mod:`burn.plan.passes` on a copy of the recording, and has means of its own
to run what comes out: prepared primitives, generated kernels, captured graphs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from burn.plan.passes import OF_UPDATES, Pass
from burn.plan.passes.graph import Inputs
from burn.plan.plan_ir import Segment, has_gradients, written
from burn.plan.profile import Profiler


class PlanMemoryError(Exception):
    """There is not enough memory to keep the values of a plan at fixed addresses."""


@dataclass(frozen=True)
class Plan:
    """A recorded function for one kind of arguments.

    ``root`` is the recording, which ``bind`` does not change, and ``inputs`` are the
    shapes and dtypes of the arguments. ``lowering`` are the passes of ``precision``.
    With ``is_observed`` they add steps that observe values, and each step has to run.
    ``generated`` asks for kernels that are generated for the plan. A ``profiler``
    measures the calls of each run; a device may not know it.
    """

    root: Segment
    inputs: Inputs
    precision: str = "float32"
    lowering: tuple[Pass, ...] = ()
    is_observed: bool = False
    generated: bool = False
    profiler: Profiler | None = None

    @property
    def has_gradients(self) -> bool:
        """Whether gradients are computed, so that forward values may not be rounded."""
        return has_gradients(self.root)

    @property
    def sets_boxes(self) -> bool:
        """Whether boxes are set when all the rest is done."""
        return next(written(self.root), None) is not None

    @property
    def can_lower(self) -> bool:
        """Whether the passes of ``precision`` are for plans that set these boxes."""
        return self.precision in OF_UPDATES or not self.sets_boxes


class Executable(ABC):
    """A plan that a device runs. Threads may run it at the same time."""

    #: Whether the result of the recording call has to come from a run as well: a lower
    #: precision would make the first result differ from all others.
    is_lowered: bool = False

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """What the plan does without, although the user asked for it, and why."""

    @abstractmethod
    def run(self, inputs: list[Any]) -> Any:
        """Return the result of the function for ``inputs``, data of the device.

        Boxes are set when everything else is done.

        Raises:
            UnforeseenError: a value read, a shape or a box is as in no recording.
            PlanMemoryError: there is no memory for its values; no box is set.
        """

    def release_memory(self) -> None:  # noqa: B027  most keep none
        """Give memory up that the next run can have again."""

    def allocate_in_each_run(self, reason: str) -> None:  # noqa: B027
        """Keep no memory between runs from now on; ``reason`` becomes a note."""
