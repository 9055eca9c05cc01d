"""Scatter operators: tensors with replaced elements."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from burn_import.frontends.torch_export.aten.shape.indexing import (
    in_range,
    index_arrays,
    slice_like,
    stack_indices,
)
from burn_import.frontends.torch_export.aten.shape.slicing import END, multiples
from burn_import.frontends.torch_export.aten.shape.views import permute_value
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import InvalidModel, UnsupportedModel

#: ONNX's names of the reductions.
REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}


def scatter_at(
    g: Builder,
    x: Value,
    dim: int,
    index: Value,
    updates: Operand,
    reduction: str | None = None,
) -> Value:
    """Return ``x`` with updates at indices along an axis; numbers are broadcast."""
    if x.rank == 0:
        x = replace(g.op("Unsqueeze", x, [0]), dims=(1,))
        index = replace(g.at(INT64).op("Reshape", index, [1]), dims=(1,))
        if isinstance(updates, Value):
            updates = replace(g.op("Reshape", updates, [1]), dims=(1,))
        return g.op("Squeeze", scatter_at(g, x, 0, index, updates, reduction), [0])
    if not isinstance(updates, Value) or updates.rank == 0:
        wide = g.op("Expand", g.cast(updates), g.op("Shape", index))
    else:
        wide = slice_like(g, g.cast(updates), index)
    return g.op("ScatterElements", x, index, wide, axis=dim, reduction=reduction)


@rule("aten.scatter.src", "aten.scatter.value")
@rule("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter(
    g: Builder,
    self: Value,
    dim: int,
    index: Value,
    src: Operand = None,
    value: Operand = None,
    reduce: str | None = None,
) -> Value:
    updates = value if src is None else src
    reduction = None if reduce is None else _reduction(reduce)
    return scatter_at(g, self, dim, index, updates, reduction)


def _reduction(name: str) -> str:
    if name not in REDUCTIONS:
        names = ", ".join((*REDUCTIONS, "mean"))
        raise UnsupportedModel(f"expected a reduction among {names}, got {name!r}")
    return REDUCTIONS[name]


@rule("aten.scatter_add.default")
def scatter_add(g: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    return scatter_at(g, self, dim, index, src, "add")


@rule("aten.scatter_reduce.two")
def scatter_reduce(
    g: Builder,
    self: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    include_self: bool = True,
) -> Value:
    base = self
    mode = _reduction("sum" if reduce == "mean" else reduce)
    if not include_self:
        start = scatter_at(g, self, dim, index, _neutral(g, mode))
        base = replace(start, dims=self.dims)
    total = scatter_at(g, base, dim, index, src, mode)
    if reduce != "mean":
        return total
    first = g.op("Expand", g.cast(1), g.op("Shape", self))
    ones = replace(first, dims=self.dims)
    if not include_self:
        ones = replace(scatter_at(g, ones, dim, index, 0), dims=self.dims)
    count = scatter_at(g, ones, dim, index, 1, "add")
    count = g.op("Max", count, g.cast(1))
    if kind_of(g.dtype) < kind_of(FLOAT32):
        return g.op("FloorDiv", total, count, domain="burn")
    return g.op("Div", total, count)


def _neutral(g: Builder, mode: str) -> int | float:
    """Return the neutral element of a reduction."""
    if mode in ("add", "mul"):
        return int(mode == "mul")
    if kind_of(g.dtype) == kind_of(FLOAT32):
        return -np.inf if mode == "max" else np.inf
    info = np.iinfo(g.dtype)
    return int(info.min if mode == "max" else info.max)


@rule("aten.index_add.default")
def index_add(
    g: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Operand = 1
) -> Value:
    updates = source
    if isinstance(alpha, Value) or alpha != 1:
        updates = replace(g.op("Mul", source, g.cast(alpha)), dims=source.dims)
    return scatter_slices(g, self, dim, index, updates, "add")


@rule("aten.index_reduce.default")
def index_reduce(
    g: Builder,
    self: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    include_self: bool = True,
) -> Value:
    """Reduce whole slices at indices; a scalar counts as one slice."""
    if self.rank == 0:
        return scatter_reduce(g, self, 0, index, source, reduce, include_self)
    wide = replace(
        element_indices(g, self.rank, self.axis(dim), index, source), dims=source.dims
    )
    return scatter_reduce(g, self, dim, wide, source, reduce, include_self)


@rule("aten.index_copy.default")
def index_copy(g: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    return scatter_slices(g, self, dim, index, source)


@rule("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(
    g: Builder, self: Value, dim: int, index: Value, value: Operand
) -> Value:
    if self.rank == 0:
        return g.cast(value)
    axis, whole = self.axis(dim), g.at(INT64)
    extent = g.extent(self, axis)
    near = whole.op("Unsqueeze", multiples(g, extent), [1])
    folded = whole.op("Mod", whole.cast(index), extent)
    inside = g.at(BOOL).op("Equal", near, folded)
    mask = g.at(BOOL).op("Any", inside, domain="burn", axes=(1,))
    shape = [-1 if a == axis else 1 for a in range(self.rank)]
    return g.op("Where", g.op("Reshape", mask, shape), g.cast(value), self)


def scatter_slices(
    g: Builder,
    x: Value,
    dim: int,
    index: Value,
    updates: Value,
    reduction: str | None = None,
) -> Value:
    """Return ``x`` with slices of ``updates`` at indices of an axis."""
    if x.rank == 0:
        return g.op("Add", x, updates) if reduction else updates
    axis = x.axis(dim)
    # The updates have the same rank, and maybe symbolic extents.
    wide = element_indices(g, x.rank, axis, index, updates)
    return g.op(
        "ScatterElements", x, wide, g.cast(updates), axis=axis, reduction=reduction
    )


def element_indices(
    g: Builder, rank: int, axis: int, index: Value, updates: Value
) -> Value:
    """Return indices for every element of ``updates``, from those of whole slices."""
    flat = index if index.rank else g.at(INT64).op("Unsqueeze", index, [0])
    shape = [-1 if a == axis else 1 for a in range(rank)]
    line = g.at(INT64).op("Reshape", flat, shape)
    return g.at(INT64).op("Expand", line, g.op("Shape", updates))


@rule("aten.select_scatter.default")
def select_scatter(
    g: Builder, self: Value, src: Value, dim: int, index: int | Value
) -> Value:
    slice_ = replace(g.op("Unsqueeze", g.cast(src), [self.axis(dim)]), dims=self.dims)
    if isinstance(index, int):
        end = index + 1 or END
        return slice_scatter(g, self, slice_, dim, index, end)
    position = replace(g.at(INT64).op("Reshape", index, [1]), dims=(1,))
    return scatter_slices(g, self, dim, position, slice_)


@rule("aten.slice_scatter.default")
def slice_scatter(
    g: Builder,
    self: Value,
    src: Value,
    dim: int = 0,
    start: int | Value | None = None,
    end: int | Value | None = None,
    step: int = 1,
) -> Value:
    axis, begin = self.axis(dim), 0 if start is None else start
    stop = END if end is None else end
    whole = [isinstance(bound, int) for bound in (begin, stop)]
    if step != 1 or not all(whole):
        line = multiples(g, g.extent(self, axis))
        ends = (g.ints(begin), g.ints(stop), [0])
        index = g.at(INT64).op("Slice", line, *ends, [step])
        return scatter_slices(g, self, axis, replace(index, dims=(-1,)), src)
    extent = self.dims[axis] if self.dims else None
    parts = [g.cast(src)]
    if begin != 0:
        parts.insert(0, g.op("Slice", self, [0], [begin], [axis]))
    if isinstance(stop, int) and not (
        stop == END or (isinstance(extent, int) and stop >= extent)
    ):
        parts.append(g.op("Slice", self, [stop], [END], [axis]))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    g: Builder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    if kind_of(values.dtype) > kind_of(self.dtype):
        raise InvalidModel(
            f"index_put: expected values of {self.dtype}, got {values.dtype}; PyTorch "
            "writes floats from 1e10 to 1e16 as integers into scripted files"
        )
    only = [i for i in indices if i is not None]
    is_mask = len(only) == 1 and only[0].dtype == BOOL
    if is_mask and not accumulate and values.dims in ((), (1,)):
        return _fill_where(g, self, only[0], list(indices).index(only[0]), values)
    at = index_arrays(g, self, indices)
    order = at.order(self.rank)
    front = permute_value(g, self, order)
    index = stack_indices(g, at.index)
    new = g.at(INT64).op("Shape", index, start=0, end=-1)
    rest = g.at(INT64).op("Shape", front, start=len(at.axes))
    shape = g.at(INT64).op("Concat", new, rest, axis=0)
    updates = _broadcast_values(g, values, at.result_order(self.rank), shape)
    reduction = "add" if accumulate else None
    result = g.op("ScatterND", front, index, updates, reduction=reduction)
    result = replace(result, dims=front.dims)
    return permute_value(g, result, [order.index(axis) for axis in range(self.rank)])


@rule("aten._unsafe_masked_index_put_accumulate.default")
def masked_index_put(
    g: Builder, self: Value, mask: Value, indices: Sequence[Value | None], values: Value
) -> Value:
    """Add values to the indexed elements where the mask is true."""
    updates = replace(g.op("Where", mask, g.cast(values), g.cast(0)), dims=values.dims)
    return index_put(g, self, in_range(g, self, indices), updates, True)


@rule("aten.put.default")
def put(
    g: Builder, self: Value, index: Value, source: Value, accumulate: bool = False
) -> Value:
    """Return ``self`` with elements replaced, or added to, at flattened indices."""
    flat, indices, values = (g.op("Reshape", x, [-1]) for x in (self, index, source))
    reduction = "add" if accumulate else None
    result = g.op("ScatterElements", flat, indices, values, axis=0, reduction=reduction)
    return g.op("Reshape", result, g.op("Shape", self))


def _broadcast_values(
    g: Builder, values: Value, order: list[int], shape: Value
) -> Value:
    """Return values broadcast to the shape of the updates, with indexed axes first."""
    if order == sorted(order):
        return g.op("Expand", g.cast(values), shape)
    missing = list(range(len(order) - values.rank))
    x = g.op("Unsqueeze", g.cast(values), missing) if missing else g.cast(values)
    back = [order.index(axis) for axis in range(len(order))]
    return g.op("Expand", g.op("Transpose", x, perm=tuple(back)), shape)


def _fill_where(g: Builder, x: Value, mask: Value, axis: int, values: Value) -> Value:
    """Return ``x`` with one number where a mask of some axes is true."""
    last = x.rank - axis - mask.rank
    axes = list(range(mask.rank, mask.rank + last))
    where = g.op("Unsqueeze", mask, axes) if axes else mask
    return g.op("Where", where, g.cast(values), x)


def _has_wider(x: Value, than: Value) -> bool:
    """Return whether ``x`` has another extent where ``than`` has 1."""
    pairs = zip((x.dims or ())[::-1], (than.dims or ())[::-1], strict=False)
    return any(other == 1 != extent for extent, other in pairs)


@rule("aten.masked_scatter.default")
def masked_scatter(g: Builder, self: Value, mask: Value, source: Value) -> Value:
    """Return ``self`` with elements of ``source``, in order, where the mask is true.

    ``source`` may be empty if the mask is false everywhere, so one unused element is
    appended for the gather.
    """
    whole = g.at(INT64)
    where = mask
    if mask.dims != self.dims:
        if self.rank < mask.rank or _has_wider(mask, self):
            self = g.op("Expand", self, whole.op("Shape", mask))
        where = g.at(BOOL).op("Expand", mask, whole.op("Shape", self))
    flat = whole.op("Reshape", whole.cast(replace(where, dims=None)), [-1])
    count = whole.op("CumSum", flat, whole.constant(0))
    position = whole.op("Max", whole.op("Sub", count, 1), 0)
    unused = g.constant([0], source.dtype)
    elements = g.op("Concat", g.op("Reshape", source, [-1]), unused, axis=0)
    items = g.op("Gather", elements, position)
    shaped = g.op("Reshape", items, g.op("Shape", self))
    return g.op("Where", where, shaped, self)
