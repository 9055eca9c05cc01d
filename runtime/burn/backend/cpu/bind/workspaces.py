"""Memory that steps leave to the steps of their gradients."""

from collections.abc import Hashable, Iterator
from math import prod
from typing import Any

import numpy as np

from burn.ops.support import Array
from burn.plan.plan_ir import Segment, Slot, Step


class Workspaces:
    """What the steps of a segment, and of those before it, left.

    A step has a gradient if a later one takes its results as ``gradient_of`` says.
    ``is_generated`` says that NumPy's calls of elements become generated kernels.
    """

    def __init__(self, is_generated: bool) -> None:
        self.is_generated = is_generated
        self._wanted: set[tuple[int, ...]] = set()
        self._left: dict[tuple[int, ...], tuple[Hashable, Any]] = {}
        self._step: Step | None = None
        self._shared: dict[Hashable, Array] = {}

    def branched(self) -> "Workspaces":
        """Those of a segment that goes on from here."""
        other = Workspaces(self.is_generated)
        other._left, other._shared = dict(self._left), self._shared
        return other

    def enter(self, segment: Segment) -> None:
        """Find the gradients that follow in ``segment`` or later."""
        self._wanted = set(_gradients(segment))

    def start(self, step: Step) -> None:
        """Note that ``step`` is bound now."""
        self._step = step

    def is_wanted(self) -> bool:
        """Whether there is a gradient of the current step in the plan."""
        return self._step is not None and self._step.outputs in self._wanted

    def leave(self, key: Hashable, memory: Any) -> None:
        """Leave ``memory`` in the form ``key`` to the gradient of the current step."""
        assert self._step is not None
        self._left[self._step.outputs] = (key, memory)

    def left(self, key: Hashable) -> Any:
        """The memory that was left to the current step in the form ``key``, or None."""
        entry = self._left.get(_results(self._step)) if self._step else None
        return entry[1] if entry is not None and entry[0] == key else None

    def shared(
        self, key: Hashable, shape: tuple[int, ...], *, zeros: bool = False
    ) -> Array:
        """Memory of float32 of which steps with one ``key`` share what they ask for.

        With ``zeros`` it is zeros at first, and ``shape`` is the same for all of a key;
        otherwise it has one axis, and is as long as the longest.
        """
        memory = self._shared.get(key)
        if memory is None or memory.size < prod(shape):
            make = np.zeros if zeros else np.empty
            memory = self._shared[key] = make(shape, np.float32)
        return memory


def _gradients(segment: Segment) -> Iterator[tuple[int, ...]]:
    """The places of results whose gradients are computed in ``segment`` or later."""
    for step in segment.steps:
        if isinstance(step, Step) and step.primitive.gradient_of is not None:
            yield _results(step)
    for child in segment.children.values():
        yield from _gradients(child)


def _results(step: Step) -> tuple[int, ...]:
    """The places of the results of which ``step`` computes the gradients."""
    forward = step.primitive.gradient_of
    if forward is None:
        return ()
    args = step.args[forward.outputs : 2 * forward.outputs]
    return tuple(arg.place if type(arg) is Slot else -1 for arg in args)
