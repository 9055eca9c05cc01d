"""Resampling, axis by axis, as defined by ONNX's Resize.

Along one axis a result is a weighted sum of a few elements, the taps. The gradient is
the transposed resampling.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from burn import dtypes
from burn.ops.indexing import add_rows
from burn.ops.support import (
    Array,
    Axes,
    as_array,
    axes_of,
    integers,
    namespace,
    projected,
)
from burn.primitive import primitive

Floats = Any  # a NumPy array of float64 on the host


class Options(NamedTuple):
    """The attributes of a resize, under ONNX's names."""

    axes: Axes = None
    mode: str = "nearest"
    coordinate_transformation_mode: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"


class Resampling(NamedTuple):
    """The resampling of one axis: the taps of every result and their weights.

    ``weights`` is None if a single tap is copied; ``outside`` marks results with the
    extrapolation value.
    """

    axis: int
    taps: np.ndarray[Any, np.dtype[np.int64]]
    weights: Floats | None
    outside: np.ndarray[Any, np.dtype[np.bool_]] | None

    def matrix(self, extent: int) -> Floats:
        """Return the weights as a matrix ``[results, extent]``."""
        dense = np.zeros((len(self.taps), extent))
        weights = np.ones(self.taps.shape) if self.weights is None else self.weights
        rows = np.arange(len(self.taps))[:, None]
        np.add.at(dense, (rows, self.taps), weights)
        return dense


@primitive(traceable=True, numpy_time=60.0)
def resize(
    x: Array, scales: Any = None, sizes: Any = None, roi: Any = None, **options: Any
) -> Array:
    """Return ``x`` resampled to ``sizes``, or by ``scales``, along ``axes`` or all.

    Exactly one of ``scales`` and ``sizes`` is given; both, and ``roi`` (starts, then
    ends, for ``"tf_crop_and_resize"``), are read on the host. Scales are used as given,
    not recomputed from the rounded sizes.

    Args:
        axes: the axes that ``scales``, ``sizes`` and ``roi`` speak of.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        coordinate_transformation_mode, nearest_mode, cubic_coeff_a, exclude_outside,
            antialias, extrapolation_value, keep_aspect_ratio_policy: as in ONNX.
            ``"pytorch_align_corners"`` aligns corners after scaled extents have been
            rounded, ``"align_corners"`` before.

    Raises:
        ValueError: neither or both of scales and sizes, or an unknown mode.
    """
    chosen = Options(**options)
    plans = resamplings(x.shape, scales, sizes, roi, chosen)
    out = x if chosen.mode == "nearest" else x.astype(_working(x.dtype), copy=False)
    for plan in plans:
        out = _resample(out, plan)
    out = _to_dtype(out, x.dtype, chosen.antialias)
    for plan in plans:
        if plan.outside is not None and plan.outside.any():
            out = out.copy()
            out[(slice(None),) * plan.axis + (as_array(x, plan.outside),)] = (
                chosen.extrapolation_value
            )
    return out


@resize.vjp_reading({0: (1, 2, 3)})
def _(grad: Any, out: Any, x: Any, *extents: Any, **options: Any) -> Any:
    return lambda: resize_grad(grad, *extents, shape=x.shape, **options)


@primitive
def resize_grad(
    grad: Array,
    scales: Any = None,
    sizes: Any = None,
    roi: Any = None,
    *,
    shape: tuple[int, ...],
    **options: Any,
) -> Array:
    """Return ``grad`` of a resized array summed into its source elements."""
    xp = namespace(grad)
    total = grad.astype(_working(grad.dtype))
    plans = resamplings(shape, scales, sizes, roi, Options(**options))
    for plan in plans:
        if plan.outside is not None:
            total[(slice(None),) * plan.axis + (as_array(total, plan.outside),)] = 0
    for plan in reversed(plans):
        extent = shape[plan.axis]
        if plan.weights is None:
            rows = xp.moveaxis(total, plan.axis, 0)
            folded = xp.zeros((extent, *rows.shape[1:]), rows.dtype)
            add_rows(folded, as_array(rows, plan.taps[:, 0]), rows)
            total = xp.moveaxis(folded, 0, plan.axis)
        else:
            total = projected(total, plan.matrix(extent).T, plan.axis)
    return total.astype(grad.dtype, copy=False)


