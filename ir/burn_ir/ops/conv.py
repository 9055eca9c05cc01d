"""Convolution and its transpose."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from burn import ops
from burn_ir.dim import Dim, symbol, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.options import non_default, one
from burn_ir.ops.support import are_unequal_numbers, shape_of
from burn_ir.ops.window import Geometry, Ints, Pads, geometry, split, written


@operator
class Convolving:
    """Convolution operators, which have these attributes."""

    auto_pad: str = "NOTSET"
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def conv(self) -> Conv:
        """Return the floating convolution with these attributes."""
        names = [one.name for one in fields(Convolving)]
        return Conv(**{name: getattr(self, name) for name in names})

    def geometry(self, weight: tuple[Dim, ...]) -> Geometry:
        """Return the window geometry of a weight of this shape."""
        kernel = weight[2:] if self.kernel_shape is None else self.kernel_shape
        return geometry(kernel, self.strides, self.dilations, self.pads, self.auto_pad)

    def extents(self, weight: Value) -> tuple[Dim, ...]:
        """Return the shape of a weight, unnamed if only attributes set its rank.

        If nothing does, no argument of the operation depends on it.
        """
        shape = shape_of(weight)
        if shape is not None:
            return shape
        lists = (self.kernel_shape, self.strides, self.dilations)
        rank = next((len(n) for n in lists if n), len(self.pads or ()) // 2)
        return (symbol("?"),) * (max(rank, 1) + 2)

    def check(self, x: Type, weight: Type, bias: Type | None) -> None:
        """Check that the operands match.

        Raises:
            InvalidOperand: they do not.
        """
        same_dtype(*(t for t in (x, weight, bias) if t is not None))
        if x.shape is None or weight.shape is None:
            return
        if x.rank != weight.rank or x.rank < 3:
            raise InvalidOperand(
                f"expected one rank of at least 3, got {x.name} and {weight.name}"
            )
        self._check_channels(weight, bias)
        kernel = weight.shape[2:]
        if self.kernel_shape is not None and len(self.kernel_shape) != len(kernel):
            raise InvalidOperand(
                f"expected {len(kernel)} kernel_shape, got {self.kernel_shape}"
            )
        for declared, extent in zip(self.kernel_shape or (), kernel, strict=False):
            if isinstance(extent, int) and declared != extent:
                raise InvalidOperand(
                    f"expected kernel_shape {kernel}, got {self.kernel_shape}"
                )

    def _check_channels(self, weight: Type, bias: Type | None) -> None:
        if self.group < 1:
            raise InvalidOperand(f"expected a group of 1 or more, got {self.group}")
        first = weight.dims[0]  # result channels, or operand channels of the transpose
        if isinstance(first, int) and first % self.group:
            raise InvalidOperand(
                f"expected channels in {self.group} groups, got weight {weight.name}"
            )
        if bias is not None and bias.shape is not None and bias.rank != 1:
            raise InvalidOperand(f"expected a bias of rank 1, got {bias.name}")

    def stored(self, x: Type, weight: Type, bias: Type | None) -> Ints | None:
        """Return the shape of a weight that a layer can own, or None."""
        if weight.known is None:
            return None
        if bias is not None and bias.known is None:
            return None
        return tuple(int(n) for n in weight.known.shape)


@operator
class Conv(Convolving, Op, onnx="Conv", versions=(1, 11, 22)):

    def infer(self, x: Type, weight: Type, bias: Type | None = None) -> Type:
        self.check(x, weight, bias)
        if weight.shape is None:
            return x.with_shape(None)
        if x.shape is None:  # the weight determines the rank
            x = x.with_shape([unnamed() for _ in weight.shape])
        channels, inner = x.dims[1], weight.shape[1] * self.group
        if are_unequal_numbers(channels, inner):
            raise InvalidOperand(
                f"expected {inner} channels for group={self.group} and weight "
                f"{weight.name}, got {x.name}"
            )
        count = self.geometry(weight.shape).count(x.dims[2:])
        return x.with_shape((x.dims[0], weight.shape[0], *count))

    def lower(self, x: Value, weight: Value, bias: Value = None) -> Value:
        terms = () if bias is None else (bias,)
        kernel = self.extents(weight)
        options = self.options(extents_like(x, kernel), kernel)
        return ops.conv(x, weight, *terms, **options)

    def options(self, x: tuple[Dim, ...], weight: tuple[Dim, ...]) -> dict[str, Any]:
        """Return the keyword arguments of the operation."""
        options = self.geometry(tuple(weight)).options(tuple(x[2:]))
        return {**options, **non_default(groups=(self.group, 1))}

    def layer(self, x: Type, weight: Type, bias: Type | None = None) -> Layer | None:
        shape = self.stored(x, weight, bias)
        if shape is None:
            return None
        try:
            options = self.options(extents_like(x, shape), shape)
        except Undecided:
            return None
        if not _is_fixed(options.get("padding", 0)):
            return None
        args = (shape[1] * self.group, shape[0])
        return _layer("Conv", args, one(shape[2:]), options, bias, len(shape))


def extents_like(x: Any, weight: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the dimensions of ``x``, unnamed if its rank is unknown.

    The rank is then that of the weight.
    """
    try:
        shape: tuple[Dim, ...] | None = x.shape
    except Undecided:
        shape = None
    return (symbol("?"),) * len(weight) if shape is None else shape


def _is_fixed(padding: Any) -> bool:
    if isinstance(padding, str):
        return True
    if isinstance(padding, tuple):
        return all(_is_fixed(item) for item in padding)
    return isinstance(padding, int)


