"""Removes gathers that read every element of a matrix in its own position."""

from dataclasses import dataclass, field, replace

from burn_import.passes.shapes.affine_indices import Ramp, Ramps
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import Gather, Slice
from burn_ir.ops.shape import Shape, Squeeze, Unsqueeze
from burn_ir.ops.support import known_ints


def identity_lookups(graph: Graph) -> Graph:
    """Return ``graph`` with ``Unsqueeze`` for gathers of a matrix at ramp indices.

    PyTorch's exporters write ``mask[:, None, None, :]`` with ``arange`` indices: one of
    them gathers pairs (``GatherND``), the other flat indices (``Gather``). The rewrite
    requires that all rows and columns are read; for pairs, fewer columns become a
    ``Slice`` (more were an error). A ``GatherND`` of whole rows becomes a ``Gather``.
    """
    rewriter = _Rewriter(Dataflow(graph))
    nodes = [new for node in graph.nodes for new in rewriter.rewrite(node)]
    return with_nodes(graph, nodes)


@dataclass
class _Rewriter:
    flow: Dataflow
    ramps: Ramps = field(init=False)

    def __post_init__(self) -> None:
        self.ramps = Ramps(self.flow)

    def rewrite(self, node: Node) -> list[Node]:
        """Return ``node``, or the nodes that replace it."""
        if node.op.domain or node.op.onnx not in ("GatherND", "Reshape"):
            return [node]
        if node.op.onnx == "Reshape":
            lookup = self.match_flat_gather(node)
        elif (rows := self.as_row_gather(node)) is not None:
            return rows
        else:
            lookup = self.match_pairs(node)
        return [node] if lookup is None else self.unsqueeze(node, *lookup)

    def as_row_gather(self, node: Node) -> list[Node] | None:
        """Return the equivalent ``Gather`` if each index has one component."""
        data, indices = node.inputs
        if node.op.attrs()["batch_dims"]:
            return None
        if indices in self.flow.graph.constants:
            return self.as_stored_row_gather(node)
        apart = self.flow.made_by(indices, "Unsqueeze")
        if apart is None:
            return None
        axes = known_ints(self.flow.graph.type(apart.inputs[1]))
        last = len(self.flow.extents(apart.output)) - 1
        if last < 1 or axes not in ((-1,), (last,)):
            return None
        return [replace(node, op=Gather(), inputs=(data, apart.inputs[0]))]

    def as_stored_row_gather(self, node: Node) -> list[Node] | None:
        """Return a ``Gather`` of stored indices without their last axis."""
        data, indices = node.inputs
        extents = self.flow.extents(indices)
        if len(extents) < 2 or extents[-1] != 1:
            return None
        flat = self.flow.fresh(f"{indices}.rows")
        last = integers(self.flow.graph, [len(extents) - 1])
        squeeze = replace(node, op=Squeeze(), inputs=(indices, last), outputs=(flat,))
        return [squeeze, replace(node, op=Gather(), inputs=(data, flat))]

    def match_pairs(self, node: Node) -> tuple[str, tuple[int, int]] | None:
        """Return the matrix, and the result axes of its rows and columns."""
        data, indices = node.inputs
        joined = self.flow.made_by(indices, "Concat")
        shape = self.flow.extents(indices)
        if data is None or joined is None or node.op.attrs()["batch_dims"]:
            return None
        last = joined.op.attrs()["axis"] in (-1, len(shape) - 1)
        if not last or len(joined.inputs) != 2 or len(self.flow.extents(data)) != 2:
            return None
        row, column = (self.index_ramp(name, shape) for name in joined.inputs)
        if row is None or column is None:
            return None
        ones = [_units(ramp, 1) for ramp in (row, column)]
        axes = [axes_of_ramp[0] for axes_of_ramp in ones if len(axes_of_ramp) == 1]
        counted = all(len(_moving(ramp)) == 1 for ramp in (row, column))
        if len(axes) != 2 or not counted:
            return None
        return self.check_match(data, (axes[0], axes[1]), shape[:-1], (row, column))

    def index_ramp(self, name: str | None, shape: tuple[Dim, ...]) -> Ramp | None:
        """Return the ramp of an index column with the shape of all indices."""
        extents = self.flow.extents(name)
        if extents != (*shape[:-1], 1):
            return None
        return self.ramps.of(name)

    def match_flat_gather(self, node: Node) -> tuple[str, tuple[int, int]] | None:
        """Return the match of a gather from the flat matrix and a reshape."""
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
        return self.check_match(data, (row[0], column[0]), shape, (ramp,))

    def check_match(
        self,
        data: str,
        axes: tuple[int, int],
        shape: tuple[Dim, ...],
        ramps: tuple[Ramp, ...],
    ) -> tuple[str, tuple[int, int]] | None:
        """Return the match if it reads the matrix and nothing else."""
        row, column = axes
        if row >= column or any(ramp.offset != 0 for ramp in ramps):
            return None
        whole = (shape[row], shape[column]) == self.flow.extents(data)
        if not whole and (len(ramps) == 1 or shape[row] != self.flow.extents(data)[0]):
            return None
        rest = [dim for axis, dim in enumerate(shape) if axis not in axes]
        return (data, axes) if all(dim == 1 for dim in rest) else None

    def unsqueeze(self, node: Node, data: str, axes: tuple[int, int]) -> list[Node]:
        shape = self.flow.extents(node.output)
        own = [n for n in (self.flow.producers.get(data), node) if n is not None]
        scope, classes = common_scope(*own)
        node = replace(node, scope=scope, classes=classes)
        new: list[Node] = []
        if shape[axes[1]] != self.flow.extents(data)[1]:
            new = self.slice_columns(node, data, axes[1])
            data = new[-1].output
        rest = [axis for axis in range(len(shape)) if axis not in axes]
        inputs = (data, integers(self.flow.graph, rest))
        return [*new, replace(node, op=Unsqueeze(), inputs=inputs)]

    def slice_columns(self, node: Node, data: str, column: int) -> list[Node]:
        """Return nodes that slice the first columns of ``data``, as many as read."""
        end = self.flow.fresh(f"{node.output}.end")
        part = self.flow.fresh(f"{node.output}.part")
        joined = self.flow.producers[str(node.inputs[1])]
        count = Shape(start=column, end=column + 1)
        start, axis = (integers(self.flow.graph, [n]) for n in (0, 1))
        inputs = (data, start, end, axis)
        return [
            replace(node, op=count, inputs=joined.inputs[1:], outputs=(end,)),
            replace(node, op=Slice(), inputs=inputs, outputs=(part,)),
        ]


def _moving(ramp: Ramp) -> list[int]:
    """Return the axes along which a ramp changes."""
    return [axis for axis, step in enumerate(ramp.steps) if step != 0]


def _units(ramp: Ramp, step: Dim) -> list[int]:
    """Return the axes along which a ramp grows by ``step``."""
    return [axis for axis, own in enumerate(ramp.steps) if own == step]
