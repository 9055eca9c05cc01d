"""Pooling over regions of interest."""

from __future__ import annotations

from typing import Literal

from burn import ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.functions import expect_float
from burn_ir.ops.indexing import image
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.support import differ
from burn_ir.upgrade import Draft


def region_count(rois: Type, columns: int) -> Dim:
    """Return the number of regions.

    Raises:
        InvalidOperand: regions do not have ``columns`` numbers each.
    """
    if rois.shape is None:
        return unnamed()
    if rois.rank != 2 or differ(rois.dims[1], columns):
        raise InvalidOperand(f"expected rois of {columns} columns, got {rois.name}")
    return rois.dims[0]


@operator
class RoiAlign(Op, onnx="RoiAlign", versions=(10, 16, 22)):
    coordinate_transformation_mode: str = "half_pixel"
    mode: Literal["avg", "max"] = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0

    def __post_init__(self) -> None:
        choices = {
            "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
            "mode": ("avg", "max"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed:
                raise InvalidOperand(
                    f"expected {name} among {', '.join(allowed)}, got {value!r}"
                )
        if min(self.output_height, self.output_width) < 1 or self.sampling_ratio < 0:
            raise InvalidOperand(
                "expected an output of 1 or more and sampling_ratio of 0 or more, got "
                f"{self.output_height} x {self.output_width}, {self.sampling_ratio}"
            )

    def infer(self, x: Type, rois: Type, batch_indices: Type) -> Type:
        _, channels, _, _ = image(expect_float(x))
        count = region_count(rois, 4)
        return x.with_shape((count, channels, self.output_height, self.output_width))

    def lower(self, x: Value, rois: Value, batch_indices: Value) -> Value:
        aligned = self.coordinate_transformation_mode == "half_pixel"
        options = non_default(
            spatial_scale=(shortest(self.spatial_scale), 1.0),
            sampling_ratio=(self.sampling_ratio, 0),
            mode=(self.mode, "avg"),
            aligned=(aligned, True),
        )
        size = (self.output_height, self.output_width)
        return ops.roi_align(x, rois, batch_indices, output_size=size, **options)


@RoiAlign.upgrade(10)
def regions_not_shifted(draft: Draft) -> Draft:
    """Upgrade: before 16, regions were not shifted by half a pixel."""
    return draft.with_attrs(coordinate_transformation_mode="output_half_pixel")


@operator
class MaxRoiPool(Op, onnx="MaxRoiPool", versions=(1, 22)):
    pooled_shape: tuple[int, ...]
    spatial_scale: float = 1.0

    def __post_init__(self) -> None:
        if len(self.pooled_shape) != 2 or min(self.pooled_shape) < 1:
            raise InvalidOperand(
                f"expected pooled_shape of height and width, got {self.pooled_shape}"
            )

    def infer(self, x: Type, rois: Type) -> Type:
        _, channels, _, _ = image(expect_float(x))
        return x.with_shape((region_count(rois, 5), channels, *self.pooled_shape))

    def lower(self, x: Value, rois: Value) -> Value:
        scale = non_default(spatial_scale=(shortest(self.spatial_scale), 1.0))
        size = tuple(self.pooled_shape)
        return ops.max_roi_pool(x, rois, output_size=size, **scale)
