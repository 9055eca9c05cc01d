"""Resizing of images, and sampling at coordinates."""

from collections.abc import Sequence
from typing import Any

from burn.ops.resize import scaled_extent
from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel

Sizes = Sequence[int | Value]
NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
ANTIALIASED = {"antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5}
EXACT = {"nearest_mode": "round_prefer_ceil"}


def resize_to(
    g: Builder,
    x: Value,
    sizes: Sizes | None,
    scales: Sequence[float | None] | None,
    mode: str,
    options: dict[str, Any],
) -> Value:
    """Return ``x`` resized; scale factors, if any, determine the coordinates."""
    if scales and all(scale is not None for scale in scales):
        check_sizes(g, x, sizes, scales)
        if options.get("antialias") and "coordinate_transformation_mode" in options:
            raise UnsupportedModel(
                "antialiased scaling with aligned corners is not supported"
            )
        factors = g.constant([1.0, 1.0, *scales], "float32")
        return g.op("Resize", x, None, factors, mode=mode, **options)
    assert sizes is not None
    lead = [g.extent(x, axis) for axis in range(x.rank - len(sizes))]
    extents = [*lead, *sizes]
    return g.op("Resize", x, None, None, extents, mode=mode, **options)


def check_sizes(
    g: Builder, x: Value, sizes: Sizes | None, scales: Sequence[float | None]
) -> None:
    """Check that scaled extents are those of the result, where both are fixed.

    PyTorch multiplies in float64 (100 * 0.29 is less than 29), ONNX in float32.

    Raises:
        UnsupportedModel: they are not.
    """
    old, new = (of.dims or () for of in (x, g.results[0]))
    extents = sizes or new[2:]
    for extent, scale, size in zip(old[2:], scales, extents, strict=False):
        if isinstance(extent, int) and isinstance(size, int) and scale is not None:
            scaled = scaled_extent(extent, scale)
            if scaled != size:
                raise UnsupportedModel(
                    f"expected {extent} * {scale} elements, {scaled}, got {size}"
                )


def _scale_factors(
    output_size: Sizes, only: float | None, *by_axis: float | None
) -> Sequence[float | None]:
    """Return the factors of the spatial axes; those of images are the last ones."""
    return [only] if len(output_size) == 1 else by_axis[-len(output_size) :]


def nearest(options: dict[str, Any]) -> tuple[Rule, Rule]:
    """Return the rules of nearest interpolation: scales as a list, and one by one."""

    def vector(
        g: Builder,
        input: Value,
        output_size: Sizes | None,
        scale_factors: Sequence[float] | None,
    ) -> Value:
        return resize_to(g, input, output_size, scale_factors, "nearest", options)

    def plain(
        g: Builder,
        self: Value,
        output_size: Sizes,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        factors = _scale_factors(output_size, scales, scales_d, scales_h, scales_w)
        return resize_to(g, self, output_size, factors, "nearest", options)

    return vector, plain


def interpolated(mode: str, **options: Any) -> tuple[Rule, Rule]:
    """Return the rules of an interpolation: scales as a list, and one by one."""

    def all_options(align_corners: bool) -> dict[str, Any]:
        if not align_corners:
            return options
        return {**options, "coordinate_transformation_mode": "align_corners"}

    def vector(
        g: Builder,
        input: Value,
        output_size: Sizes | None,
        align_corners: bool,
        scale_factors: Sequence[float] | None,
    ) -> Value:
        chosen = all_options(align_corners)
        return resize_to(g, input, output_size, scale_factors, mode, chosen)

    def plain(
        g: Builder,
        self: Value,
        output_size: Sizes,
        align_corners: bool,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        factors = _scale_factors(output_size, scales, scales_d, scales_h, scales_w)
        chosen = all_options(align_corners)
        return resize_to(g, self, output_size, factors, mode, chosen)

    return vector, plain


def register_overloads(name: str, rules: tuple[Rule, Rule]) -> None:
    """Register the rules of both overloads."""
    rule(f"aten.{name}.vec")(rules[0])
    rule(f"aten.{name}.default")(rules[1])


for _count in (1, 2, 3):
    register_overloads(f"upsample_nearest{_count}d", nearest(dict(NEAREST)))
    register_overloads(f"_upsample_nearest_exact{_count}d", nearest(dict(EXACT)))
register_overloads("upsample_linear1d", interpolated("linear"))
register_overloads("upsample_bilinear2d", interpolated("linear"))
register_overloads("upsample_trilinear3d", interpolated("linear"))
register_overloads("upsample_bicubic2d", interpolated("cubic"))
register_overloads(
    "_upsample_bilinear2d_aa", interpolated("linear", antialias=1, exclude_outside=1)
)
register_overloads("_upsample_bicubic2d_aa", interpolated("cubic", **ANTIALIASED))

#: The modes of ``grid_sampler``, by their number.
INTERPOLATIONS = ("linear", "nearest", "cubic")
PADDINGS = ("zeros", "border", "reflection")


@rule(
    "aten.grid_sampler.default",
    "aten.grid_sampler_2d.default",
    "aten.grid_sampler_3d.default",
)
def grid_sampler(
    g: Builder,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    return g.op(
        "GridSample",
        input,
        grid,
        mode=INTERPOLATIONS[interpolation_mode],
        padding_mode=PADDINGS[padding_mode],
        align_corners=int(align_corners) or None,
    )


@rule("aten.affine_grid_generator.default")
def affine_grid(g: Builder, theta: Value, size: Sizes, align_corners: bool) -> Value:
    return g.op("AffineGrid", theta, list(size), align_corners=int(align_corners))
