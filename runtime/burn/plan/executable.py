"""The interface between plans and devices.

A backend's ``bind`` turns a :class:`Plan` into an :class:`Executable`. It may run the
passes of :mod:`burn.plan.passes` on a copy of the recording. The result runs as
prepared primitives, generated kernels or captured graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from burn.plan.plan_ir import Segment, boxes_written, has_gradients
from burn.plan.precisions import FULL, OF_UPDATES
from burn.structs import Struct

if TYPE_CHECKING:
    from burn.plan.passes.graph import Inputs, Pass
    from burn.plan.profile import Profiler


class PlanMemoryError(Exception):
    """Not enough memory to keep the values of a plan at fixed addresses."""


class Plan(Struct):
    """A recorded function for one signature.

    ``root`` is the recording, which ``bind`` does not modify, and ``inputs`` are the
    shapes and dtypes of the arguments. ``lowering`` are the passes of ``precision``.
    With ``is_observed`` these passes add steps that observe values, and no step may be
    constant-folded. ``generated`` enables or disables generated kernels, None leaves
    the choice to the device. A ``profiler`` times the calls of each run; a device may
    ignore it. ``is_differentiated`` marks a part of a plan that computes gradients.
    """

    root: Segment
    inputs: Inputs
    precision: str = FULL
    lowering: tuple[Pass, ...] = ()
    is_observed: bool = False
    generated: bool | None = None
    profiler: Profiler | None = None
    is_differentiated: bool = False

    @property
    def has_gradients(self) -> bool:
        """Whether gradients are computed, so that forward values may not be rounded."""
        return self.is_differentiated or has_gradients(self.root)

    @property
    def sets_boxes(self) -> bool:
        """Whether the plan sets boxes at its end."""
        return next(boxes_written(self.root), None) is not None

    @property
    def can_lower(self) -> bool:
        """Whether the passes of ``precision`` support the boxes that this plan sets."""
        return self.precision in OF_UPDATES or not self.sets_boxes


class Executable(ABC):
    """A plan that is bound to a device; runs are thread-safe."""

    #: Whether the recording call must return the result of a replay: with a lower
    #: precision the first result would differ from all others.
    is_lowered: bool = False

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """Requested features that the plan does not use, with the reasons."""

    @abstractmethod
    def run(self, inputs: list[Any]) -> Any:
        """Return the result of the function for ``inputs``, arrays of the device.

        Boxes are set after all other steps.

        Raises:
            UnforeseenError: a guard value, a shape or a box matches no recording.
            PlanMemoryError: there is not enough memory for the values; no box is set.
        """

    def release_memory(self) -> None:  # noqa: B027  most keep none
        """Release memory that the next run can allocate again."""

    def allocate_in_each_run(self, reason: str) -> None:  # noqa: B027
        """Stop keeping memory between runs; ``reason`` is added to the notes."""
