"""Attention windows (``causal``, sliding) recognized in mask conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from burn_import.passes.attention.mask_conditions import STEPS, Conditions
from burn_import.passes.shapes.affine_indices import Ramp
from burn_import.provenance.trainable import is_learned
from burn_import.rewriting.arrays import core
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.ops.support import known_dims, known_ints
from burn_ir.types import Array

#: The position of the operand that must be larger, and by how much at least.
COMPARISONS = {
    "GreaterOrEqual": (0, 0),
    "Greater": (0, 1),
    "LessOrEqual": (1, 0),
    "Less": (1, 1),
}
#: Operators that keep each condition for its query and key.
MOVES = ("Expand", "Unsqueeze", "Identity")
#: Operators that make conditions of numbers, or of others.
_CONVERTED = ("Not", "Cast", "Equal")


@dataclass(frozen=True)
class Window:
    """Attention window: query ``i`` sees keys ``i - left`` to ``i + right``.

    -1 means no limit on that side.
    """

    left: int = -1
    right: int = -1

    @property
    def is_causal(self) -> bool:
        return self.right == 0

    def narrowed(self, other: Window) -> Window:
        """Return the intersection of both windows."""
        return Window(
            _smaller_limit(self.left, other.left),
            _smaller_limit(self.right, other.right),
        )


def _smaller_limit(a: int, b: int) -> int:
    return max(a, b) if min(a, b) < 0 else min(a, b)


EVERYWHERE = Window()


@dataclass
class Windows:
    """Attention windows of conditions that apply to scores of one shape."""

    conditions: Conditions
    scores: tuple[Dim, ...]
    #: Returns the name of the conjunction of two conditions.
    both: Callable[[str, str], str]
    window: Window = field(default=EVERYWHERE)

    def without(self, name: str, steps: int = STEPS) -> str | None:
        """Return the condition without its attention window; None if nothing remains.

        The window is intersected with :attr:`window`.
        """
        window = self.of(name)
        if window is not None:
            self.window = self.window.narrowed(window)
            return None
        node = self.conditions.flow.made_by(name, "And")
        if node is None or not steps:
            return name
        before = self.window
        operands = [n for n in node.inputs if n is not None]
        parts = [self.without(n, steps - 1) for n in operands]
        remaining = [part for part in parts if part is not None]
        if not all(self.covers_keys(part) for part in remaining):
            self.window = before
            return name
        if len(remaining) < 2:
            return remaining[0] if remaining else None
        return name if remaining == operands else self.both(remaining[0], remaining[1])

    def covers_keys(self, name: str) -> bool:
        return self.conditions.flow.extents(name)[-1:] == self.scores[-1:]

    def of(self, name: str | Array, shown: bool = True) -> Window | None:
        """Return the window of a condition that equals ``shown`` for visible keys."""
        flow = self.conditions.flow
        stored = flow.stored(name) if isinstance(name, str) else name
        if stored is not None:
            return self.stored(stored, shown)
        assert isinstance(name, str)
        if extents(flow, name)[-2:] != self.scores[-2:]:
            return None
        node = flow.made_by(name, "And", "Slice", *_CONVERTED, *MOVES, *COMPARISONS)
        if node is None:
            return None
        if node.op.onnx == "Slice":
            return self.of_corner(corner(flow, name), shown)
        if node.op.onnx in ("Cast", "Equal"):
            return self.of_triangle(node, shown is (node.op.onnx == "Cast"))
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

    def of_triangle(self, node: Node, shown: bool) -> Window | None:
        """Return the window of numbers that are converted, or compared with 0."""
        flow, names = self.conditions.flow, list(node.inputs)
        if node.op.onnx == "Equal":
            zeros = [name for name in names if flow.scalar(name) == 0]
            names = [name for name in names if name not in zeros] if zeros else []
        triangular = triangle(flow, names[0], shown) if names else None
        if triangular is not None:
            return triangular[0] if triangular[1] else None
        return self.of_numbers(names[0], shown) if names else None

    def of_numbers(self, name: str | None, shown: bool) -> Window | None:
        """Return the window of a constant, or its corner, that is 0 or not.

        Zeros and ones of a buffer stay what they are; a parameter may be trained.
        """
        flow = self.conditions.flow
        stored, leading = flow.stored(name), corner(flow, name)
        source = name if leading is None else _sliced(flow, name)
        is_buffer = flow.graph.constants.trained.get(source or "") is False
        if is_learned(flow.graph, source) and not is_buffer:
            return None
        if stored is not None:
            return self.stored(stored != 0, shown)
        if leading is None:
            return None
        return self.of_corner((leading[0] != 0, leading[1]), shown)

    def of_both(self, node: Node) -> Window | None:
        """Return the intersection of the windows if both operands have one."""
        one, other = (self.of(str(name)) for name in node.inputs)
        return None if one is None or other is None else one.narrowed(other)

    def of_corner(
        self, corner_values: tuple[Array, tuple[Dim, ...]] | None, shown: bool
    ) -> Window | None:
        """Return the window of a condition sliced from a constant."""
        whole = None if corner_values is None else corner_values[0]
        if whole is None or whole.dtype != np.bool_ or whole.ndim < 2:
            return None
        causal = np.tri(*whole.shape[-2:], dtype=np.bool_)
        square = whole.shape[-1] == whole.shape[-2] > 1
        return (
            Window(right=0) if square and (whole == (causal == shown)).all() else None
        )

    def stored(self, seen: Array, shown: bool) -> Window | None:
        """Return the attention window of a constant condition."""
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
        return Window(right=0) if (matrices == (causal == shown)).all() else None


def triangle(
    flow: Dataflow, name: str | None, shown: bool
) -> tuple[Window, float] | None:
    """Return the window of ``Trilu`` of a filled tensor, and the fill value.

    ``shown`` tells whether the triangle's elements mark visible keys or hidden ones.
    None if ``name`` is no such triangle.
    """
    node = flow.made_by(name, "Trilu")
    value = None if node is None else _fill_value(flow, node.inputs[0])
    if node is None or value is None:
        return None
    diagonal = known_ints(flow.graph.type(node.inputs[1])) if node.inputs[1:] else (0,)
    if diagonal is None:
        return None
    upper, (k,) = bool(node.op.attrs()["upper"]), diagonal
    if upper is shown:
        left, right = (-k if shown else -1 - k), -1
    else:
        left, right = -1, (k if shown else k - 1)
    if max(left, right) < 0:
        return None
    return Window(left, right), value


def _fill_value(flow: Dataflow, name: str | None) -> float | None:
    """Return the element of a filled tensor, None for others."""
    node = flow.made_by(name, "ConstantOfShape", "Expand")
    if node is not None and node.op.onnx == "ConstantOfShape":
        value = node.op.attrs()["value"]
        return None if value is None else float(value.item())
    name = name if node is None else node.inputs[0]
    stored = flow.stored(name)
    is_number = stored is not None and stored.dtype.kind in "fiub"
    if stored is None or not is_number or is_learned(flow.graph, name):
        return None
    elements = np.unique(core(stored))
    return float(elements[0]) if len(elements) == 1 else None


def extents(flow: Dataflow, name: str) -> tuple[Dim, ...]:
    """Return the shape of a value, for a slice of a constant that of ``corner``.

    They differ only where the constant is too small for its reader.
    """
    corner_values = corner(flow, name)
    return flow.extents(name) if corner_values is None else corner_values[1]


def corner(
    flow: Dataflow, name: str | None, steps: int = STEPS
) -> tuple[Array, tuple[Dim, ...]] | None:
    """Return a constant and the extents of its leading slice ``name``; None if none."""
    node = flow.made_by(name, "Slice")
    if node is None or len(node.inputs) < 4 or not steps:
        return None
    stored = flow.stored(node.inputs[0])
    whole = corner(flow, node.inputs[0], steps - 1)
    if stored is not None:
        whole = stored, stored.shape
    operands = [flow.graph.type(operand) for operand in node.inputs[1:]]
    starts, _, axes, by = (known_ints(operand) for operand in (*operands, None)[:4])
    ends = known_dims(operands[1])
    if whole is None or starts is None or ends is None or axes is None:
        return None
    if any(starts) or (len(operands) == 4 and set(by or ()) != {1}):
        return None
    shape = list(whole[1])
    for axis, end in zip(axes, ends, strict=True):
        if isinstance(end, int) and not 0 <= end <= whole[0].shape[axis]:
            return None
        shape[axis] = end
    return whole[0], tuple(shape)


def _sliced(flow: Dataflow, name: str | None) -> str | None:
    """Return the constant that slices of slices read."""
    while (node := flow.made_by(name, "Slice")) is not None:
        name = node.inputs[0]
    return name


def _of_difference(high: Ramp, low: Ramp, by: int) -> Window | None:
    """Return the window where ``high - low >= by``, for index ramps."""
    rank = max(len(high.steps), len(low.steps))
    high, low = high.padded(rank), low.padded(rank)
    steps = [a - b for a, b in zip(high.steps, low.steps, strict=True)]
    offset = high.offset - low.offset - by
    even = all(step == 0 for step in steps[:-2])
    if rank < 2 or not even or not isinstance(offset, int) or offset < 0:
        return None
    if steps[-2:] == [1, -1]:
        return Window(right=offset)
    return Window(left=offset) if steps[-2:] == [-1, 1] else None
