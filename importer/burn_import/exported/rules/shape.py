"""Shapes: views, transposes, slices, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_import.exported.builder import Builder, Value
from burn_import.exported.table import rule

Sizes = Sequence[int | Value]
#: The end of a slice that has none.
END = 2**63 - 1


@rule(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    views=True,
)
def view(g: Builder, self: Value, size: Sizes = (), shape: Sizes = ()) -> Value:
    sizes = list(size or shape)
    if not sizes:
        return g.op("Reshape", self, g.constant([]))
    return g.op("Reshape", self, g.ints(sizes), allowzero=int(0 in sizes) or None)


@rule("aten.flatten.using_ints", views=True)
def flatten(g: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if self.rank == 0:
        return g.op("Reshape", self, g.constant([1]))
    start, end = self.axis(start_dim), self.axis(end_dim)
    sizes: list[Any] = [0] * start + [-1]
    for axis in range(end + 1, self.rank):
        made = g.op("Shape", self, start=axis, end=axis + 1)
        sizes.append(g.op("Squeeze", made, g.constant([0])))
    fixed = [
        x if isinstance(x, int) else Value(x.name, g.constant(0).dtype, ())
        for x in sizes
    ]
    return g.op("Reshape", self, g.ints(fixed))


@rule("aten.permute.default", views=True)
def permute(g: Builder, self: Value, dims: Sequence[int]) -> Value:
    return g.op("Transpose", self, perm=tuple(self.axis(d) for d in dims))


@rule("aten.transpose.int", views=True)
def transpose(g: Builder, self: Value, dim0: int, dim1: int) -> Value:
    perm = list(range(self.rank))
    a, b = self.axis(dim0), self.axis(dim1)
    if not perm or a == b:
        return self
    perm[a], perm[b] = perm[b], perm[a]
    return g.op("Transpose", self, perm=tuple(perm))


@rule("aten.t.default", views=True)
def t(g: Builder, self: Value) -> Value:
    return self if self.rank < 2 else g.op("Transpose", self, perm=(1, 0))


@rule("aten.unsqueeze.default", views=True)
def unsqueeze(g: Builder, self: Value, dim: int) -> Value:
    return g.op("Unsqueeze", self, g.constant([dim]))


@rule("aten.squeeze.dim", "aten.squeeze.dims", views=True)
def squeeze(g: Builder, self: Value, dim: int | Sequence[int]) -> Value:
    assert self.dims is not None
    axes = [dim] if isinstance(dim, int) else list(dim)
    ones = [axis for axis in axes if self.rank and self.dims[axis] == 1]
    return g.op("Squeeze", self, g.constant(ones)) if ones else self


@rule("aten.squeeze.default", views=True)
def squeeze_all(g: Builder, self: Value) -> Value:
    return squeeze(g, self, range(self.rank))


@rule("aten.expand.default", views=True)
def expand(g: Builder, self: Value, size: Sizes, implicit: bool = False) -> Value:
    kept = [1 if s == -1 and isinstance(s, int) else s for s in size]
    return g.op("Expand", self, g.ints(kept)) if kept else self


@rule("aten.slice.Tensor", views=True)
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
    if begin == 0 and stop == END and step == 1 and not isinstance(stop, Value):
        return self
    return g.op(
        "Slice", self, g.ints(begin), g.ints(stop), g.constant([dim]), g.ints(step)
    )


@rule("aten.select.int", views=True)
def select(g: Builder, self: Value, dim: int, index: int | Value) -> Value:
    at = index if isinstance(index, Value) else g.constant(index)
    return g.op("Gather", self, at, axis=dim)


@rule("aten.cat.default")
def cat(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    kept = [x for x in tensors if x.dims != (0,)] or list(tensors[:1])
    parts = [g.cast(x) for x in kept]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)


@rule("aten.stack.default")
def stack(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    rank = tensors[0].rank + 1
    axis = dim % rank
    parts = [g.op("Unsqueeze", g.cast(x), g.constant([axis])) for x in tensors]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)


@rule("aten.split.Tensor", views=True)
def split(g: Builder, self: Value, split_size: int, dim: int = 0) -> Sequence[Value]:
    extent = self.dims[dim] if self.dims is not None else None
    count = len(g.results)
    if not isinstance(extent, int):
        return g.many("Split", count, self, axis=dim, num_outputs=count)
    sizes = [min(split_size, extent - i * split_size) for i in range(count)]
    return _split(g, self, sizes, dim)


@rule("aten.split_with_sizes.default", views=True)
def split_with_sizes(
    g: Builder, self: Value, split_sizes: Sizes, dim: int = 0
) -> Sequence[Value]:
    return _split(g, self, split_sizes, dim)


def _split(g: Builder, x: Value, sizes: Sizes, dim: int) -> Sequence[Value]:
    if len(sizes) == 1:
        return [x]
    return g.many("Split", len(sizes), x, g.ints(list(sizes)), axis=dim)


@rule("aten.chunk.default", views=True)
def chunk(g: Builder, self: Value, chunks: int, dim: int = 0) -> Sequence[Value]:
    sizes = [r.dims[dim] for r in g.results if r.dims is not None]
    if all(isinstance(size, int) for size in sizes):
        return _split(g, self, [int(str(s)) for s in sizes], dim)
    return g.many("Split", len(g.results), self, axis=dim, num_outputs=len(g.results))


@rule("aten.sym_size.int")
def sym_size(g: Builder, self: Value, dim: int) -> Value:
    axis = self.axis(dim)
    made = g.op("Shape", self, start=axis, end=axis + 1)
    return g.op("Squeeze", made, g.constant([0]))