@resize_grad.vjp
def _(
    grad: Any, out: Any, x: Any, *extents: Any, shape: tuple[int, ...], **options: Any
) -> Any:
    plain = {**options, "extrapolation_value": 0.0}
    return lambda: resize(grad, *extents, **plain)


def _working(dtype: Any) -> Any:
    """Return the dtype of sums."""
    narrow = dtype in dtypes.HALVES or dtype.itemsize < 4
    return np.float32 if narrow or dtype == dtypes.float32 else np.float64


def _to_dtype(out: Array, dtype: Any, rounded: bool) -> Array:
    if out.dtype == dtype:
        return out
    if dtypes.is_integer(dtype):
        limits = np.iinfo(dtype)
        out = (np.rint(out) if rounded else out).clip(limits.min, limits.max)
    return out.astype(dtype)


def _resample(x: Array, plan: Resampling) -> Array:
    if plan.weights is None:
        return _taken(x, as_array(x, plan.taps[:, 0]), plan.axis)
    if plan.taps.shape[1] > 4:
        return projected(x, plan.matrix(x.shape[plan.axis]), plan.axis)
    shape = [1] * x.ndim
    shape[plan.axis] = len(plan.taps)
    total = None
    for tap, weight in zip(plan.taps.T, plan.weights.T, strict=True):
        part = _taken(x, as_array(x, tap), plan.axis)
        part *= as_array(x, weight.astype(x.dtype)).reshape(shape)
        total = part if total is None else total + part
    return total


def _taken(x: Array, index: Array, axis: int) -> Array:
    """Return the elements ``index`` along ``axis``, in the memory order of ``x``."""
    order = sorted(range(x.ndim), key=lambda a: (-x.strides[a], a))
    xp = namespace(x)
    result = xp.take(xp.transpose(x, order), index, axis=order.index(axis))
    return xp.transpose(result, [order.index(a) for a in range(x.ndim)])


def resamplings(
    shape: tuple[int, ...], scales: Any, sizes: Any, roi: Any, options: Options
) -> list[Resampling]:
    """Return the resampling of each axis that changes."""
    if (scales is None) == (sizes is None):
        raise ValueError("expected either scales or sizes")
    where = axes_of(options.axes, len(shape))
    extents = [shape[a] for a in where]
    if sizes is not None:
        ratios, targets = _fit(extents, integers(sizes), options)
    else:
        ratios = [float(s) for s in _on_host(scales)]
        targets = list(map(scaled_extent, extents, ratios))
    crop = options.coordinate_transformation_mode == "tf_crop_and_resize"
    bounds = _on_host(roi) if crop else np.tile([0.0, 1.0], (len(where), 1)).T
    spans = np.reshape(bounds, (2, len(where))).T
    plans = []
    for axis, scale, target, span in zip(where, ratios, targets, spans, strict=True):
        if scale != 1.0 or target != shape[axis] or crop:
            # With scales the corners are aligned before the extent is rounded down.
            length = shape[axis] * scale if sizes is None else target
            ends = float(span[0]), float(span[1])
            grid = _Grid(shape[axis], target, scale, *ends, length)
            plans.append(_axis(axis, grid, options))
    return plans


def scaled_extent(extent: int, scale: float) -> int:
    """Return ``extent * scale``, a product of float32 numbers, rounded down.

    In float32, as in onnxruntime, 10 times 0.7 is 7; the float32 number closest to 0.7
    is less than that, and so is the exact product.
    """
    return math.floor(np.float32(extent) * np.float32(scale))


def _on_host(values: Any) -> Any:
    return np.ravel(np.asarray(values.get() if hasattr(values, "get") else values))


def _fit(
    extents: list[int], sizes: tuple[int, ...], options: Options
) -> tuple[list[float], list[int]]:
    """Return the scales and sizes, after the policy on the aspect ratio.

    Raises:
        ValueError: an empty axis would become nonempty.
    """
    for size, n in zip(sizes, extents, strict=True):
        if size and not n:
            raise ValueError(f"expected elements to resize to {size}, got an axis of 0")
    ratios = [size / n if n else 1.0 for size, n in zip(sizes, extents, strict=True)]
    if options.keep_aspect_ratio_policy == "stretch":
        return ratios, list(sizes)
    choose = {"not_larger": min, "not_smaller": max}
    if options.keep_aspect_ratio_policy not in choose:
        raise ValueError(f"unknown policy {options.keep_aspect_ratio_policy!r}")
    some = [ratio for ratio, n in zip(ratios, extents, strict=True) if n] or [1.0]
    scale = choose[options.keep_aspect_ratio_policy](some)
    return [scale] * len(extents), [math.floor(scale * n + 0.5) for n in extents]


