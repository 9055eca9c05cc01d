"""Operators of programs that ONNX lacks but ``burn.ops`` has as primitives."""

from __future__ import annotations

from math import prod
from typing import Any

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import Arithmetic, same_dtype
from burn_ir.ops.functions import Floating, expect_float
from burn_ir.ops.options import non_default
from burn_ir.ops.reduction import without
from burn_ir.ops.support import known_dims, length, unnamed_dims
from burn_ir.ops.window import Geometry, geometry
from burn_ir.static import static_dims
from burn_ir.types import broadcast


@operator
class Trunc(Floating, Op, onnx="Trunc", versions=(1,), domain="burn"):
    """``x`` rounded towards zero."""

    def lower(self, x: Value) -> Value:
        return ops.trunc(x)


@operator
class Lgamma(Floating, Op, onnx="Lgamma", versions=(1,), domain="burn"):
    """The logarithm of the absolute value of the gamma function."""

    def lower(self, x: Value) -> Value:
        return ops.lgamma(x)


@operator
class Polygamma(Floating, Op, onnx="Polygamma", versions=(1,), domain="burn"):
    """The derivative of order ``n`` of the digamma function."""

    n: int

    def lower(self, x: Value) -> Value:
        return ops.polygamma(x, n=self.n)


@operator
class Erfinv(Floating, Op, onnx="Erfinv", versions=(1,), domain="burn"):
    """The inverse of the error function."""

    def lower(self, x: Value) -> Value:
        return ops.erfinv(x)


@operator
class Expm1(Floating, Op, onnx="Expm1", versions=(1,), domain="burn"):
    """``exp(x) - 1``, exact for small ``x``."""

    def lower(self, x: Value) -> Value:
        return ops.expm1(x)


@operator
class Log1p(Floating, Op, onnx="Log1p", versions=(1,), domain="burn"):
    """``log(1 + x)``, exact for small ``x``."""

    def lower(self, x: Value) -> Value:
        return ops.log1p(x)


@operator
class ScaledBesselI(Floating, Op, onnx="ScaledBesselI", versions=(1,), domain="burn"):
    """``exp(-abs(x))`` times the modified Bessel function of the first kind."""

    order: int

    def lower(self, x: Value) -> Value:
        return ops.scaled_bessel_i(x, order=self.order)


@operator
class Gcd(Op, onnx="Gcd", versions=(1,), domain="burn"):
    """The greatest common divisor."""

    def infer(self, x: Type, y: Type) -> Type:
        if x.dtype.kind not in "iu":
            raise InvalidOperand(f"expected integers, got {x.name}")
        return Type(same_dtype(x, y), broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return ops.gcd(x, y)


@operator
class Atan2(Op, onnx="Atan2", versions=(1,), domain="burn"):
    """The angle of the point (``x``, ``y``)."""

    def infer(self, y: Type, x: Type) -> Type:
        return Type(same_dtype(expect_float(y), x), broadcast(y, x))

    def lower(self, y: Value, x: Value) -> Value:
        return ops.atan2(y, x)


@operator
class LogCumSumExp(Floating, Op, onnx="LogCumSumExp", versions=(1,), domain="burn"):
    """The logarithm of the running sum of exponentials along an axis."""

    axis: int = 0

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axis)
        return expect_float(x).forget()

    def lower(self, x: Value) -> Value:
        return ops.logcumsumexp(x, **non_default(axis=(self.axis, 0)))


@operator
class FloorDiv(Arithmetic, Op, onnx="FloorDiv", versions=(1,), domain="burn"):
    """The quotient rounded towards minus infinity."""

    def lower(self, x: Value, y: Value) -> Value:
        return x // y


@operator
class AdaptivePooling:
    """Windows that cover each spatial axis evenly.

    Their numbers are ``output_size``, or the operand ``sizes`` if they are computed.
    """

    output_size: tuple[int, ...] = ()

    def pooled(self, x: Type, sizes: Type | None) -> Type:
        """Return the type of the result."""
        if expect_float(x).shape is None:
            return x.forget()
        if sizes is None:
            dims: tuple[Dim, ...] = self.output_size
        else:
            dims = known_dims(sizes) or unnamed_dims(length(sizes))
        if x.rank != len(dims) + 2:
            raise InvalidOperand(f"expected rank {len(dims) + 2}, got {x.name}")
        return x.with_shape((*x.dims[:2], *dims))

    def windows(self, sizes: Value) -> Any:
        """Return the numbers of windows, one number if all are equal."""
        numbers: Any = self.output_size if sizes is None else static_dims(sizes)
        return numbers[0] if len(set(numbers)) == 1 else numbers


@operator
class AdaptiveAvgPool(
    AdaptivePooling, Op, onnx="AdaptiveAvgPool", versions=(1,), domain="burn"
):
    """The means of windows that cover each spatial axis evenly."""

    def infer(self, x: Type, sizes: Type | None = None) -> Type:
        return self.pooled(x, sizes)

    def lower(self, x: Value, sizes: Value = None) -> Value:
        return ops.adaptive_avg_pool(x, output_size=self.windows(sizes))


