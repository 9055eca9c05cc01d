"""Margin losses between classes, and embeddings of bounded norm."""

from dataclasses import replace

from burn_import.frontends.torch_export.aten.linalg.vector_norms import vector_norm
from burn_import.frontends.torch_export.aten.nn.loss import MEAN, reduce
from burn_import.frontends.torch_export.aten.shape.scatter import scatter_slices
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule

_ROWS = 2


def rows_of(g: Builder, self: Value, target: Value, rank: int) -> tuple[Value, Value]:
    """Return samples and targets, of ``rank``; a single sample as a batch of one."""
    if self.rank == _ROWS:
        return self, target
    x = g.op("Reshape", self, [1, -1])
    shape = [1] if rank == 1 else [1, -1]
    return x, g.at(INT64).op("Reshape", target, shape)


@rule("aten.multi_margin_loss.default")
def multi_margin_loss(
    g: Builder,
    self: Value,
    target: Value,
    p: float = 1,
    margin: float = 1,
    weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    """Return how far other classes are within a margin of the target."""
    x, classes = rows_of(g, self, target, 1)
    column = g.at(INT64).op("Unsqueeze", classes, [1])
    right = g.op("GatherElements", x, column, axis=1)
    near = g.op("Max", g.op("Add", g.op("Sub", x, right), float(margin)), g.cast(0))
    near = near if p == 1 else g.op("Pow", near, float(p))
    if weight is not None:
        near = g.op("Mul", near, g.op("Gather", weight, column))
    width: int | Value = 1
    if self.rank:
        width = g.extent(x, 1) if self.rank == _ROWS else g.extent(self, -1)
    numbers = g.at(INT64).op("Range", g.constant(0), width, g.constant(1))
    own = g.at(BOOL).op("Equal", numbers, column)
    others = g.op("Where", own, g.cast(0), near)
    return _reduced_means(g, others, reduction, is_one_row=self.rank < _ROWS)


@rule("aten.multilabel_margin_loss.default")
def multilabel_margin_loss(
    g: Builder, self: Value, target: Value, reduction: int = MEAN
) -> Value:
    """Return how far other classes are within 1 of the listed targets."""
    x, listed = rows_of(g, self, target, 2)
    whole = g.at(INT64)
    ended_ = whole.cast(replace(g.at(BOOL).op("Less", listed, 0), dims=None))
    before = whole.op("CumSum", ended_, whole.constant(1))
    valid = g.cast(g.at(BOOL).op("Equal", before, 0))
    index = whole.op("Max", listed, 0)
    none = g.op("Mul", valid, 0)
    own = g.op("ScatterElements", none, index, valid, axis=1, reduction="max")
    right = g.op("Unsqueeze", g.op("GatherElements", x, index, axis=1), [2])
    difference = g.op("Sub", g.op("Add", g.op("Unsqueeze", x, [1]), 1), right)
    near = g.op(
        "Mul", g.op("Max", difference, g.cast(0)), g.op("Unsqueeze", valid, [2])
    )
    others = g.op("Unsqueeze", g.op("Sub", g.cast(1), own), [1])
    total = g.op("ReduceSum", g.op("Mul", near, others), [1], keepdims=0)
    return _reduced_means(g, total, reduction, is_one_row=self.rank < _ROWS)


def _reduced_means(
    g: Builder, losses: Value, reduction: int, *, is_one_row: bool
) -> Value:
    """Return the reduction of the means of ``losses`` [rows, classes] over classes."""
    means = g.op("ReduceMean", losses, [1], keepdims=0)
    if reduction == 0 and is_one_row:
        return g.op("Squeeze", means, [0])
    return reduce(g, means, reduction)


@rule("aten.embedding_renorm.default")
def embedding_renorm(
    g: Builder, self: Value, indices: Value, max_norm: float, norm_type: float
) -> Value:
    """Return ``self`` with the rows that are read scaled to a bounded norm."""
    size = vector_norm(g, self, float(norm_type), [1], True)
    above = g.at(BOOL).op("Greater", size, float(max_norm))
    factor = g.op("Div", g.cast(max_norm), g.op("Add", size, 1e-7))
    scaled = g.op("Mul", self, g.op("Where", above, factor, g.cast(1)))
    index = g.at(INT64).op("Reshape", g.at(INT64).cast(indices), [-1])
    index = replace(index, dims=(-1,))
    rows = g.op("Gather", scaled, index, axis=0)
    return scatter_slices(g, self, 0, index, rows)
