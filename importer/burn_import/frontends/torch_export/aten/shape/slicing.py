"""Slices, splits and windows."""

from collections.abc import Sequence

from burn_import.frontends.torch_export.aten.shape.views import permute_value
from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule

Sizes = Sequence[int | Value]
#: The end of a slice without an end.
END = 2**63 - 1


@rule("aten.slice.Tensor", "aten.slice_copy.Tensor", views=True)
def slice_(
    g: Builder,
    self: Value,
    dim: int = 0,
    start: int | Value | None = None,
    end: int | Value | None = None,
    step: int = 1,
) -> Value:
    begin = 0 if start is None else start
    stop = END if end is None else end
    if begin == 0 and stop == END and step == 1 and not isinstance(begin, Value):
        return self
    ends = (g.ints(begin), g.ints(stop), [dim])
    return g.op("Slice", self, *ends, *([[step]] if step != 1 else []))


@rule("aten.narrow.default", "aten.narrow_copy.default", views=True)
@rule("aten.narrow.Tensor", views=True)
def narrow(
    g: Builder, self: Value, dim: int, start: int | Value, length: int | Value
) -> Value:
    if isinstance(start, int) and isinstance(length, int):
        extent = self.dims[dim] if self.dims is not None else None
        from_end = start < 0 and start + length >= 0
        if from_end and isinstance(extent, int):
            start += extent
        end: int | Value = END if start < 0 and start + length >= 0 else start + length
    else:
        end = g.at(INT64).op("Add", g.value(start, INT64), g.value(length, INT64))
    return slice_(g, self, dim, start, end)


@rule("aten.select.int", "aten.select_copy.int", views=True)
def select(g: Builder, self: Value, dim: int, index: int | Value) -> Value:
    return g.op("Gather", self, g.value(index, INT64), axis=dim)


@rule("aten.unbind.int", "aten.unbind_copy.int", views=True)
def unbind(g: Builder, self: Value, dim: int = 0) -> Sequence[Value]:
    numbers = range(len(g.results))
    if not isinstance(self.dims[dim] if self.dims is not None else None, int):
        # ``Split`` raises an error if the extent is another.
        parts = split_by_sizes(g, self, [1] * len(g.results), dim)
        return [g.op("Squeeze", part, [dim]) for part in parts]
    return [g.op("Gather", self, g.constant(index), axis=dim) for index in numbers]


def split_by_sizes(g: Builder, x: Value, sizes: Sizes, dim: int) -> Sequence[Value]:
    """Return parts of the given extents along an axis."""
    if len(sizes) == 1:
        return [x]
    return g.many("Split", len(sizes), x, list(sizes), axis=dim)


def split_by_types(g: Builder, x: Value, dim: int) -> Sequence[Value] | None:
    """Return parts with the extents of the results, if all of these are fixed."""
    sizes = [r.dims[dim] if r.dims is not None else None for r in g.results]
    whole = [size for size in sizes if isinstance(size, int)]
    return split_by_sizes(g, x, whole, dim) if len(whole) == len(sizes) else None


@rule("aten.split.Tensor", "aten.unsafe_split.Tensor", views=True)
@rule("aten.split_copy.Tensor", views=True)
def split(
    g: Builder, self: Value, split_size: int | Value, dim: int = 0
) -> Sequence[Value]:
    values = split_by_types(g, self, dim)
    if values is not None:
        return values
    sizes = [
        *([split_size] * (len(g.results) - 1)),
        _last_extent(g, self, split_size, dim),
    ]
    return split_by_sizes(g, self, sizes, dim)


def _last_extent(g: Builder, x: Value, size: int | Value, dim: int) -> int | Value:
    """Return the extent of the last part."""
    whole, count = g.at(INT64), len(g.results) - 1
    before = whole.op("Mul", g.value(size, INT64), count)
    return whole.op("Sub", g.value(g.extent(x, dim), INT64), before)


