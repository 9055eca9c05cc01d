"""Image operators: decoding, cropping, im2col, deformable convolution."""

from __future__ import annotations

from math import prod
from typing import Any

from burn import dtypes, ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.functions import expect_float
from burn_ir.ops.indexing import check_integers
from burn_ir.ops.options import non_default, one
from burn_ir.ops.support import (
    are_unequal_numbers,
    differ,
    ints_of,
    known_dims,
    length,
    unnamed_dims,
)
from burn_ir.ops.window import Geometry, Ints, geometry, written


def steps(
    strides: Ints | None, pads: Ints | None, dilations: Ints | None = None
) -> dict[str, Any]:
    """Return the keyword arguments of a window operation, without the kernel."""
    sides = pads or (0, 0)
    rank = len(sides) // 2
    return non_default(
        stride=(one(strides or (1,)), 1),
        padding=(written(tuple(zip(sides[:rank], sides[rank:], strict=True))), 0),
        dilation=(one(dilations or (1,)), 1),
    )


@operator
class CenterCropPad(Op, onnx="CenterCropPad", versions=(18,)):
    axes: tuple[int, ...] | None = None

    def infer(self, x: Type, shape: Type) -> Type:
        if x.shape is None:
            return x.with_shape(None)
        axes = tuple(range(x.rank)) if self.axes is None else x.axes(self.axes)
        wanted = known_dims(shape) or unnamed_dims(len(axes))
        if len(wanted) != len(axes):
            raise InvalidOperand(f"expected {len(axes)} extents, got {len(wanted)}")
        dims = list(x.dims)
        for axis, extent in zip(axes, wanted, strict=True):
            dims[axis] = extent
        return x.with_shape(dims)

    def lower(self, x: Value, shape: Value) -> Value:
        numbers = ints_of(shape)
        extents = shape if numbers is None else numbers
        if self.axes is None:
            return ops.center_crop_pad(x, extents)
        return ops.center_crop_pad(x, extents, axes=tuple(self.axes))


@operator
class Col2Im(Op, onnx="Col2Im", versions=(18,)):
    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def _geometry(self, kernel: tuple[Dim, ...]) -> Geometry:
        return geometry(kernel, self.strides, self.dilations, self.pads, "NOTSET")

    def infer(self, x: Type, image_shape: Type, block_shape: Type) -> Type:
        if x.dtype == dtypes.string:
            raise InvalidOperand(f"expected numbers, got {x.name}")
        if x.shape is not None and x.rank != 3:
            raise InvalidOperand(f"expected rank 3, got {x.name}")
        size, block = known_dims(image_shape), known_dims(block_shape)
        try:
            rank = length(block_shape) if size is None else len(size)
        except Undecided:
            return x.with_shape(None)
        if block is not None:
            self._geometry(block)
        batch, rows = (unnamed(), unnamed()) if x.shape is None else x.dims[:2]
        channels = unnamed() if block is None else rows // prod(block)
        return x.with_shape((batch, channels, *(size or unnamed_dims(rank))))

    def lower(self, x: Value, image_shape: Value, block_shape: Value) -> Value:
        size, block = ints_of(image_shape), ints_of(block_shape)
        return ops.fold(
            x,
            image_shape if size is None else size,
            block_shape if block is None else block,
            **steps(self.strides, self.pads, self.dilations),
        )