def _layer(
    name: str,
    args: tuple[int, int],
    kernel: Any,
    options: dict[str, Any],
    bias: Type | None,
    rank: int,
) -> Layer | None:
    if rank not in (3, 4, 5):
        return None
    options = {"kernel_size": kernel, **options}
    weights = {"weight": 1}
    if bias is None:
        options["bias"] = False
    else:
        weights["bias"] = 2
    return Layer(f"{name}{rank - 2}d", args, options, weights)


@operator
class ConvTranspose(Convolving, Op, onnx="ConvTranspose", versions=(1, 11, 22)):
    output_padding: Ints | None = None
    output_shape: Ints | None = None

    def infer(self, x: Type, weight: Type, bias: Type | None = None) -> Type:
        self.check(x, weight, bias)
        if x.shape is None or weight.shape is None:
            return x.with_shape(None)
        self._check_operand(x, weight)
        channels = weight.shape[1] * self.group
        size = self._size(x.shape[2:], self.geometry(weight.shape))
        return x.with_shape((x.shape[0], channels, *size))

    def _check_operand(self, x: Type, weight: Type) -> None:
        actual, expected = x.dims[1], weight.dims[0]
        if are_unequal_numbers(actual, expected):
            raise InvalidOperand(
                f"expected {expected} channels for weight {weight.name}, got {x.name}"
            )
        space = x.rank - 2
        for name in ("output_padding", "output_shape"):
            numbers = getattr(self, name) or (0,) * space
            if len(numbers) < space or any(n < 0 for n in numbers):
                raise InvalidOperand(f"expected {space} {name}, got {numbers}")

    def _extra(self, rank: int) -> Ints:
        return self.output_padding or (0,) * rank

    def _requested_size(self, count: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
        """Return the spatial result sizes if they determine the padding, else None."""
        if self.output_shape is not None:
            return self.output_shape[-len(count) :]
        if not self.auto_pad.startswith("SAME"):
            return None
        strides = self.strides or (1,) * len(count)
        return tuple(n * step for n, step in zip(count, strides, strict=True))

    def _unpadded_size(self, count: tuple[Dim, ...], wins: Geometry) -> tuple[Dim, ...]:
        """Return the spatial result sizes without padding."""
        return tuple(
            (n - 1) * step + covered + more
            for n, step, covered, more in zip(
                count, wins.strides, wins.covered, self._extra(len(count)), strict=True
            )
        )

    def _size(self, count: tuple[Dim, ...], wins: Geometry) -> tuple[Dim, ...]:
        wanted = self._requested_size(count)
        if wanted is not None:
            return wanted
        natural = self._unpadded_size(count, wins)
        return tuple(
            n - before - after
            for n, (before, after) in zip(natural, wins.pads, strict=True)
        )

    def _padding(self, count: tuple[Dim, ...], wins: Geometry) -> tuple[Pads, Any]:
        """Return the padding, and the additional rows at the end."""
        extra = self._extra(len(count))
        wanted = self._requested_size(count)
        if wanted is None:
            return wins.pads, extra
        totals = [
            n - size
            for n, size in zip(self._unpadded_size(count, wins), wanted, strict=True)
        ]
        upper = self.auto_pad == "SAME_UPPER"
        pads = tuple(split(max(total, 0), upper) for total in totals)
        missing = [max(-total, 0) for total in totals]
        return pads, tuple(e + n for e, n in zip(extra, missing, strict=True))

    def lower(self, x: Value, weight: Value, bias: Value = None) -> Value:
        terms = () if bias is None else (bias,)
        if self._is_padding_dynamic(x, weight):
            return self._to_size(x, weight, *terms)
        kernel = self.extents(weight)
        options = self.options(extents_like(x, kernel), kernel)
        return ops.conv_transpose(x, weight, *terms, **options)

    def _is_padding_dynamic(self, x: Value, weight: Value) -> bool:
        """Return whether the padding depends on sizes known only at run time."""
        if self.output_shape is None and not self.auto_pad.startswith("SAME"):
            return False
        shapes = [shape_of(operand) for operand in (x, weight)]
        return any(
            dims is None or not all(isinstance(n, int) for n in dims[2:])
            for dims in shapes
        )

    def _to_size(self, x: Value, weight: Value, *terms: Value) -> Value:
        wins = self.geometry(self.extents(weight))
        rank = len(wins.strides)
        size = None if self.output_shape is None else one(self.output_shape[-rank:])
        options = non_default(
            size=(size, None),
            upper=(self.auto_pad == "SAME_UPPER", False),
            stride=(one(wins.strides), 1),
            output_padding=(one(self._extra(rank)), 0),
            dilation=(one(wins.dilations), 1),
            groups=(self.group, 1),
        )
        return ops.conv_transpose_to(x, weight, *terms, **options)

    def options(self, x: tuple[Dim, ...], weight: tuple[Dim, ...]) -> dict[str, Any]:
        """Return the keyword arguments of the operation."""
        wins = self.geometry(tuple(weight))
        pads, extra = self._padding(tuple(x[2:]), wins)
        return non_default(
            stride=(one(wins.strides), 1),
            padding=(written(pads), 0),
            output_padding=(one(extra), 0),
            dilation=(one(wins.dilations), 1),
            groups=(self.group, 1),
        )

    def layer(self, x: Type, weight: Type, bias: Type | None = None) -> Layer | None:
        shape = self.stored(x, weight, bias)
        if shape is None:
            return None
        try:
            options = self.options(x.dims, shape)
        except Undecided:
            return None
        fixed = (options.get("padding", 0), options.get("output_padding", 0))
        if not _is_fixed(fixed):
            return None
        args = (shape[0], shape[1] * self.group)
        return _layer("ConvTranspose", args, one(shape[2:]), options, bias, x.rank)
