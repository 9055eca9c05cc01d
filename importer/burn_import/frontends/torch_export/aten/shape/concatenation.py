"""Concatenation, padding, repetition and flips."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations as unordered_choices, combinations_with_replacement
from math import prod

import numpy as np

from burn_import.frontends.torch_export.aten.shape.slicing import END, multiples, slice_
from burn_import.frontends.torch_export.aten.shape.views import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    permute_value,
)
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT64,
    Builder,
    Operand,
    Value,
    check_integers,
)
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel

Sizes = Sequence[int | Value]


@rule("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    nonempty = [x for x in tensors if x.dims != (0,)] or list(tensors[:1])
    parts = [g.cast(x) for x in nonempty]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)


@rule("aten.stack.default")
def stack(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = dim % (tensors[0].rank + 1)
    parts = [g.op("Unsqueeze", g.cast(x), [axis]) for x in tensors]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)


@rule("aten.pad_sequence.default")
def pad_sequence(
    g: Builder,
    sequences: Sequence[Value],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Value:
    """Return the sequences, padded to the longest and stacked."""
    if padding_side not in ("left", "right"):
        raise UnsupportedModel(f"expected side left or right, got {padding_side!r}")
    whole, axis = g.at(INT64), 0 if batch_first else 1
    extents = [g.extent(x, 0) for x in sequences]
    fixed = [extent for extent in extents if isinstance(extent, int)]
    end: int | Value = max(fixed, default=0)
    if len(fixed) < len(extents):
        end = whole.op("Max", *[whole.value(extent) for extent in extents])
    parts = []
    for x, extent in zip(sequences, extents, strict=True):
        if isinstance(end, int) and isinstance(extent, int):
            gap: int | Value = end - extent
        else:
            gap = whole.op("Sub", end, extent)
        ends = [0, gap] if padding_side == "right" else [gap, 0]
        wide = g.op("Pad", g.cast(x), g.ints(ends), g.cast(padding_value), [0])
        parts.append(g.op("Unsqueeze", wide, [axis]))
    return g.op("Concat", *parts, axis=axis)


def concatenation_of(least: Rule, axis: int) -> Rule:
    """Return the rule of a concatenation of tensors of some least rank."""

    def apply(g: Builder, tensors: Sequence[Value]) -> Value:
        of_lines = least is atleast_1d and tensors[0].rank < 2
        parts = [replace(least(g, x), dtype=x.dtype) for x in tensors]
        return cat(g, parts, 0 if of_lines else axis)

    return apply


rule("aten.hstack.default")(concatenation_of(atleast_1d, 1))
rule("aten.vstack.default", "aten.row_stack.default")(concatenation_of(atleast_2d, 0))
rule("aten.dstack.default")(concatenation_of(atleast_3d, 2))


@rule("aten.column_stack.default")
def column_stack(g: Builder, tensors: Sequence[Value]) -> Value:
    parts = []
    for x in tensors:
        axes: Sequence[int] = ((0, 1), (1,), ())[min(x.rank, 2)]
        column = g.op("Unsqueeze", x, axes) if axes else x
        parts.append(replace(column, dtype=x.dtype))
    return cat(g, parts, 1)


@rule("aten.block_diag.default")
def block_diag(g: Builder, tensors: Sequence[Value]) -> Value:
    blocks = [replace(atleast_2d(g, x), dtype=x.dtype) for x in tensors]
    dims = [(1, 1)[x.rank :] + tuple(x.dims or ()) for x in tensors]
    widths = [columns for _, columns in dims]
    if not all(isinstance(width, int) for width in widths):
        raise UnsupportedModel("expected blocks of known extents")
    counts = [int(str(width)) for width in widths]
    rows = []
    for index, block in enumerate(blocks):
        pads = [0, sum(counts[:index]), 0, sum(counts[index + 1 :])]
        rows.append(g.op("Pad", g.cast(block), pads))
    return rows[0] if len(rows) == 1 else g.op("Concat", *rows, axis=0)


def pad_value(
    g: Builder, x: Value, pad: Sizes, mode: str = "constant", value: Operand = 0
) -> Value:
    """Return ``x`` padded; pairs in ``pad`` begin with the last axis."""
    count = len(pad) // 2
    axes = list(range(x.rank - count, x.rank))
    before, after = list(pad[::2])[::-1], list(pad[1::2])[::-1]
    if all(isinstance(n, int) and n == 0 for n in pad):
        return x
    number = g.value(value) if mode == "constant" and value not in (0, None) else None
    if count == x.rank:
        return g.op("Pad", x, before + after, number, mode=_mode(mode))
    return g.op("Pad", x, before + after, number, axes, mode=_mode(mode))


def _mode(mode: str) -> str | None:
    names = {"replicate": "edge", "circular": "wrap", "constant": None}
    return names.get(mode, mode)


@rule("aten.constant_pad_nd.default")
def constant_pad(g: Builder, self: Value, pad: Sizes, value: Operand = 0) -> Value:
    return pad_value(g, self, pad, "constant", value)


@rule("aten.pad.default")
def pad_(
    g: Builder, self: Value, pad: Sizes, mode: str = "constant", value: Operand = None
) -> Value:
    return pad_value(g, self, pad, mode, value)


def padding(mode: str) -> Rule:
    """Return the rule of padding with elements of the operand."""

    def apply(g: Builder, self: Value, padding: Sizes = (), pad: Sizes = ()) -> Value:
        return pad_value(g, self, padding or pad, mode)

    return apply


for _count in (1, 2, 3):
    rule(f"aten.reflection_pad{_count}d.default")(padding("reflect"))
    rule(f"aten.replication_pad{_count}d.default")(padding("replicate"))
rule("aten._pad_circular.default")(padding("circular"))


@rule("aten.repeat.default", "aten.tile.default")
def repeat(g: Builder, self: Value, repeats: Sizes = (), dims: Sizes = ()) -> Value:
    repetitions = repeats or dims
    counts: Sizes = [*([1] * (self.rank - len(repetitions))), *repetitions]
    missing = len(counts) - self.rank
    x = g.op("Unsqueeze", self, list(range(missing))) if missing else self
    return g.op("Tile", x, counts) if counts else x


@rule("aten.repeat_interleave.self_int")
def repeat_interleave(
    g: Builder,
    self: Value,
    repeats: int | Value,
    dim: int | None = None,
    output_size: int | Value | None = None,
) -> Value:
    if dim is None or self.rank == 0:
        once = g.op("Reshape", self, [-1, 1])
        return g.op("Reshape", g.op("Tile", once, [1, repeats]), [-1])
    axis = self.axis(dim)
    once = g.op("Unsqueeze", self, [axis + 1])
    counts: list[int | Value] = [1] * (self.rank + 1)
    counts[axis + 1] = repeats
    tiled = g.op("Tile", once, counts)
    sizes = [g.extent(self, a) for a in range(self.rank)]
    return g.op("Reshape", tiled, [*sizes[:axis], -1, *sizes[axis + 1 :]])


@rule("aten.repeat_interleave.Tensor")
def repeated_indices(
    g: Builder, repeats: Value, output_size: int | Value | None = None
) -> Value:
    """Return each index as many times as it is repeated."""
    check_integers("repeat_interleave", repeats)
    whole = g.at(INT64)
    counts = whole.cast(repeats)
    ends = whole.op("CumSum", counts, whole.constant(0))
    total = output_size
    if total is None:
        total = whole.op("ReduceSum", counts, [0], keepdims=0)
    number = whole.op("Unsqueeze", multiples(g, total), [1])
    before = g.at(BOOL).op("LessOrEqual", ends, number)
    return g.cast(whole.op("ReduceSum", whole.cast(before), [1], keepdims=0))


@rule("aten.repeat_interleave.self_Tensor")
def repeat_interleave_each(
    g: Builder,
    self: Value,
    repeats: Value,
    dim: int | None = None,
    output_size: int | Value | None = None,
) -> Value:
    x = g.op("Reshape", self, [-1]) if dim is None else self
    if repeats.dims in ((), (1,)):
        axis = 0 if dim is None else self.axis(dim)
        every = g.at(INT64).op("Shape", x, start=axis, end=axis + 1)
        repeats = g.at(repeats.dtype).op("Expand", repeats, every)
    index = repeated_indices(g.at(INT64), repeats, output_size)
    return g.op("Gather", x, index, axis=dim or 0)


@rule("aten.roll.default")
def roll(g: Builder, self: Value, shifts: Sizes, dims: Sequence[int] = ()) -> Value:
    if dims:
        return _rolled(g, self, shifts, dims)
    count = None if self.dims is None else (prod(self.dims),)
    flat = replace(g.op("Reshape", self, [-1]), dims=count)
    extents = [g.extent(self, axis) for axis in range(self.rank)]
    rolled = _rolled(g, flat, shifts, [0])
    return g.op("Reshape", rolled, extents, allowzero=1 if 0 in extents else None)


def _rolled(g: Builder, x: Value, shifts: Sizes, dims: Sequence[int]) -> Value:
    """Return ``x`` with its elements shifted along axes."""
    fixed = [n for n in shifts if isinstance(n, int)]
    if len(fixed) == len(shifts):
        return g.op("Roll", x, domain="burn", shifts=tuple(fixed), axes=tuple(dims))
    whole = g.at(INT64)
    for axis, shift in zip(dims, shifts, strict=True):
        extent = whole.value(g.extent(x, axis), INT64)
        start = whole.op("Mod", whole.op("Sub", extent, shift), extent)
        x = _swapped_parts(g, x, axis, start)
    return x


@rule("aten.flip.default")
def flip(g: Builder, self: Value, dims: Sequence[int]) -> Value:
    return g.op("Flip", self, domain="burn", axes=tuple(dims)) if dims else self


@rule("aten.fliplr.default")
def fliplr(g: Builder, self: Value) -> Value:
    return flip(g, self, (1,))


@rule("aten.flipud.default")
def flipud(g: Builder, self: Value) -> Value:
    return flip(g, self, (0,))


@rule("aten.rot90.default")
def rot90(g: Builder, self: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    a, b = (self.axis(dim) for dim in dims)
    perm = list(range(self.rank))
    perm[a], perm[b] = perm[b], perm[a]
    if k % 4 == 0:
        return self
    if k % 4 == 2:
        return flip(g, self, (a, b))
    return flip(g, permute_value(g, self, perm), (a if k % 4 == 1 else b,))


def half_shift(back: int) -> Rule:
    """Return the rule of a shift by half of the extents (``fftshift``)."""

    def apply(g: Builder, self: Value, dim: Sequence[int] | None = None) -> Value:
        axes = list(dim) if dim else list(range(self.rank))
        extents = {axis: g.extent(self, axis) for axis in axes}
        fixed = {a: n for a, n in extents.items() if isinstance(n, int)}
        shifts = [(n + back) // 2 for n in fixed.values()]
        x = roll(g, self, shifts, list(fixed)) if fixed else self
        for axis, extent in extents.items():
            if isinstance(extent, Value):
                x = _swap_halves(g, x, axis, extent, back)
        return x

    return apply


def _swap_halves(g: Builder, x: Value, axis: int, extent: Value, back: int) -> Value:
    """Return ``x`` with the second half of a symbolic extent in front."""
    middle = g.at(INT64).op("Div", g.at(INT64).op("Add", extent, 1 - back), 2)
    return _swapped_parts(g, x, axis, middle)


def _swapped_parts(g: Builder, x: Value, axis: int, start: Value) -> Value:
    """Return ``x`` with the elements from ``start`` on along an axis in front."""
    parts = [slice_(g, x, axis, start, END), slice_(g, x, axis, 0, start)]
    return replace(g.op("Concat", *parts, axis=axis), dims=x.dims)


rule("aten.fft_fftshift.default")(half_shift(0))
rule("aten.fft_ifftshift.default")(half_shift(1))


@rule("aten.meshgrid.indexing", "aten.meshgrid.default")
def meshgrid(
    g: Builder, tensors: Sequence[Value], indexing: str = "ij"
) -> Sequence[Value]:
    count = len(tensors)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    sizes = [g.extent(x, 0) if x.rank else 1 for x in tensors]
    shape = [sizes[index] for index in order]
    grids = []
    for index, x in enumerate(tensors):
        column = [-1 if order[axis] == index else 1 for axis in range(count)]
        grids.append(g.op("Expand", g.op("Reshape", x, column), shape))
    return grids


@rule("aten.cartesian_prod.default")
def cartesian_prod(g: Builder, tensors: Sequence[Value]) -> Value:
    if len(tensors) == 1:
        return tensors[0]
    columns = [g.op("Reshape", x, [-1, 1]) for x in meshgrid(g, tensors)]
    return g.op("Concat", *columns, axis=1)


@rule("aten.combinations.default")
def combinations(
    g: Builder, self: Value, r: int = 2, with_replacement: bool = False
) -> Value:
    count = g.extent(self, 0)
    if not isinstance(count, int):
        raise UnsupportedModel(f"combinations: expected a fixed length, got {count}")
    choose = combinations_with_replacement if with_replacement else unordered_choices
    rows = np.array(list(choose(range(count), r)), np.int64).reshape(-1, r)
    return g.op("Gather", self, g.constant(rows))
