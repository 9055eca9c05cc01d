"""What a condition says of how far queries see, as ``causal`` or a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from burn_import.passes.attention.mask_conditions import STEPS, Conditions
from burn_import.passes.shapes.affine_indices import Ramp
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.ops.support import known_dims, known_ints
from burn_ir.types import Array

#: Which operand of a comparison has to be larger for it to hold, and by how much.
COMPARISONS = {
    "GreaterOrEqual": (0, 0),
    "Greater": (0, 1),
    "LessOrEqual": (1, 0),
    "Less": (1, 1),
}
#: Operators whose result says the same of a place as their operand.
MOVES = ("Expand", "Unsqueeze", "Identity")


@dataclass(frozen=True)
class Reach:
    """Query ``i`` sees keys from ``i - left`` to ``i + right``; -1 is all of them."""

    left: int = -1
    right: int = -1

    @property
    def is_causal(self) -> bool:
        return self.right == 0

    def narrowed(self, other: Reach) -> Reach:
        """What is seen by both."""
        return Reach(_least(self.left, other.left), _least(self.right, other.right))


def _least(a: int, b: int) -> int:
    return max(a, b) if min(a, b) < 0 else min(a, b)


EVERYWHERE = Reach()


@dataclass
class Reaches:
    """Which conditions on ``scores``, a shape, say how far queries see."""

    conditions: Conditions
    scores: tuple[Dim, ...]
    #: Makes the condition that two others hold.
    both: Callable[[str, str], str]
    found: Reach = field(default=EVERYWHERE)

    def without(self, name: str, steps: int = STEPS) -> str | None:
        """What is left of a condition; None if nothing is.

        The rest is added to :attr:`found`.
        """
        reach = self.of(name)
        if reach is not None:
            self.found = self.found.narrowed(reach)
            return None
        node = self.conditions.flow.made_by(name, "And")
        if node is None or not steps:
            return name
        before = self.found
        operands = [n for n in node.inputs if n is not None]
        parts = [self.without(n, steps - 1) for n in operands]
        kept = [part for part in parts if part is not None]
        if not all(self.reaches(part) for part in kept):
            self.found = before
            return name
        if len(kept) < 2:
            return kept[0] if kept else None
        return name if kept == operands else self.both(kept[0], kept[1])

    def reaches(self, name: str) -> bool:
        return self.conditions.flow.extents(name)[-1:] == self.scores[-1:]

    def of(self, name: str | Array, shown: bool = True) -> Reach | None:
        """How far a condition that is ``shown`` where it holds lets queries see."""
        flow = self.conditions.flow
        stored = flow.stored(name) if isinstance(name, str) else name
        if stored is not None:
            return self.stored(stored, shown)
        assert isinstance(name, str)
        if extents(flow, name)[-2:] != self.scores[-2:]:
            return None
        node = flow.made_by(name, "And", "Not", "Slice", "Cast", *MOVES, *COMPARISONS)
        if node is None:
            return None
        if node.op.onnx == "Slice":
            return self.of_corner(corner(flow, name), shown)
        if node.op.onnx == "Cast":
            found = triangle(flow, node.inputs[0], shown)
            return found[0] if found is not None and found[1] else None
        if node.op.onnx == "And":
            return self.of_both(node) if shown else None
        if node.op.onnx == "Not" or node.op.onnx in MOVES:
            inner = str(node.inputs[0])
            return self.of(inner, shown is not (node.op.onnx == "Not"))
        larger, by = COMPARISONS[node.op.onnx]
        ramps = [self.conditions.ramps.of(operand) for operand in node.inputs]
        high, low = ramps[larger], ramps[1 - larger]
        if high is None or low is None:
            return None
        if not shown:
            high, low, by = low, high, 1 - by
        return _of_difference(high, low, by)

    def of_both(self, node: Node) -> Reach | None:
        """How far queries see if both operands say that."""
        one, other = (self.of(str(name)) for name in node.inputs)
        return None if one is None or other is None else one.narrowed(other)

    def of_corner(
        self, found: tuple[Array, tuple[Dim, ...]] | None, shown: bool
    ) -> Reach | None:
        """How far the first rows and columns of stored conditions let queries see."""
        whole = None if found is None else found[0]
        if whole is None or whole.dtype != np.bool_ or whole.ndim < 2:
            return None
        causal = np.tri(*whole.shape[-2:], dtype=np.bool_)
        square = whole.shape[-1] == whole.shape[-2] > 1
        return Reach(right=0) if square and (whole == (causal == shown)).all() else None

    def stored(self, seen: Array, shown: bool) -> Reach | None:
        """How far stored conditions let queries see."""
        if (
            seen.dtype != np.bool_
            or seen.ndim < 2
            or self.scores[-2:] != seen.shape[-2:]
        ):
            return None
        matrices = seen.reshape(-1, *seen.shape[-2:])
        if matrices.shape[1] < 2:
            return None
        causal = np.tri(*matrices.shape[1:], dtype=np.bool_)
        return Reach(right=0) if (matrices == (causal == shown)).all() else None


def triangle(
    flow: Dataflow, name: str | None, shown: bool
) -> tuple[Reach, float] | None:
    """The reach if a triangle of one number is what is ``shown``, or hidden, and the
    number; None if ``name`` is no such triangle.
    """
    node = flow.made_by(name, "Trilu")
    source = None if node is None else flow.made_by(node.inputs[0], "ConstantOfShape")
    value = None if source is None else source.op.attrs()["value"]
    if node is None or value is None:
        return None
    given = known_ints(flow.graph.type(node.inputs[1])) if node.inputs[1:] else (0,)
    if given is None:
        return None
    upper, (k,) = bool(node.op.attrs()["upper"]), given
    if upper is shown:
        left, right = (-k if shown else -1 - k), -1
    else:
        left, right = -1, (k if shown else k - 1)
    if max(left, right) < 0:
        return None
    return Reach(left, right), float(value.item())


def extents(flow: Dataflow, name: str) -> tuple[Dim, ...]:
    """The shape of a value; of the corner of a stored one, what is asked for.

    That is less only where the stored value is too small for what reads it.
    """
    found = corner(flow, name)
    return flow.extents(name) if found is None else found[1]


def corner(
    flow: Dataflow, name: str | None, steps: int = STEPS
) -> tuple[Array, tuple[Dim, ...]] | None:
    """The stored value of which ``name`` has what comes first, up to some extents."""
    node = flow.made_by(name, "Slice")
    if node is None or len(node.inputs) != 5 or not steps:
        return None
    stored = flow.stored(node.inputs[0])
    whole = corner(flow, node.inputs[0], steps - 1)
    if stored is not None:
        whole = stored, stored.shape
    operands = [flow.graph.type(operand) for operand in node.inputs[1:]]
    starts, _, axes, by = (known_ints(operand) for operand in operands)
    ends = known_dims(operands[1])
    if whole is None or starts is None or ends is None or axes is None or by is None:
        return None
    if any(starts) or any(n != 1 for n in by):
        return None
    shape = list(whole[1])
    for axis, end in zip(axes, ends, strict=True):
        if isinstance(end, int) and not 0 <= end <= whole[0].shape[axis]:
            return None
        shape[axis] = end
    return whole[0], tuple(shape)


def _of_difference(high: Ramp, low: Ramp, by: int) -> Reach | None:
    """The reach where ``high - low`` is at least ``by``."""
    rank = max(len(high.steps), len(low.steps))
    high, low = high.padded(rank), low.padded(rank)
    steps = [a - b for a, b in zip(high.steps, low.steps, strict=True)]
    offset = high.offset - low.offset - by
    even = all(step == 0 for step in steps[:-2])
    if rank < 2 or not even or not isinstance(offset, int) or offset < 0:
        return None
    if steps[-2:] == [1, -1]:
        return Reach(right=offset)
    return Reach(left=offset) if steps[-2:] == [-1, 1] else None