@operator
class AdaptiveMaxPool(
    AdaptivePooling, Op, onnx="AdaptiveMaxPool", versions=(1,), domain="burn"
):
    """The maxima of windows that cover each spatial axis evenly, and their indices."""

    results: int = 1

    def infer(self, x: Type, sizes: Type | None = None) -> Type | tuple[Type, ...]:
        result = self.pooled(x, sizes)
        return result, result.with_dtype(dtypes.int64)

    def lower(self, x: Value, sizes: Value = None) -> Value:
        size = self.windows(sizes)
        if self.results == 1:
            return ops.adaptive_max_pool(x, output_size=size)
        return ops.adaptive_max_pool_with_indices(x, output_size=size)


@operator
class Reducing:
    """Reductions whose axes are an attribute; by default all axes."""

    axes: tuple[int, ...] | None = None
    keepdims: bool = False

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return x.with_shape(None)
        reduced = tuple(range(x.rank)) if self.axes is None else x.axes(self.axes)
        return x.with_shape(without(x.shape, reduced, self.keepdims))

    def over(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a reduction."""
        options = {"keepdims": True} if self.keepdims else {}
        if self.axes is None:
            return (), options
        return (self.axes[0] if len(self.axes) == 1 else self.axes,), options


@operator
class Var(Reducing, Op, onnx="Var", versions=(1,), domain="burn"):
    """The sum of squared deviations divided by (count - ``correction``)."""

    correction: float = 1

    def lower(self, x: Value) -> Value:
        axis, options = self.over()
        options |= non_default(correction=(self.correction, 1))
        return ops.var(x, *axis, **options)


@operator
class Std(Reducing, Op, onnx="Std", versions=(1,), domain="burn"):
    """The square root of ``Var``, with gradient 0 where it is 0."""

    correction: float = 1

    def lower(self, x: Value) -> Value:
        axis, options = self.over()
        options |= non_default(correction=(self.correction, 1))
        return ops.std(x, *axis, **options)


@operator
class AnyOf(Reducing, Op, onnx="Any", versions=(1,), domain="burn"):
    """Whether any of the bools is true."""

    def lower(self, x: Value) -> Value:
        axis, options = self.over()
        return ops.any(x, *axis, **options)


@operator
class All(Reducing, Op, onnx="All", versions=(1,), domain="burn"):
    """Whether all of the bools are true."""

    def lower(self, x: Value) -> Value:
        axis, options = self.over()
        return ops.all(x, *axis, **options)


@operator
class Sort(Op, onnx="Sort", versions=(1,), domain="burn"):
    """``x`` sorted along an axis, and the indices; the order is stable."""

    axis: int = -1
    descending: bool = False
    results: int = 1

    def infer(self, x: Type) -> tuple[Type, ...]:
        return x.forget(), x.forget().with_dtype(dtypes.int64)

    def lower(self, x: Value) -> tuple[Value, ...]:
        axis = () if self.axis == -1 else (self.axis,)
        options = {"descending": True} if self.descending else {}
        if self.results == 1:
            return (ops.sort(x, *axis, **options),)
        order = ops.argsort(x, *axis, **options)
        return ops.gather_elements(x, order, self.axis), order


@operator
class Flip(Op, onnx="Flip", versions=(1,), domain="burn"):
    """``x`` with the elements along axes reversed."""

    axes: tuple[int, ...]

    def infer(self, x: Type) -> Type:
        if x.shape is not None:
            x.axes(self.axes)
        return x.forget()

    def lower(self, x: Value) -> Value:
        return ops.flip(x, self.axes[0] if len(self.axes) == 1 else self.axes)


@operator
class Im2Col(Op, onnx="Im2Col", versions=(1,), domain="burn"):
    """The windows over images [N, C, *size] as columns [N, C prod(kernel), L]."""

    kernel_shape: tuple[int, ...]
    dilations: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def geometry(self) -> Geometry:
        """Return the window geometry."""
        rest = (self.strides, self.dilations, self.pads)
        return geometry(self.kernel_shape, *rest, "NOTSET")

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return x.with_shape(None)
        if x.rank != len(self.kernel_shape) + 2:
            raise InvalidOperand(
                f"expected rank {len(self.kernel_shape) + 2}, got {x.name}"
            )
        count = prod(self.geometry().count(x.shape[2:]))
        return x.with_shape((x.shape[0], x.shape[1] * prod(self.kernel_shape), count))

    def lower(self, x: Value) -> Value:
        options = self.geometry().options(tuple(x.shape[2:]))
        return ops.unfold(x, self.kernel_shape, **options)


@operator
class FakeQuantize(Op, onnx="FakeQuantize", versions=(1,), domain="burn"):
    """``x`` quantized to integers from ``low`` to ``high``, and dequantized."""

    low: int
    high: int

    def infer(self, x: Type, scale: Type, zero_point: Type) -> Type:
        same_dtype(expect_float(x), scale, zero_point)
        shape = broadcast(x, scale, zero_point)
        if shape is not None and len(shape) != x.rank:
            raise InvalidOperand(f"expected a scale that fits {x.name}")
        return x.forget()

    def lower(self, x: Value, scale: Value, zero_point: Value) -> Value:
        return ops.fake_quantize(x, scale, zero_point, low=self.low, high=self.high)
