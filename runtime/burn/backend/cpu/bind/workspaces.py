"""Workspaces: memory that forward steps leave for their gradient steps."""

from collections.abc import Hashable, Iterator
from math import prod
from typing import Any

import numpy as np

from burn.ops.support import Array
from burn.plan.plan_ir import Segment, Slot, Step


class Workspaces:
    """The workspaces of the steps of a segment and its predecessors.

    A step has a gradient if a later one reads its results as ``gradient_of`` declares.
    ``is_generated`` is true if elementwise NumPy calls become generated kernels.
    """

    def __init__(self, is_generated: bool) -> None:
        self.is_generated = is_generated
        self._wanted: set[tuple[int, ...]] = set()
        self._left: dict[tuple[int, ...], tuple[Hashable, Any]] = {}
        self._step: Step | None = None
        self._shared: dict[Hashable, Array] = {}

    def branched(self) -> "Workspaces":
        """Return the workspaces for a branch that continues from the current state."""
        other = Workspaces(self.is_generated)
        other._left, other._shared = dict(self._left), self._shared
        return other

    def enter(self, segment: Segment) -> None:
        """Find the gradients that follow in ``segment`` or its successors."""
        self._wanted = set(_gradients(segment))

    def start(self, step: Step) -> None:
        """Set the step that is being bound."""
        self._step = step

    def is_wanted(self) -> bool:
        """Return whether the plan has a gradient of the current step."""
        return self._step is not None and self._step.outputs in self._wanted

    def leave(self, key: Hashable, memory: Any) -> None:
        """Store ``memory`` under ``key`` for the gradient of the current step."""
        assert self._step is not None
        self._left[self._step.outputs] = (key, memory)

    def left(self, key: Hashable) -> Any:
        """Return the current step's memory that was stored under ``key``, or None."""
        entry = self._left.get(_results(self._step)) if self._step else None
        return entry[1] if entry is not None and entry[0] == key else None

    def shared(
        self, key: Hashable, shape: tuple[int, ...], *, zeros: bool = False
    ) -> Array:
        """Return float32 memory that all steps with the same ``key`` share.

        With ``zeros`` it is initially zero, and ``shape`` is the same for all of a key;
        otherwise it is one-dimensional, and as long as the longest request.
        """
        memory = self._shared.get(key)
        if memory is None or memory.size < prod(shape):
            make = np.zeros if zeros else np.empty
            memory = self._shared[key] = make(shape, np.float32)
        return memory


def _gradients(segment: Segment) -> Iterator[tuple[int, ...]]:
    """Yield the slots of results with gradients in or after ``segment``."""
    for step in segment.steps:
        if isinstance(step, Step) and step.primitive.gradient_of is not None:
            yield _results(step)
    for child in segment.children.values():
        yield from _gradients(child)


def _results(step: Step) -> tuple[int, ...]:
    """Return the slots of the results whose gradients ``step`` computes."""
    forward = step.primitive.gradient_of
    if forward is None:
        return ()
    args = step.args[forward.outputs : 2 * forward.outputs]
    return tuple(arg.place if type(arg) is Slot else -1 for arg in args)