@rule("aten.split_with_sizes.default", "aten.split.sizes", views=True)
@rule("aten.split_with_sizes_copy.default", views=True)
@rule("aten.unsafe_split_with_sizes.default", views=True)
def split_with_sizes(
    g: Builder,
    self: Value,
    split_sizes: Sizes = (),
    dim: int = 0,
    split_size: Sizes = (),
) -> Sequence[Value]:
    return split_by_sizes(g, self, split_sizes or split_size, dim)


@rule("aten.chunk.default", "aten.unsafe_chunk.default", views=True)
def chunk(g: Builder, self: Value, chunks: int, dim: int = 0) -> Sequence[Value]:
    values = split_by_types(g, self, dim)
    if values is not None:
        return values
    count = len(g.results)
    return g.many("Split", count, self, axis=dim, num_outputs=count)


@rule("aten.tensor_split.sections", "aten.tensor_split.indices", views=True)
@rule("aten.hsplit.int", "aten.hsplit.array", views=True)
@rule("aten.vsplit.int", "aten.vsplit.array", views=True)
@rule("aten.dsplit.int", "aten.dsplit.array", views=True)
def tensor_split(
    g: Builder,
    self: Value,
    sections: int = 0,
    dim: int | None = None,
    indices: Sizes = (),
) -> Sequence[Value]:
    """Return parts that end at indices, or of nearly equal extents."""
    axis = _changed_axis(self, g) if dim is None else dim
    values = split_by_types(g, self, axis)
    if values is not None:
        return values
    if sections:
        indices = _ends_of_sections(g, g.extent(self, axis), sections)
    ends = [0, *indices, END]
    pairs = zip(ends[:-1], ends[1:], strict=True)
    return [slice_(g, self, axis, start, end) for start, end in pairs]


def _ends_of_sections(g: Builder, extent: int | Value, sections: int) -> Sizes:
    """Return where all sections but the last end; the first ones are longer by one."""
    whole = g.at(INT64)
    size, longer = whole.op("Div", extent, sections), whole.op("Mod", extent, sections)
    return [
        whole.op("Add", whole.op("Mul", size, n), whole.op("Min", longer, n))
        for n in range(1, sections)
    ]


def _changed_axis(x: Value, g: Builder) -> int:
    """Return the axis whose extent differs between an operand and the first result."""
    dims, parts = x.dims or (), g.results[0].dims or ()
    apart = [a for a, (n, m) in enumerate(zip(dims, parts, strict=True)) if n != m]
    return apart[0] if apart else 0


def multiples(g: Builder, count: int | Value, step: int = 1) -> Value:
    """Return ``count`` multiples of ``step``, from 0."""
    whole = g.at(INT64)
    if isinstance(count, int):
        return whole.constant([i * step for i in range(count)])
    numbers = whole.op("Range", whole.value(0), count, whole.value(1))
    return numbers if step == 1 else whole.op("Mul", numbers, step)


@rule("aten.unfold_copy.default")
@rule("aten.unfold.default", views=True)
def unfold(g: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    """Return windows along an axis, as the last axis of the result."""
    if self.rank == 0:
        return g.op("Unsqueeze", self, [0])
    axis, whole = self.axis(dimension), g.at(INT64)
    if size > 0:
        options = {"dim": axis, "size": size, "step": step}
        return g.op("UnfoldTensor", self, domain="com.microsoft", **options)
    extent = g.extent(self, axis)
    if isinstance(extent, int):
        count: int | Value = (extent - size) // step + 1
    else:
        last = whole.op("Div", whole.op("Sub", extent, size), step)
        count = whole.op("Add", last, 1)
    starts = whole.op("Unsqueeze", multiples(g, count, step), [1])
    windows = g.op(
        "Gather", self, whole.op("Add", starts, multiples(g, size)), axis=axis
    )
    rank = self.rank + 1
    order = [a for a in range(rank) if a != axis + 1] + [axis + 1]
    return permute_value(g, windows, order)
