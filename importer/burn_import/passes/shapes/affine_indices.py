"""Affine integer ranges along the axes of a tensor, as ``arange`` makes them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from burn_import.rewriting.dataflow import DEPTH, Dataflow
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.ops.support import known_dims, known_ints
from burn_ir.types import Array

#: Operators of two ramps whose result may be a ramp.
ARITHMETIC = ("Add", "Sub", "Mul")


@dataclass(frozen=True)
class Ramp:
    """An affine index tensor: ``offset`` plus index times step for each axis."""

    steps: tuple[Dim, ...]
    offset: Dim

    def padded(self, rank: int) -> Ramp:
        """Return the ramp broadcast to a rank."""
        return Ramp((0,) * (rank - len(self.steps)) + self.steps, self.offset)

    @property
    def is_even(self) -> bool:
        """Whether all elements are equal."""
        return all(step == 0 for step in self.steps)


@dataclass
class Ramps:
    """Ramps (affine index ranges) among the values of a graph."""

    flow: Dataflow
    _cache: dict[str, Ramp | None] = field(default_factory=dict)

    def of(self, name: str | None, depth: int = DEPTH) -> Ramp | None:
        """Return ``name`` as a ramp; None if it is none or that is unknown."""
        if name is None or not depth:
            return None
        if name not in self._cache:
            ramp = self._infer(name, depth - 1)
            shape = self.flow.extents(name)
            if ramp is not None:
                ramp = (
                    _normalize(ramp, shape) if len(shape) == len(ramp.steps) else None
                )
            self._cache[name] = ramp
        return self._cache[name]

    def _infer(self, name: str, depth: int) -> Ramp | None:
        if not self.flow.is_discrete(name):
            return None
        value_type = self.flow.graph.type(name)
        contents = None if value_type is None else value_type.known
        dims = (
            known_dims(value_type)
            if contents is not None and contents.size == 1
            else None
        )
        if dims is not None:
            return Ramp((0,) * len(self.flow.extents(name)), dims[0])
        array = self.flow.stored(name)
        if array is not None:
            return ramp_of_array(array)
        node = self.flow.made_by(name, "Range", "Unsqueeze", "Expand", *ARITHMETIC)
        if node is None:
            return None
        if node.op.onnx == "Range":
            return self._range(node)
        if node.op.onnx in ARITHMETIC:
            return self._combine(node, depth)
        ramp = self.of(node.inputs[0], depth)
        if ramp is None or node.op.onnx == "Expand":
            return None if ramp is None else ramp.padded(len(self.flow.extents(name)))
        return self._unsqueezed(ramp, node)

    def _range(self, node: Node) -> Ramp | None:
        starts, _, steps = (
            known_ints(self.flow.graph.type(name)) for name in node.inputs
        )
        return Ramp(steps, starts[0]) if starts and steps else None

    def _unsqueezed(self, ramp: Ramp, node: Node) -> Ramp | None:
        axes = known_ints(self.flow.graph.type(node.inputs[1]))
        t = self.flow.graph.type(node.output)
        if axes is None or t is None or t.shape is None:
            return None
        new, rest = set(t.axes(axes)), iter(ramp.steps)
        steps = tuple(0 if axis in new else next(rest) for axis in range(t.rank))
        return Ramp(steps, ramp.offset)

    def _combine(self, node: Node, depth: int) -> Ramp | None:
        ramps = [self.of(name, depth) for name in node.inputs]
        rank = len(self.flow.extents(node.output))
        a, b = (None if ramp is None else ramp.padded(rank) for ramp in ramps)
        if a is None or b is None:
            return None
        pairs = list(zip(a.steps, b.steps, strict=True))
        if node.op.onnx == "Add":
            return Ramp(tuple(x + y for x, y in pairs), a.offset + b.offset)
        if node.op.onnx == "Sub":
            return Ramp(tuple(x - y for x, y in pairs), a.offset - b.offset)
        if not b.is_even:
            a, b = b, a
        if not b.is_even:
            return None
        factor = b.offset
        return Ramp(tuple(step * factor for step in a.steps), a.offset * factor)


def ramp_of_array(array: Array) -> Ramp | None:
    """Return constant integers as a ramp, None if they are none."""
    if array.dtype.kind not in "iu" or not array.size:
        return None
    first = (0,) * array.ndim
    steps = []
    for axis, extent in enumerate(array.shape):
        second = (*first[:axis], 1, *first[axis + 1 :])
        steps.append(0 if extent == 1 else int(array[second]) - int(array[first]))
    terms = [np.arange(n) * d for n, d in zip(array.shape, steps, strict=True)]
    total = sum(np.ix_(*terms), start=np.array(int(array[first])))
    return Ramp(tuple(steps), int(array[first])) if (array == total).all() else None


def _normalize(ramp: Ramp, shape: tuple[Dim, ...]) -> Ramp:
    """Return ``ramp`` with step 0 along axes of extent 1."""
    pairs = zip(ramp.steps, shape, strict=True)
    return Ramp(tuple(0 if dim == 1 else step for step, dim in pairs), ramp.offset)
