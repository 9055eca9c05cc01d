"""Resampling to another size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any, Literal

import numpy as np

from burn import ops
from burn.ops.resize import scaled_extent
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.support import dims_of, ints_of, known_dims, shape_of
from burn_ir.static import static
from burn_ir.types import is_unnamed
from burn_ir.upgrade import Draft

CHOICES = {
    "mode": ("nearest", "linear", "cubic"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "coordinate_transformation_mode": (
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "pytorch_align_corners",  # not ONNX's: see burn_ir.quirks
        "asymmetric",
        "tf_crop_and_resize",
    ),
}

_COORDINATES = ("coordinate_transformation_mode", "nearest_mode")
#: Modes that choose the same elements where each is repeated a whole number of times.
_EQUAL_FOR_REPETITIONS = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
}


@operator
class Resize(Op, onnx="Resize", versions=(10, 11, 13, 18, 19)):
    antialias: Literal[0, 1] = 0
    axes: tuple[int, ...] | None = None
    coordinate_transformation_mode: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: Literal[0, 1] = 0
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise InvalidOperand(
                    f"expected {name} among {', '.join(allowed)}, got {value!r}"
                )

    def infer(
        self,
        x: Type,
        roi: Type | None = None,
        scales: Type | None = None,
        sizes: Type | None = None,
    ) -> Type:
        if x.shape is None:
            return x.with_shape(None)
        scales = None if scales is not None and scales.shape == (0,) else scales
        if (scales is None) == (sizes is None):
            raise InvalidOperand("expected either scales or sizes")
        axes = tuple(range(x.rank)) if self.axes is None else x.axes(self.axes)
        dims = list(x.dims)
        for axis, extent in zip(
            axes, self._extents(x, axes, scales, sizes), strict=True
        ):
            dims[axis] = extent
        return x.with_shape(dims)

    def _extents(
        self, x: Type, axes: tuple[int, ...], scales: Type | None, sizes: Type | None
    ) -> list[Dim]:
        """Return the new sizes along ``axes``; cropping does not affect them."""
        old = [x.dims[axis] for axis in axes]
        wanted = known_dims(sizes)
        if wanted is not None:
            check_count(len(wanted), len(axes))
            return fit_sizes(old, list(wanted), self.keep_aspect_ratio_policy)
        if scales is None or scales.known is None:
            return [unnamed() for _ in axes]
        check_count(scales.known.size, len(axes))
        factors = [Fraction(float(s)) for s in scales.known.ravel()]
        return [scaled(d, s) for d, s in zip(old, factors, strict=True)]

    def lower(
        self, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None
    ) -> Value:
        options = self._options()
        if self.coordinate_transformation_mode != "tf_crop_and_resize":
            roi = None
        if self._repeats(x, scales, sizes):
            options = {n: v for n, v in options.items() if n not in _COORDINATES}
        if sizes is None:
            return self._scaled(x, roi, scales, options)
        if self.coordinate_transformation_mode == "pytorch_align_corners":
            options["coordinate_transformation_mode"] = "align_corners"
        if roi is not None:
            return ops.resize(x, None, sizes, roi, **options)
        changed = self._changed_sizes(x, sizes)
        if changed is not None:
            return ops.resize(x, sizes=changed[1], axes=changed[0], **options)
        extents = ints_of(sizes)
        if extents is not None:
            return ops.resize(x, sizes=extents, **options)
        return ops.resize(x, None, sizes, **options)

    def stateless_layer(
        self,
        x: Type,
        roi: Type | None = None,
        scales: Type | None = None,
        sizes: Type | None = None,
    ) -> Layer | None:
        factors = _factors(x, scales, sizes)
        mode = self._mode_of_module(factors, sizes is not None)
        if x.shape is None or not 3 <= x.rank <= 5 or self.axes or not mode:
            return None
        batch, channels, *space = factors
        if (batch, channels) != (1, 1) or len(set(space)) > 1:
            return None
        options: dict[str, Any] = {"scale_factor": _whole(space[0])}
        if mode != "nearest":
            words = {3: "linear", 4: "bilinear", 5: "trilinear"}
            options["mode"] = words[x.rank]
        if mode == "aligned":
            options["align_corners"] = True
        return Layer("Upsample", (), options, {})

    def _mode_of_module(self, factors: Sequence[float], has_sizes: bool) -> str:
        """Return ``nearest``, ``linear`` or ``aligned``, "" for other resampling."""
        coordinates = self.coordinate_transformation_mode
        if self.antialias or self.keep_aspect_ratio_policy != "stretch" or not factors:
            return ""
        if self.mode == "nearest":
            modes = (coordinates, self.nearest_mode)
            is_repetition = all(f >= 1 and f % 1 == 0 for f in factors)
            is_equal = is_repetition and modes in _EQUAL_FOR_REPETITIONS
            return "nearest" if is_equal or modes == ("asymmetric", "floor") else ""
        if self.mode != "linear" or self.exclude_outside:
            return ""
        if coordinates == "pytorch_align_corners" and not has_sizes:
            return "aligned"
        # The modes differ for results of one element.
        is_long = all(f >= 2 for f in factors[2:])
        is_half = coordinates == "half_pixel"
        is_pytorch = coordinates == "pytorch_half_pixel" and is_long
        return "linear" if is_half or is_pytorch else ""

    def _scaled(
        self, x: Value, roi: Value, scales: Value, options: dict[str, Any]
    ) -> Value:
        """Return ``x`` resampled by scales; known ones of 1 are left out."""
        factors = _floats(scales)
        if roi is not None:
            return ops.resize(x, scales, None, roi, **options)
        if factors is None:
            return ops.resize(x, scales, **options)
        axes = tuple(i for i, factor in enumerate(factors) if factor != 1)
        if self.axes is None and 0 < len(axes) < len(factors):
            changed = tuple(factors[i] for i in axes)
            return ops.resize(x, scales=changed, axes=axes, **options)
        return ops.resize(x, scales=factors, **options)

    def _repeats(self, x: Value, scales: Value, sizes: Value) -> bool:
        """Return whether each element is repeated a whole number of times.

        Rounding half-pixel coordinates then gives the element that rounding
        asymmetric ones down gives, so that the default modes can be printed.
        """
        modes = (self.coordinate_transformation_mode, self.nearest_mode)
        if self.mode != "nearest" or modes not in _EQUAL_FOR_REPETITIONS:
            return False
        if sizes is None:
            factors = _floats(scales)
            return factors is not None and all(f >= 1 and f % 1 == 0 for f in factors)
        extents, wanted = shape_of(x), dims_of(sizes)
        if extents is None or wanted is None or self.axes is not None:
            return False
        if self.keep_aspect_ratio_policy != "stretch" or len(extents) != len(wanted):
            return False
        return all(
            new == old
            or isinstance(old, int)
            and isinstance(new, int)
            and old > 0
            and new % old == 0
            for old, new in zip(extents, wanted, strict=True)
        )

    def _changed_sizes(
        self, x: Value, sizes: Value
    ) -> tuple[tuple[int, ...], tuple[Dim, ...]] | None:
        """Return the axes with changed sizes and the new sizes, if known, or None.

        The other axes must be known to keep their size.
        """
        extents, wanted = shape_of(x), dims_of(sizes)
        stretched = self.keep_aspect_ratio_policy == "stretch" and self.axes is None
        if not stretched or extents is None or wanted is None:
            return None
        axes = [i for i, dim in enumerate(wanted) if dim != extents[i]]
        changed = [dim for i, dim in enumerate(wanted) if i in axes]
        if not axes or len(axes) == len(wanted) or any(map(is_unnamed, changed)):
            return None
        return tuple(axes), tuple(changed)

    def _options(self) -> dict[str, Any]:
        """Return the effective attributes that differ from their defaults."""
        default, unused = Resize(), set()
        if self.mode != "nearest":
            unused.add("nearest_mode")
        if self.mode != "cubic":
            unused.add("cubic_coeff_a")
        attrs = {n: v for n, v in self.attrs().items() if n not in unused}
        options = {n: v for n, v in attrs.items() if v != getattr(default, n)}
        flags = ("antialias", "exclude_outside")
        order = ("axes", "mode", "coordinate_transformation_mode", *options)
        return {
            n: bool(options[n]) if n in flags else options[n]
            for n in dict.fromkeys(order)
            if n in options
        }


def _factors(x: Type, scales: Type | None, sizes: Type | None) -> tuple[float, ...]:
    """Return the factor along each axis, or () if one is unknown.

    Sizes must be multiples of the extents, which are equal for an open extent.
    """
    if scales is not None and scales.known is not None and scales.known.size:
        return tuple(float(factor) for factor in scales.known.ravel())
    wanted = known_dims(sizes)
    if sizes is None or wanted is None or x.shape is None or len(wanted) != x.rank:
        return ()
    factors = []
    for old, new in zip(x.shape, wanted, strict=True):
        if old == new:
            factors.append(1.0)
        elif isinstance(old, int) and isinstance(new, int) and old and new % old == 0:
            factors.append(float(new // old))
        else:
            return ()
    return tuple(factors)


def _whole(factor: float) -> float:
    """Return a factor as an integer if it is whole."""
    return int(factor) if factor % 1 == 0 else factor


def _floats(operand: Value) -> tuple[float, ...] | None:
    try:
        return tuple(float(s) for s in static(operand).ravel())
    except Undecided:
        return None


def check_count(got: int, expected: int) -> None:
    """Check that there is one number per axis.

    Raises:
        InvalidOperand: there are more or fewer.
    """
    if got != expected:
        raise InvalidOperand(f"expected {expected} scales or sizes, got {got}")


def scaled(extent: Dim, factor: Fraction) -> Dim:
    """Return ``extent * factor`` rounded down."""
    if isinstance(extent, int):
        return scaled_extent(extent, float(factor))
    if factor.denominator > 64:
        return unnamed()
    return extent * factor.numerator // factor.denominator


def fit_sizes(old: list[Dim], sizes: list[Dim], policy: str) -> list[Dim]:
    """Return ``sizes``, adjusted to the aspect ratio by ``policy``."""
    if policy == "stretch":
        return sizes
    if not all(isinstance(d, int) for d in old + sizes):
        return [unnamed() for _ in old]
    # An empty axis has no aspect ratio.
    ratios = [int(n) / int(d) for n, d in zip(sizes, old, strict=True) if d] or [1.0]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [floor(scale * int(d) + 0.5) for d in old]


@Resize.upgrade(10)
def only_scales(draft: Draft) -> Draft:
    """Upgrade: version 10 rounded coordinates down (when shrinking, up)."""
    x, scales = draft.node.inputs
    factors = draft.type(1).known
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if factors is not None and (factors < 1).any():
        options["nearest_mode"] = "ceil"
        if (factors > 1).any() and draft.attrs.get("mode", "nearest") == "nearest":
            down = draft.constant("shrinking", np.minimum(factors, 1))
            x = draft.before("Resize", [x, None, down], **options)
            scales = draft.constant("growing", np.maximum(factors, 1))
            options["nearest_mode"] = "floor"
            draft = draft.with_input(0, x)
    return draft.with_input(1, None).with_input(2, scales).with_attrs(**options)


@Resize.upgrade(11, 13)
def half_pixel_for_nearest(draft: Draft) -> Draft:
    """Upgrade: version 11 had one more coordinate transformation."""
    mode = "tf_half_pixel_for_nn"
    if draft.attrs.get("coordinate_transformation_mode") == mode:
        nearest = draft.attrs.get("nearest_mode", "round_prefer_floor")
        if draft.attrs.get("mode", "nearest") != "nearest" or nearest != "floor":
            raise InvalidOperand(f"expected nearest_mode floor with {mode}")
        draft = draft.with_attrs(
            coordinate_transformation_mode="half_pixel",
            nearest_mode="round_prefer_ceil",
        )
    sizes = draft.node.inputs[3:]
    if sizes and sizes[0] is not None:
        return draft.with_input(2, None)
    return draft


@operator
class Upsample(Op, onnx="Upsample", versions=(1, 7, 9)):
    mode: Literal["nearest", "linear"] = "nearest"

    def _resize(self) -> Resize:
        return Resize(
            coordinate_transformation_mode="asymmetric",
            mode=self.mode,
            nearest_mode="floor",
        )

    def infer(self, x: Type, scales: Type) -> Type:
        return self._resize().infer(x, None, scales)

    def lower(self, x: Value, scales: Value) -> Value:
        return self._resize().lower(x, None, scales)


@Upsample.upgrade(1)
def scales_of_two_axes(draft: Draft) -> Draft:
    """Upgrade: before 7, height and width had an attribute each.

    The mode linear had another name.
    """
    scales = [1.0, 1.0, draft.attrs["height_scale"], draft.attrs["width_scale"]]
    name = draft.constant("scales", np.array(scales, np.float32))
    draft = draft.with_input(1, name).with_attrs("height_scale", "width_scale")
    if draft.attrs.get("mode") == "bilinear":
        return draft.with_attrs(mode="linear")
    return draft


@Upsample.upgrade(7)
def scales_attribute(draft: Draft) -> Draft:
    """Upgrade: before 9, the scales were an attribute."""
    return draft.attr_to_input("scales", 1, np.float32)
