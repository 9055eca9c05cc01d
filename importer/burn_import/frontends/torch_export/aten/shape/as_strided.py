"""Views by strides, as gathers at computed indices."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.memory_layout import Layout, element_positions
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel
from burn_ir.dim import Dim
from burn_ir.types import Array

Sizes = Sequence[int | Value]


def layout_of(x: Value) -> Layout:
    """Return the memory layout of ``x``.

    Raises:
        UnsupportedModel: the program does not record it.
    """
    if x.layout is None:
        raise UnsupportedModel("expected a tensor of known strides")
    return x.layout()


def strided_indices(
    g: Builder, x: Value, size: Sizes, stride: Sizes, offset: int | Value | None
) -> Value:
    """Return the flat indices in ``x``, [*size], of a strided view of its memory.

    Raises:
        UnsupportedModel: the view reads memory outside of ``x``, or ``x`` is not
            contiguous and its extents are not fixed.
    """
    layout = layout_of(x)
    start = layout.offset if offset is None else offset
    numbers = [n for n in (*size, *stride, start) if isinstance(n, int)]
    stored, count = layout.places(), len(size)
    if stored is not None and len(numbers) == 2 * count + 1:
        elements = element_positions(numbers[:count], numbers[count:-1], numbers[-1])
        if elements is not None:
            return g.constant(_indices_of_positions(stored, elements))
    if not layout.is_ordered or not isinstance(layout.offset, int):
        raise UnsupportedModel(
            f"expected a contiguous tensor, got strides "
            f"{list(map(str, layout.strides))} for {list(map(str, layout.dims))}"
        )
    if not isinstance(start, int | Value):
        raise UnsupportedModel(f"expected an offset that is known, got {start}")
    return _computed_indices(g, size, stride, _relative_start(g, start, layout.offset))


def _indices_of_positions(stored: Array, elements: Array) -> Array:
    """Return the indices of the positions ``elements`` among those in ``stored``."""
    flat = stored.reshape(-1)
    order = np.argsort(flat, kind="stable")
    positions = np.searchsorted(flat[order], elements)
    index = order[np.minimum(positions, flat.size - 1)] if flat.size else positions
    if elements.size and (not flat.size or (flat[index] != elements).any()):
        raise UnsupportedModel(
            "expected a view within the tensor, got memory outside of it"
        )
    return np.asarray(index)


def _relative_start(g: Builder, start: int | Value, offset: int) -> int | Value:
    if isinstance(start, int):
        return start - offset
    return g.at(INT64).op("Sub", start, offset) if offset else start


def _computed_indices(
    g: Builder, size: Sizes, stride: Sizes, start: int | Value
) -> Value:
    """Return the sums of indices times strides, with an axis for each."""
    whole = g.at(INT64)
    total = whole.value(start, INT64)
    for axis, (extent, step) in enumerate(zip(size, stride, strict=True)):
        line = multiples(g, extent, step if isinstance(step, int) else 1)
        if isinstance(step, Value):
            line = whole.op("Mul", line, step)
        behind = list(range(1, len(size) - axis))
        line = whole.op("Unsqueeze", line, behind) if behind else line
        total = whole.op("Add", line, total)
    return total


@rule("aten.as_strided.default", "aten.as_strided_copy.default", views=True)
def as_strided(
    g: Builder,
    self: Value,
    size: Sizes,
    stride: Sizes,
    storage_offset: int | Value | None = None,
) -> Value:
    """Gather the elements of a strided view; leading axes may stay."""
    leading = _count_kept_axes(g, self, stride) if storage_offset in (None, 0) else 0
    if leading:
        layout = layout_of(self)
        inner = Layout(layout.dims[leading:], layout.strides[leading:], layout.offset)
        x = g.op("Reshape", self, [0] * leading + [-1])
        part = replace(self, layout=lambda: inner)
        index = strided_indices(
            g, part, size[leading:], stride[leading:], storage_offset
        )
        return g.op("Gather", x, index, axis=leading)
    index = strided_indices(g, self, size, stride, storage_offset)
    return g.op("Gather", g.op("Reshape", self, [-1]), index, axis=0)


def _count_kept_axes(g: Builder, x: Value, stride: Sizes) -> int:
    """Return the number of leading axes that the result keeps.

    The elements behind them must end before the next index of these axes.
    """
    old, dims = layout_of(x), g.results[0].dims
    if dims is None or not old.is_ordered:
        return 0
    pairs = zip(dims, stride, old.dims, old.strides, strict=False)
    same = [a == c and b == d for a, b, c, d in pairs][: min(x.rank, len(dims)) - 1]
    count = next((i for i, is_same in enumerate(same) if not is_same), len(same))
    while count and not _ends_within(
        dims[count:], stride[count:], old.strides[count - 1]
    ):
        count -= 1
    return count


def _ends_within(dims: Sequence[Dim], stride: Sizes, step: Dim) -> bool:
    """Return whether the elements of a strided view end within ``step``."""
    last = 0
    for extent, by in zip(dims, stride, strict=True):
        if not isinstance(extent, int) or not isinstance(by, int):
            return False
        last += max(extent - 1, 0) * by
    return isinstance(step, int) and last < step


@rule("aten.as_strided_scatter.default")
def as_strided_scatter(
    g: Builder,
    self: Value,
    src: Value,
    size: Sizes,
    stride: Sizes,
    storage_offset: int | Value | None = None,
) -> Value:
    """Return ``self`` with the elements of a strided view replaced."""
    index = strided_indices(g, self, size, stride, storage_offset)
    result = g.op(
        "ScatterElements",
        g.op("Reshape", self, [-1]),
        g.at(INT64).op("Reshape", index, [-1]),
        g.op("Reshape", g.cast(src), [-1]),
        axis=0,
    )
    return g.op("Reshape", result, g.op("Shape", self))


@rule("aten.resize.default")
def resize(g: Builder, self: Value, size: Sizes) -> Value:
    """Return the first elements in another shape; additional ones are 0."""
    if self.layout is not None and not self.layout().is_ordered:
        raise UnsupportedModel("expected a contiguous tensor to resize")
    flat, count = g.op("Reshape", self, [-1]), g.at(INT64).op("Size", self)
    total = g.at(INT64).op("ReduceProd", g.ints(size), keepdims=0)
    if not size:
        return g.op("Reshape", g.op("Slice", flat, [0], [1]), [])
    dims = self.dims or ()
    numbers = [n for n in (*dims, *size) if isinstance(n, int)]
    if len(numbers) == len(dims) + len(size):
        old_size, new_size = (
            prod(n) for n in (numbers[: len(dims)], numbers[len(dims) :])
        )
        if old_size == new_size:
            return g.op("Reshape", self, list(size))
        if old_size > new_size:
            return g.op("Reshape", g.op("Slice", flat, [0], [new_size]), list(size))
    more = g.at(INT64).op("Max", g.at(INT64).op("Sub", total, count), 0)
    end = g.at(INT64).op("Unsqueeze", more, [0])
    pads = g.at(INT64).op("Concat", g.constant([0]), end, axis=0)
    padded = g.op("Pad", flat, pads)
    first = g.op("Slice", padded, [0], g.at(INT64).op("Unsqueeze", total, [0]))
    return g.op("Reshape", first, list(size))


@rule("aten.resize_as.default")
def resize_as(g: Builder, self: Value, the_template: Value) -> Value:
    return resize(
        g, self, [g.extent(the_template, a) for a in range(the_template.rank)]
    )


@rule("aten.sym_stride.int")
def sym_stride(g: Builder, self: Value, dim: int) -> int | Value:
    """Return the stride of an axis in elements."""
    layout, axis = layout_of(self), self.axis(dim)
    stride = layout.strides[axis]
    if isinstance(stride, int):
        return stride
    if not layout.is_ordered:
        raise UnsupportedModel(f"expected a stride that is known, got {stride}")
    sizes = [g.extent(self, a) for a in range(axis + 1, self.rank)]
    return g.op("ReduceProd", g.ints(sizes), keepdims=0)


@rule("aten.sym_storage_offset.default")
def sym_storage_offset(g: Builder, self: Value) -> int:
    """Return the offset of the first element in its memory."""
    offset = layout_of(self).offset
    if not isinstance(offset, int):
        raise UnsupportedModel(f"expected an offset that is known, got {offset}")
    return offset


@rule("aten.sym_is_contiguous.default", "aten.is_contiguous.default")
def is_contiguous(g: Builder, self: Value) -> bool:
    """Return whether the tensor is contiguous."""
    return layout_of(self).is_ordered
