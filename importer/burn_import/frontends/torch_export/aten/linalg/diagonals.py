"""Diagonals and triangles of matrices."""

from dataclasses import replace
from math import prod
from typing import Any

from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.aten.shape.views import permute_value
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel
from burn_ir.ops.support import ELEMENT_NUMBERS


@rule("aten.diagonal_copy.default")
@rule("aten.diagonal.default", views=True)
def diagonal(
    g: Builder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """Return the elements at (row, row + offset) as the last axis."""
    x, index = _flat(g, self, offset, dim1, dim2)
    return g.op("Gather", x, index, axis=-1)


@rule("aten.linalg_diagonal.default", views=True)
def matrix_diagonal(
    g: Builder, A: Value, offset: int = 0, dim1: int = -2, dim2: int = -1  # noqa: N803
) -> Value:
    return diagonal(g, A, offset, dim1, dim2)


def _flat(
    g: Builder, x: Value, offset: int, dim1: int, dim2: int
) -> tuple[Value, Value]:
    """Return flattened matrices, and the flat indices of a diagonal."""
    a, b = x.axis(dim1), x.axis(dim2)
    others = [axis for axis in range(x.rank) if axis not in (a, b)]
    x = permute_value(g, x, [*others, a, b])
    rows, columns = g.extent(x, -2), g.extent(x, -1)
    sizes = [g.extent(x, axis) for axis in range(x.rank - 2)]
    flat = g.op("Reshape", x, [*sizes, -1])
    return flat, _places(g, rows, columns, offset)


def _places(g: Builder, rows: int | Value, columns: int | Value, offset: int) -> Value:
    first = max(-offset, 0), max(offset, 0)
    if isinstance(rows, int) and isinstance(columns, int):
        count = max(min(rows - first[0], columns - first[1]), 0)
        start = first[0] * columns + first[1]
        return g.constant([start + i * (columns + 1) for i in range(count)])
    whole = g.at(INT64)
    left = [
        whole.op("Sub", whole.value(n), k)
        for n, k in zip((rows, columns), first, strict=True)
    ]
    line = multiples(g, whole.op("Max", whole.op("Min", *left), 0))
    row = whole.op("Mul", whole.op("Add", line, first[0]), whole.value(columns))
    return whole.op("Add", row, whole.op("Add", line, first[1]))


def _diag(g: Builder, self: Value, diagonal: int = 0) -> Value:
    return (diag_embed if self.rank == 1 else _diagonal)(g, self, diagonal)


_diagonal = diagonal
rule("aten.diag.default")(_diag)


@rule("aten.diagonal_scatter.default")
def diagonal_scatter(
    g: Builder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    flat, index = _flat(g, self, offset, dim1, dim2)
    wide = g.at(INT64).op("Expand", index, g.op("Shape", src))
    flat_result = g.op("ScatterElements", flat, wide, g.cast(src), axis=-1)
    a, b = self.axis(dim1), self.axis(dim2)
    others = [axis for axis in range(self.rank) if axis not in (a, b)]
    order = [*others, a, b]
    shape = [g.extent(self, axis) for axis in order]
    back = [order.index(axis) for axis in range(self.rank)]
    return permute_value(g, g.op("Reshape", flat_result, shape), back)


@rule("aten.trace.default")
def trace(g: Builder, self: Value) -> Value:
    return g.op("ReduceSum", g.cast(diagonal(g.at(self.dtype), self)), keepdims=0)


def eye(g: Builder, size: list[Any], k: int = 0) -> Value:
    """Return a mask of a matrix's diagonal."""
    whole = g.at(INT64).op("ConstantOfShape", size)
    return g.at(BOOL).op("EyeLike", whole, dtype=ELEMENT_NUMBERS[BOOL], k=k or None)


@rule("aten.fill_diagonal_.default", mutates="self")
def fill_diagonal(
    g: Builder, self: Value, fill_value: Any, wrap: bool = False
) -> Value:
    """Return ``self`` with a number where all indices are equal."""
    if self.rank < _MATRIX or wrap:
        raise UnsupportedModel("expected a tensor of rank 2 or more, and no wrap")
    mask = eye(g, [g.extent(self, 0), g.extent(self, 1)])
    for axis in range(_MATRIX, self.rank):
        line = eye(g, [g.extent(self, axis - 1), g.extent(self, axis)])
        wide = g.at(BOOL).op("Unsqueeze", mask, [-1])
        mask = g.at(BOOL).op("And", wide, line)
    return g.op("Where", mask, g.cast(fill_value), self)


_MATRIX = 2


@rule("aten.diag_embed.default")
def diag_embed(
    g: Builder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Value:
    rank, away = self.rank + 1, abs(offset)
    line = self
    if offset:
        line = g.op("Pad", self, [away, 0] if offset > 0 else [0, away], None, [-1])
    extent = g.extent(self, -1)
    if away:
        whole = g.at(INT64)
        extent = (
            extent + away if isinstance(extent, int) else whole.op("Add", extent, away)
        )
    mask = eye(g, [extent, extent], offset)
    matrix = g.op("Where", mask, g.op("Unsqueeze", line, [-2]), g.cast(0))
    goals = [dim1 % rank, dim2 % rank]
    others = iter(range(rank - 2))
    order = {goals[0]: rank - 2, goals[1]: rank - 1}
    return permute_value(
        g, matrix, [order[a] if a in order else next(others) for a in range(rank)]
    )


@rule("aten.diagflat.default")
def diagflat(g: Builder, self: Value, offset: int = 0) -> Value:
    if self.rank == 1:
        return diag_embed(g, self, offset)
    count = prod(self.dims or (1,))
    return diag_embed(g, replace(g.op("Reshape", self, [-1]), dims=(count,)), offset)


def triangle(upper: bool) -> Any:
    """Return the rule of a triangle of matrices; the rest is 0."""

    def apply(g: Builder, self: Value, diagonal: int | Value = 0) -> Value:
        k = g.value(diagonal, INT64) if diagonal != 0 else None
        return g.op("Trilu", self, k, upper=None if upper else 0)

    return apply


rule("aten.triu.default")(triangle(True))
rule("aten.tril.default")(triangle(False))


def indices(upper: bool) -> Any:
    """Return the rule of the indices of a triangle."""

    def apply(
        g: Builder, row: int, col: int, offset: int = 0, dtype: Any = None
    ) -> Value:
        inside = [
            (i, j)
            for i in range(row)
            for j in range(col)
            if (j - i >= offset if upper else j - i <= offset)
        ]
        lines = [[pair[k] for pair in inside] for k in (0, 1)]
        return g.constant(lines, g.dtype)

    return apply


rule("aten.triu_indices.default")(indices(True))
rule("aten.tril_indices.default")(indices(False))
