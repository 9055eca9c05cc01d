"""Window pooling and global pooling over spatial axes."""

from __future__ import annotations

from math import prod
from typing import Any

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.conv import extents_like
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default, one
from burn_ir.ops.support import over_axes_from, unnamed_dims
from burn_ir.ops.window import Geometry, Ints, geometry
from burn_ir.upgrade import Draft


@operator
class Pooling:
    """Window pooling operators, which have these attributes."""

    kernel_shape: Ints
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    @property
    def geometry(self) -> Geometry:
        """Return the window geometry."""
        return geometry(
            self.kernel_shape,
            self.strides,
            self.dilations,
            self.pads,
            self.auto_pad,
            bool(self.ceil_mode),
        )

    def pooled(self, x: Type) -> Type:
        """Return the type of the result."""
        if not self.kernel_shape:
            raise InvalidOperand("expected kernel_shape with an axis or more, got ()")
        if x.shape is None:  # the kernel determines the rank
            x = x.with_shape(unnamed_dims(len(self.kernel_shape) + 2))
        if x.rank != len(self.kernel_shape) + 2:
            raise InvalidOperand(
                f"expected rank {len(self.kernel_shape) + 2} for kernel_shape "
                f"{self.kernel_shape}, got {x.name}"
            )
        return x.with_shape(x.dims[:2] + self.geometry.count(x.dims[2:]))

    def options(self, x: Value) -> dict[str, Any]:
        """Return the keyword arguments of an operation on ``x``."""
        extents = extents_like(x, (1, 1, *self.kernel_shape))
        options = self.geometry.options(tuple(extents[2:]))
        return {"kernel_size": one(self.kernel_shape), **options}

    def pooling_layer(self, kind: str, **more: Any) -> Layer | None:
        """Return the pooling layer of a class whose name begins with ``kind``.

        Its stride is the kernel's extent unless it is given, as in PyTorch.
        """
        rank = len(self.kernel_shape)
        is_even = all(before == after for before, after in self.geometry.pads)
        if self.auto_pad not in ("NOTSET", "VALID") or not (is_even and 1 <= rank <= 3):
            return None
        options = self.geometry.options(())
        stride = options.pop("stride", 1)
        kernel = one(self.kernel_shape)
        sizes = {"kernel_size": kernel} | non_default(stride=(stride, kernel))
        return Layer(f"{kind}{rank}d", (), sizes | options | more, {})


@operator
class MaxPool(Pooling, Op, onnx="MaxPool", versions=(1, 8, 10, 11, 12, 22)):
    storage_order: int = 0
    results: int = 1

    def infer(self, x: Type) -> Type | tuple[Type, ...]:
        result = self.pooled(x)
        return result, result.with_dtype(dtypes.int64)

    def lower(self, x: Value) -> Value:
        if self.results == 1:
            return ops.max_pool(x, **self.options(x))
        out, index = ops.max_pool_with_indices(x, **self.options(x))
        batch, channels, *space = x.shape
        if self.storage_order:
            index = _column_major(index, tuple(space))
        planes = ops.arange(batch * channels) * prod(space)
        return out, index + planes.reshape(batch, channels, *(1 for _ in space))

    def stateless_layer(self, x: Type) -> Layer | None:
        return self.pooling_layer("MaxPool") if self.results == 1 else None


def _column_major(index: Value, space: tuple[Dim, ...]) -> Value:
    """Return row-major positions converted to column-major ones."""
    total, factor, rest = 0, prod(space), index
    coordinates = []
    for extent in reversed(space):
        coordinates.append(rest % extent)
        rest = rest // extent
    for extent, coordinate in zip(reversed(space), coordinates, strict=True):
        factor = factor // extent
        total = total + coordinate * factor
    return total


@operator
class AveragePool(Pooling, Op, onnx="AveragePool", versions=(1, 7, 10, 11, 19, 22)):
    count_include_pad: int = 0

    def infer(self, x: Type) -> Type:
        return self.pooled(expect_float(x))

    def lower(self, x: Value) -> Value:
        options = self.options(x)
        counted = bool(self.count_include_pad) and "padding" in options
        return ops.avg_pool(
            x, **options, **non_default(count_include_pad=(counted, False))
        )

    def stateless_layer(self, x: Type) -> Layer | None:
        window = self.geometry
        if set(window.dilations) != {1}:
            return None
        counted = bool(self.count_include_pad) or not any(map(any, window.pads))
        return self.pooling_layer(
            "AvgPool", **non_default(count_include_pad=(counted, True))
        )


@operator
class LpPool(Pooling, Op, onnx="LpPool", versions=(1, 2, 11, 18, 22)):
    p: float = 2  # before version 2 not only integers

    def infer(self, x: Type) -> Type:
        return self.pooled(expect_float(x))

    def lower(self, x: Value) -> Value:
        return ops.lp_pool(x, **self.options(x), **non_default(p=(self.p, 2)))


@LpPool.upgrade(1)
def kernel_of_whole_axes(draft: Draft) -> Draft:
    """Upgrade: in version 1 an omitted kernel meant the whole axes."""
    if "kernel_shape" in draft.attrs:
        return draft
    sizes = draft.type(0).dims[2:]
    if not all(isinstance(n, int) for n in sizes):
        raise InvalidOperand("expected kernel_shape or fixed extents, got neither")
    return draft.with_attrs(kernel_shape=sizes)


class Global:
    """Operators that reduce all spatial axes to one element."""

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return x.forget()
        if x.rank < 3:
            raise InvalidOperand(f"expected spatial axes, got {x.name}")
        return x.with_shape(x.shape[:2] + (1,) * (x.rank - 2))


@operator
class GlobalAveragePool(Global, Op, onnx="GlobalAveragePool", versions=(1, 22)):
    def lower(self, x: Value) -> Value:
        return over_axes_from(x, 2, ops.mean)

    def stateless_layer(self, x: Type) -> Layer | None:
        rank = 0 if x.shape is None else x.rank - 2
        is_named = 1 <= rank <= 3
        return Layer(f"AdaptiveAvgPool{rank}d", (1,), {}, {}) if is_named else None


@operator
class GlobalMaxPool(Global, Op, onnx="GlobalMaxPool", versions=(1, 22)):
    def lower(self, x: Value) -> Value:
        return over_axes_from(x, 2, ops.max)


@operator
class GlobalLpPool(Global, Op, onnx="GlobalLpPool", versions=(1, 2, 22)):
    p: float = 2  # before version 2 not only integers

    def lower(self, x: Value) -> Value:
        if self.p == 1:
            return over_axes_from(x, 2, ops.reduce_l1)
        if self.p == 2:
            return over_axes_from(x, 2, ops.reduce_l2)
        powers = ops.abs(x) ** float(self.p)
        return over_axes_from(powers, 2, ops.sum) ** (1.0 / self.p)
