"""Removes the lookup of every element of a matrix at its own place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from burn_import.passes.dataflow import Dataflow
from burn_import.passes.ramps import Ramp, Ramps
from burn_import.passes.rewrite import changed, common_scope
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Unsqueeze


def lookups(graph: Graph) -> Graph:
    """``graph`` with ``Unsqueeze`` for lookups of a matrix at indices that count up.

    PyTorch's exporters write ``mask[:, None, None, :]`` with numbered samples and
    positions: one of them looks up pairs (``GatherND``), the other one places in the
    flat mask (``Gather``). It is the same only if all rows and columns are counted.
    """
    rewriter = _Rewriter(Dataflow(graph))
    return changed(graph, [rewriter.rewritten(node) for node in graph.nodes])


@dataclass
class _Rewriter:
    flow: Dataflow
    ramps: Ramps = field(init=False)

    def __post_init__(self) -> None:
        self.ramps = Ramps(self.flow)

    def rewritten(self, node: Node) -> Node:
        """``node``, or what stands for it."""
        if node.op.domain or node.op.onnx not in ("GatherND", "Reshape"):
            return node
        pairs = node.op.onnx == "GatherND"
        found = self.pairs(node) if pairs else self.places(node)
        return node if found is None else self.unsqueezed(node, *found)

    def pairs(self, node: Node) -> tuple[str, tuple[int, int]] | None:
        """The matrix, and the axes of the result that are its rows and columns."""
        data, indices = node.inputs
        joined = self.flow.made_by(indices, "Concat")
        shape = self.flow.extents(indices)
        if data is None or joined is None or node.op.attrs()["batch_dims"]:
            return None
        last = joined.op.attrs()["axis"] in (-1, len(shape) - 1)
        if not last or len(joined.inputs) != 2 or len(self.flow.extents(data)) != 2:
            return None
        row, column = (self.whole(name, shape) for name in joined.inputs)
        if row is None or column is None:
            return None
        ones = [_units(ramp, 1) for ramp in (row, column)]
        axes = [one[0] for one in ones if len(one) == 1]
        counted = all(len(_moving(ramp)) == 1 for ramp in (row, column))
        if len(axes) != 2 or not counted:
            return None
        return self.checked(data, (axes[0], axes[1]), shape[:-1], (row, column))

    def whole(self, name: str | None, shape: tuple[Dim, ...]) -> Ramp | None:
        """The indices ``name`` if they are of one column and all others' shape."""
        extents = self.flow.extents(name)
        if extents != (*shape[:-1], 1):
            return None
        return self.ramps.of(name)

    def places(self, node: Node) -> tuple[str, tuple[int, int]] | None:
        """The same for a lookup in the flat matrix, given back its shape."""
        gather = self.flow.made_by(node.inputs[0], "Gather")
        if gather is None or gather.op.attrs()["axis"]:
            return None
        flat = self.flow.made_by(gather.inputs[0], "Flatten", "Reshape")
        ramp, shape = self.ramps.of(gather.inputs[1]), self.flow.extents(node.output)
        if flat is None or flat.inputs[0] is None or ramp is None:
            return None
        data = flat.inputs[0]
        extents, rows = self.flow.extents(data), self.flow.extents(flat.output)
        if len(extents) != 2 or rows != (extents[0] * extents[1], 1):
            return None
        if self.flow.extents(gather.inputs[1]) != shape or len(_moving(ramp)) != 2:
            return None
        row, column = _units(ramp, extents[1]), _units(ramp, 1)
        if len(row) != 1 or len(column) != 1 or row == column:
            return None
        return self.checked(data, (row[0], column[0]), shape, (ramp,))

    def checked(
        self,
        data: str,
        axes: tuple[int, int],
        shape: tuple[Dim, ...],
        ramps: tuple[Ramp, ...],
    ) -> tuple[str, tuple[int, int]] | None:
        """What was found, if it is the whole matrix and nothing else."""
        row, column = axes
        if row >= column or any(ramp.offset != 0 for ramp in ramps):
            return None
        if (shape[row], shape[column]) != self.flow.extents(data):
            return None
        rest = [dim for axis, dim in enumerate(shape) if axis not in axes]
        return (data, axes) if all(dim == 1 for dim in rest) else None

    def unsqueezed(self, node: Node, data: str, axes: tuple[int, int]) -> Node:
        rank = len(self.flow.extents(node.output))
        new = np.array([axis for axis in range(rank) if axis not in axes], np.int64)
        constants = self.flow.graph.constants
        name = constants.add(self.flow.fresh(f"{node.output}.axes"), new)
        constants.literals.add(name)
        producer = self.flow.producers.get(data)
        scope, classes = common_scope(*([] if producer is None else [producer]), node)
        inputs = (data, name)
        return replace(
            node, op=Unsqueeze(), inputs=inputs, scope=scope, classes=classes
        )


def _moving(ramp: Ramp) -> list[int]:
    """The axes along which a ramp changes."""
    return [axis for axis, step in enumerate(ramp.steps) if step != 0]


def _units(ramp: Ramp, step: Dim) -> list[int]:
    """The axes along which a ramp grows by ``step``."""
    return [axis for axis, own in enumerate(ramp.steps) if own == step]