@operator
class MaxUnpool(Op, onnx="MaxUnpool", versions=(9, 11, 22)):
    kernel_shape: Ints
    pads: Ints | None = None
    strides: Ints | None = None

    @property
    def _geometry(self) -> Geometry:
        return geometry(self.kernel_shape, self.strides, None, self.pads, "NOTSET")

    def infer(self, x: Type, indices: Type, output_shape: Type | None = None) -> Type:
        expect_float(x)
        check_integers(indices)
        rank = len(self.kernel_shape) + 2
        windows = self._geometry
        if x.shape is not None and x.rank != rank:
            raise InvalidOperand(f"expected rank {rank}, got {x.name}")
        if output_shape is not None:
            wanted = known_dims(output_shape) or unnamed_dims(rank)
            if len(wanted) != rank:
                raise InvalidOperand(f"expected {rank} extents, got {len(wanted)}")
            return x.with_shape(wanted)
        if x.shape is None:
            return x.with_shape(unnamed_dims(rank))
        space = [
            (n - 1) * step - before - after + kernel
            for n, step, (before, after), kernel in zip(
                x.dims[2:], windows.strides, windows.pads, windows.kernel, strict=True
            )
        ]
        return x.with_shape((*x.dims[:2], *space))

    def lower(self, x: Value, indices: Value, output_shape: Value = None) -> Value:
        kernel = {"kernel_size": one(self.kernel_shape)}
        options = kernel | steps(self.strides, self.pads)
        if output_shape is None:
            return ops.max_unpool(x, indices, **options)
        numbers = ints_of(output_shape)
        wanted = output_shape if numbers is None else numbers
        return ops.max_unpool(x, indices, wanted, **options)


@operator
class DeformConv(Op, onnx="DeformConv", versions=(19, 22)):
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    offset_group: int = 1
    pads: Ints | None = None
    strides: Ints | None = None

    def _geometry(self, kernel: tuple[Dim, ...]) -> Geometry:
        return geometry(kernel, self.strides, self.dilations, self.pads, "NOTSET")

    def infer(
        self,
        x: Type,
        weight: Type,
        offset: Type,
        bias: Type | None = None,
        mask: Type | None = None,
    ) -> Type:
        expect_float(x)
        if x.shape is None or weight.shape is None:
            return x.with_shape(None)
        kernel = self.kernel_shape or weight.dims[2:]
        fits = weight.rank == x.rank == len(kernel) + 2
        if not fits or any(map(differ, kernel, weight.dims[2:])):
            raise InvalidOperand(
                f"expected a weight of rank {x.rank} and kernel_shape {kernel}, "
                f"got {weight.name}"
            )
        self._check(x, weight, offset)
        count = self._geometry(kernel).count(x.dims[2:])
        return x.with_shape((x.dims[0], weight.dims[0], *count))

    def _check(self, x: Type, weight: Type, offset: Type) -> None:
        channels, within = x.dims[1], weight.dims[1]
        numbers = isinstance(channels, int) and isinstance(within, int)
        if numbers and channels != within * self.group:
            raise InvalidOperand(
                f"expected {within * self.group} channels, got {x.name}"
            )
        needed = self.offset_group * prod(weight.dims[2:]) * (x.rank - 2)
        extent = needed if offset.shape is None else offset.dims[1]
        if are_unequal_numbers(needed, extent):
            raise InvalidOperand(f"expected {needed} offsets, got {offset.name}")

    def lower(
        self,
        x: Value,
        weight: Value,
        offset: Value,
        bias: Value = None,
        mask: Value = None,
    ) -> Value:
        options = steps(self.strides, self.pads, self.dilations) | non_default(
            groups=(self.group, 1), offset_groups=(self.offset_group, 1)
        )
        operands: list[Any] = [x, weight, offset, bias, mask]
        while operands[-1] is None:
            operands.pop()
        return ops.deform_conv(*operands, **options)


@operator
class ImageDecoder(Op, onnx="ImageDecoder", versions=(20,)):
    pixel_format: str = "RGB"

    def __post_init__(self) -> None:
        if self.pixel_format not in ("RGB", "BGR", "Grayscale"):
            raise InvalidOperand(
                "expected pixel_format among RGB, BGR, Grayscale, "
                f"got {self.pixel_format!r}"
            )

    def infer(self, encoded_stream: Type) -> Type:
        if encoded_stream.dtype != dtypes.uint8:
            raise InvalidOperand(f"expected uint8, got {encoded_stream.name}")
        channels = 1 if self.pixel_format == "Grayscale" else 3
        return Type(dtypes.uint8, (unnamed(), unnamed(), channels))

    def extra(self) -> str:
        return "burn-runtime[images]"

    def lower(self, encoded_stream: Value) -> Value:
        if self.pixel_format == "RGB":
            return ops.decode_image(encoded_stream)
        return ops.decode_image(encoded_stream, pixel_format=self.pixel_format)