class _Grid(NamedTuple):
    """One axis: ``extent`` elements to ``target`` ones, cropped to [start, end].

    ``length`` is ``target`` before rounding.
    """

    extent: int
    target: int
    scale: float
    start: float
    end: float
    length: float

    def coordinates(self, mode: str) -> Floats:
        """Return the source coordinate of each result."""
        index = np.arange(self.target, dtype=np.float64)
        centered = (index + 0.5) / self.scale - 0.5
        last = self.extent - 1
        if mode == "half_pixel":
            return centered
        if mode == "half_pixel_symmetric":
            adjustment = self.target / (self.scale * self.extent)
            return centered + self.extent / 2 * (1 - adjustment)
        if mode == "pytorch_half_pixel":
            return centered if self.target > 1 else index * 0
        if mode == "asymmetric":
            return index / self.scale
        if mode == "align_corners":
            return index * last / (self.length - 1 or 1)
        if mode == "pytorch_align_corners":
            return index * last / max(self.target - 1, 1)
        if mode == "tf_crop_and_resize":
            return self.cropped()
        raise ValueError(f"unknown coordinate_transformation_mode {mode!r}")

    def cropped(self) -> Floats:
        """Return the source coordinate of each result between ``start`` and ``end``.

        Computed in float32 and in this order, as in onnxruntime: a result at the last
        element is exact, and not a rounding error outside of the image.
        """
        start, end = np.float32(self.start), np.float32(self.end)
        last = np.float32(self.extent - 1)
        if self.target == 1:
            middle = np.float32(0.5) * (start + end) * last
            return np.full(1, middle, np.float64)
        index = np.arange(self.target, dtype=np.float32)
        inside = index * (end - start) * last / np.float32(self.target - 1)
        return (start * last + inside).astype(np.float64)


def _axis(axis: int, grid: _Grid, options: Options) -> Resampling:
    at = grid.coordinates(options.coordinate_transformation_mode)
    outside = None
    if options.coordinate_transformation_mode == "tf_crop_and_resize":
        outside = (at < 0) | (at > grid.extent - 1)
    last = grid.extent - 1
    if options.mode == "nearest":
        if outside is None:
            # Ties are detected although scales are inexact: 0.49999999 counts as 0.5.
            at = np.rint(at * 2.0**16) * 2.0**-16
        taps = _round(at, options.nearest_mode).clip(0, last).astype(np.int64)
        return Resampling(axis, taps[:, None], None, outside)
    if options.mode not in ("linear", "cubic"):
        raise ValueError(f"expected nearest, linear or cubic, got {options.mode!r}")
    shrink = min(grid.scale, 1.0) if options.antialias else 1.0
    reach = (1 if options.mode == "linear" else 2) / shrink
    first = np.floor(at - reach) + 1
    taps = (first[:, None] + np.arange(math.ceil(2 * reach))).astype(np.int64)
    distance = np.abs(taps - at[:, None]) * shrink
    weights = _weights(distance, options)
    if options.exclude_outside:
        weights = np.where((taps < 0) | (taps > last), 0.0, weights)
    if options.exclude_outside or options.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return Resampling(axis, taps.clip(0, last), weights, outside)


def _round(at: Floats, mode: str) -> Floats:
    if mode == "round_prefer_floor":
        return np.ceil(at - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(at + 0.5)
    if mode == "floor":
        return np.floor(at)
    if mode == "ceil":
        return np.ceil(at)
    raise ValueError(f"unknown nearest_mode {mode!r}")


def _weights(distance: Floats, options: Options) -> Floats:
    """Return the weight of an element at ``distance``: linear, or Keys' cubic."""
    if options.mode == "linear":
        return np.maximum(1.0 - distance, 0.0)
    a, d = options.cubic_coeff_a, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
