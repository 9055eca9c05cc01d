"""Indexing: embeddings, gathers, index tensors and masks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from burn.dtypes import name_of
from burn_import.frontends.torch_export.aten.shape.views import permute_value
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Operand,
    Value,
    check_integers,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import InvalidModel, UnsupportedModel


@rule("aten.embedding.default")
def embedding(
    g: Builder,
    weight: Value,
    indices: Value,
    padding_idx: int | Value = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    if isinstance(padding_idx, Value):
        raise UnsupportedModel("expected a constant padding_idx, got a computed one")
    if padding_idx < 0 and not scale_grad_by_freq:
        return g.op("Gather", weight, indices, axis=0)
    options = {"scale_grad_by_freq": int(scale_grad_by_freq)}
    if padding_idx >= 0:
        options["padding_idx"] = padding_idx
    return g.op("Embedding", weight, indices, domain="burn", **options)


@rule("aten.index_select.default")
def index_select(g: Builder, self: Value, dim: int, index: Value) -> Value:
    if self.rank == 0:
        return self
    at = index if index.rank else g.op("Unsqueeze", index, [0])
    return g.op("Gather", self, at, axis=dim)


@rule("aten.gather.default")
def gather(
    g: Builder, self: Value, dim: int, index: Value, sparse_grad: bool = False
) -> Value:
    if self.rank == 0:
        return self
    return g.op("GatherElements", slice_like(g, self, index, dim), index, axis=dim)


def slice_like(g: Builder, x: Value, like: Value, dim: int | None = None) -> Value:
    """Return ``x`` sliced to the extents of ``like``, except along ``dim``."""
    axes = [
        axis
        for axis in range(x.rank)
        if (dim is None or axis != x.axis(dim)) and not _same(x, like, axis)
    ]
    if not axes:
        return x
    ends = [g.extent(like, axis) for axis in axes]
    part = g.at(x.dtype).op("Slice", x, [0] * len(axes), ends, axes)
    return replace(part, dims=None)


def _same(x: Value, like: Value, axis: int) -> bool:
    a, b = (of.dims[axis] if of.dims is not None else None for of in (x, like))
    return a == b


@rule("aten.take.default")
def take(g: Builder, self: Value, index: Value) -> Value:
    return g.op("Gather", g.op("Reshape", self, [-1]), index)


@rule("aten.take_along_dim.default")
def take_along_dim(
    g: Builder, self: Value, indices: Value, dim: int | None = None
) -> Value:
    if dim is None:
        flat = g.op("Reshape", self, [-1])
        return g.op("GatherElements", flat, g.op("Reshape", indices, [-1]))
    axis = self.axis(dim)
    x, index = self, indices
    for other in range(self.rank):
        if other != axis and not _same(self, indices, other):
            x, index = _with_equal_extents(g, x, index, other)
    return g.op("GatherElements", x, index, axis=axis)


def _with_equal_extents(
    g: Builder, x: Value, index: Value, axis: int
) -> tuple[Value, Value]:
    """Return both with equal extents along an axis, where one has extent 1."""
    assert x.dims is not None and index.dims is not None
    if x.dims[axis] == 1:
        shape = [1] * x.rank
        wide: list[int | Value] = list(shape)
        wide[axis] = g.extent(index, axis)
        expanded = g.at(x.dtype).op("Expand", x, wide)
        return replace(expanded, dims=x.dims), index
    counts: list[int | Value] = [1] * index.rank
    counts[axis] = g.extent(x, axis)
    expanded = g.at(INT64).op("Expand", index, counts)
    return x, replace(expanded, dims=index.dims)


@dataclass(frozen=True)
class IndexedAxes:
    """Integer tensors that index some axes of a tensor together (advanced indexing).

    ``axes`` and ``index`` correspond. If ``front``, the new axes come first in the
    result, else at the position of the first of ``axes``.
    """

    axes: tuple[int, ...]
    index: tuple[Value, ...]
    rank: int

    @property
    def front(self) -> bool:
        """Whether the indexed axes are not adjacent, so that new axes come first."""
        first = self.axes[0]
        return self.axes != tuple(range(first, first + len(self.axes)))

    def order(self, rank: int) -> list[int]:
        """Return all axes of the tensor, the indexed ones first."""
        return [*self.axes, *(a for a in range(rank) if a not in self.axes)]

    def result_order(self, rank: int) -> list[int]:
        """Return the permutation of axes of a result whose new axes are in front."""
        left = rank - len(self.axes)
        if self.front:
            return list(range(self.rank + left))
        first, count = self.axes[0], self.rank
        before = [count + a for a in range(first)]
        after = [count + a for a in range(first, left)]
        return [*before, *range(count), *after]


def index_arrays(g: Builder, x: Value, indices: Sequence[Value | None]) -> IndexedAxes:
    """Return the indices of a call; masks become the indices of their true elements."""
    axes: list[int] = []
    parts: list[Value] = []
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
        elif index.dtype.kind == "b" or index.dtype.name == "uint8":
            whole = g.at(INT64)
            rows = whole.op("NonZero", g.cast(index, BOOL))
            for row in range(index.rank):
                line = whole.op("Gather", rows, whole.value(row), axis=0)
                parts.append(replace(line, dims=(-1,)))
                axes.append(axis)
                axis += 1
        elif index.dtype.kind not in "iu":
            name = name_of(index.dtype)
            raise InvalidModel(f"expected indices of int64 or bool, got {name}")
        else:
            parts.append(g.cast(index, INT64))
            axes.append(axis)
            axis += 1
    return IndexedAxes(
        tuple(axes), tuple(parts), max((i.rank for i in parts), default=0)
    )


def stack_indices(g: Builder, index: Sequence[Value]) -> Value:
    """Return the indices as one tensor whose last axis has a tuple of indices."""
    whole, rank = g.at(INT64), max(i.rank for i in index)
    if len(index) == 1:
        return whole.op("Unsqueeze", index[0], [rank])
    first = index[0].dims
    wide = list(index)
    if any(i.dims != first for i in index) or first is None:
        total = wide[0]
        for other in wide[1:]:
            total = whole.op("Add", total, other)
        shape = whole.op("Shape", total)
        wide = [whole.op("Expand", i, shape) for i in wide]
    return whole.op(
        "Concat", *(whole.op("Unsqueeze", i, [rank]) for i in wide), axis=rank
    )


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(g: Builder, self: Value, indices: Sequence[Value | None]) -> Value:
    """Return the indexed elements; for separate axes the new axes come first."""
    only = [i for i in indices if i is not None]
    if not only:
        return self
    if len(only) == 1 and only[0].dtype == BOOL:
        return _select_masked(g, self, only[0], list(indices).index(only[0]))
    at = index_arrays(g, self, indices)
    if len(at.index) == 1:
        return g.op("Gather", self, at.index[0], axis=at.axes[0])
    x = permute_value(g, self, at.order(self.rank))
    items = g.op("GatherND", x, stack_indices(g, at.index))
    return permute_value(g, items, at.result_order(self.rank))


@rule("aten._unsafe_masked_index.default")
def masked_index(
    g: Builder, self: Value, mask: Value, indices: Sequence[Value | None], fill: Operand
) -> Value:
    """Return the indexed elements, and ``fill`` where the mask is false.

    There, indices may be out of range.
    """
    items = index(g, self, in_range(g, self, indices))
    return g.op("Where", mask, items, g.cast(fill))


def in_range(
    g: Builder, x: Value, indices: Sequence[Value | None]
) -> list[Value | None]:
    """Return the indices of the leading axes of ``x``, clipped to their extents."""
    whole = g.at(INT64)
    clipped: list[Value | None] = []
    for axis, each in enumerate(indices):
        if each is not None:
            last = whole.op("Sub", g.extent(x, axis), 1)
            inside = whole.op("Min", whole.op("Max", whole.cast(each), 0), last)
            each = Value(inside.name, INT64, each.dims)
        clipped.append(each)
    return clipped


def _select_masked(g: Builder, x: Value, mask: Value, axis: int) -> Value:
    """Return the elements where a mask of some axes is true."""
    if mask.rank == 1:
        return g.op("Compress", x, mask, axis=axis)
    flat = g.op("Reshape", mask, [-1])
    sizes = [g.extent(x, a) for a in range(x.rank)]
    rows = [*sizes[:axis], -1, *sizes[axis + mask.rank :]]
    return g.op("Compress", g.op("Reshape", x, rows), flat, axis=axis)


@rule("aten.masked_select.default")
def masked_select(g: Builder, self: Value, mask: Value) -> Value:
    x, where = self, mask
    if self.dims != mask.dims:
        x = g.op("Expand", self, g.op("Shape", mask))
        where = g.op("Expand", mask, g.op("Shape", self))
    flat = g.op("Reshape", where, [-1])
    return g.op("Compress", g.op("Reshape", x, [-1]), flat, axis=0)


@rule("aten.nonzero.default", "aten.argwhere.default")
def nonzero(g: Builder, self: Value) -> Value:
    if self.rank == 0:
        raise UnsupportedModel(
            "expected a tensor of rank 1 or more for nonzero, got rank 0"
        )
    return g.op("Transpose", g.op("NonZero", self), perm=(1, 0))


@rule("aten.nonzero_numpy.default", "aten.where.default")
def nonzero_numpy(
    g: Builder, self: Value | None = None, condition: Value | None = None
) -> Sequence[Value]:
    x = self or condition
    assert x is not None
    rows = g.op("NonZero", x)
    return [g.op("Gather", rows, g.constant(a), axis=0) for a in range(x.rank)]


@rule("aten.one_hot.default")
def one_hot(g: Builder, self: Value, num_classes: int | Value = -1) -> Value:
    check_integers("one_hot", self)
    count: int | Value = num_classes
    if isinstance(count, int) and count < 0:
        largest = g.op("ReduceMax", self, keepdims=0)
        count = replace(g.op("Add", largest, 1), dims=())
    return g.op("OneHot", self, g.value(count, INT64), g.constant([0, 1]))
