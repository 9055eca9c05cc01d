"""Sampling at the points of a grid."""

from __future__ import annotations

from typing import Literal

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default
from burn_ir.ops.support import differ, ints_of, known_dims, length, unnamed_dims
from burn_ir.upgrade import Draft

PADDINGS = ("zeros", "border", "reflection")
MODES = ("linear", "nearest", "cubic")


@operator
class GridSample(Op, onnx="GridSample", versions=(16, 20, 22)):
    align_corners: Literal[0, 1] = 0
    mode: str = "linear"
    padding_mode: str = "zeros"

    def __post_init__(self) -> None:
        for name, allowed in (("mode", MODES), ("padding_mode", PADDINGS)):
            value = getattr(self, name)
            if value not in allowed:
                raise InvalidOperand(
                    f"expected {name} among {', '.join(allowed)}, got {value!r}"
                )

    def infer(self, x: Type, grid: Type) -> Type:
        expect_float(grid)
        if x.dtype == dtypes.string and self.mode != "nearest":
            raise InvalidOperand(f"expected mode nearest for strings, got {self.mode}")
        if x.shape is None or grid.shape is None:
            return x.with_shape(None)
        if grid.rank != x.rank or grid.rank < 3 or differ(grid.dims[-1], x.rank - 2):
            raise InvalidOperand(
                f"expected a grid of {x.rank - 2} coordinates for {x.name}, "
                f"got {grid.name}"
            )
        return x.with_shape((*x.dims[:2], *grid.dims[1:-1]))

    def lower(self, x: Value, grid: Value) -> Value:
        options = non_default(
            mode=(self.mode, "linear"),
            padding_mode=(self.padding_mode, "zeros"),
            align_corners=(bool(self.align_corners), False),
        )
        return ops.grid_sample(x, grid, **options)


@GridSample.upgrade(16)
def modes_of_images(draft: Draft) -> Draft:
    """Upgrade: before 20, modes had the names for two dimensions."""
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = draft.attrs.get("mode", "bilinear")
    return draft.with_attrs(mode=names.get(mode, mode))


@operator
class AffineGrid(Op, onnx="AffineGrid", versions=(20,)):
    align_corners: Literal[0, 1] = 0

    def infer(self, theta: Type, size: Type) -> Type:
        expect_float(theta)
        dims = known_dims(size)
        if dims is None:
            try:
                dims = unnamed_dims(length(size))
            except Undecided:
                return theta.with_shape(None)
        if len(dims) not in (4, 5):
            raise InvalidOperand(f"expected a size of 4 or 5, got {len(dims)}")
        rank = len(dims) - 2
        matrix = (rank, rank + 1) if theta.shape is None else theta.shape[1:]
        if len(matrix) != 2 or any(map(differ, matrix, (rank, rank + 1))):
            raise InvalidOperand(
                f"expected theta of {rank} x {rank + 1} for a size of {len(dims)}, "
                f"got {theta.name}"
            )
        return theta.with_shape((dims[0], *dims[2:], rank))

    def lower(self, theta: Value, size: Value) -> Value:
        extents = ints_of(size)
        options = non_default(align_corners=(bool(self.align_corners), False))
        return ops.affine_grid(theta, size if extents is None else extents, **options)
