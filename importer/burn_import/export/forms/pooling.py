"""Pooling and resampling."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.window import per_axis
from burn_import.export.forms.layers import window_attributes
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, static_integers


def _attributes(w: GraphWriter, x: Operand, options: dict[str, Any]) -> dict[str, Any]:
    return window_attributes(
        w,
        x.rank - 2,
        options.get("padding", 0),
        kernel_shape=options["kernel_size"],
        strides=options.get("stride", 1),
        dilations=options.get("dilation", 1),
    ) | {"ceil_mode": int(options.get("ceil_mode", False))}


@form("max_pool")
def max_pool(w: GraphWriter, x: Operand, **options: Any) -> Operand:
    return w.node("MaxPool", x, **_attributes(w, x, options))


@form("max_pool_with_indices")
def max_pool_with_indices(w: GraphWriter, x: Operand, **options: Any) -> list[Operand]:
    """Write a max pool; convert ONNX's flat indices to spatial ones."""
    attrs = _attributes(w, x, options)
    values, indices = w.node_of("MaxPool", [x], 2, **attrs)
    sizes = w.node("Shape", x, dtype=dtypes.int64, start=2)
    size = w.node("ReduceProd", sizes, keepdims=1)
    flat = w.node("Mod", Operand(indices.name, (), dtypes.int64), size)
    return [values, flat]


@form("avg_pool")
def avg_pool(w: GraphWriter, x: Operand, **options: Any) -> Operand:
    attrs = _attributes(w, x, options)
    if attrs["dilations"] == [1] * (x.rank - 2):
        del attrs["dilations"]
    else:
        w.require(19, "AveragePool with dilations")
    counted = int(options.get("count_include_pad", False))
    return w.node("AveragePool", x, count_include_pad=counted, **attrs)


@form("lp_pool")
def lp_pool(w: GraphWriter, x: Operand, **options: Any) -> Operand:
    attrs = _attributes(w, x, options)
    if not attrs["ceil_mode"]:
        del attrs["ceil_mode"]
    if attrs["dilations"] == [1] * (x.rank - 2):
        del attrs["dilations"]
    if "ceil_mode" in attrs or "dilations" in attrs:
        w.require(18, "LpPool with dilations or ceil_mode")
    return w.node("LpPool", x, p=options.get("p", 2), **attrs)


@form("adaptive_avg_pool")
def adaptive_avg_pool(w: GraphWriter, x: Operand, *, output_size: Any) -> Operand:
    counts = per_axis(output_size, x.rank - 2)
    if all(count == 1 for count in counts):
        return w.node("GlobalAveragePool", x)
    sizes = static_integers(w, x.shape[2:])
    if all(n % count == 0 for n, count in zip(sizes, counts, strict=True)):
        kernel = [n // count for n, count in zip(sizes, counts, strict=True)]
        return w.node("AveragePool", x, kernel_shape=kernel, strides=kernel)
    for axis, (n, count) in enumerate(zip(sizes, counts, strict=True), 2):
        order = [a for a in range(x.rank) if a != axis] + [axis]
        back = sorted(range(x.rank), key=order.__getitem__)
        matrix = w.constant(_averaging_weights(n, count).astype(x.dtype))
        product = w.node("MatMul", w.node("Transpose", x, perm=order), matrix)
        moved = w.node("Transpose", product, perm=back)
        x = Operand(moved.name, x.shape, x.dtype)
    return x


def _averaging_weights(size: int, count: int) -> np.ndarray[Any, Any]:
    """Return the weights ``[size, count]`` of the mean of each interval."""
    matrix = np.zeros((size, count))
    for index in range(count):
        first, last = index * size // count, -(-(index + 1) * size // count)
        matrix[first:last, index] = 1.0 / (last - first)
    return matrix


@form("resize")
def resize(
    w: GraphWriter,
    x: Operand,
    scales: Any = None,
    sizes: Any = None,
    roi: Any = None,
    **options: Any,
) -> Operand:
    attributes = {k: v for k, v in options.items() if v is not None}
    axes: Any = attributes.pop("axes", None)
    for name in ("antialias", "exclude_outside"):
        if name in attributes:
            attributes[name] = int(attributes[name])
    if attributes.get("coordinate_transformation_mode") == "pytorch_align_corners":
        # ``sizes`` must be integers, so the rounding comes first.
        attributes["coordinate_transformation_mode"] = "align_corners"
        axes, scales, sizes = None, None, list(w.out[0][0])
    if attributes.get("antialias") or "keep_aspect_ratio_policy" in attributes:
        w.require(18, "Resize with antialias or keep_aspect_ratio_policy")
    if axes is not None:
        if w.opset >= 18:
            attributes["axes"] = list(static_integers(w, axes))
        else:
            scales, sizes = _for_all_axes(w, x, static_integers(w, axes), scales, sizes)
    if scales is not None:
        scales = _floats(w, scales)
    if sizes is not None:
        sizes = w.integers(sizes)
    roi = None if roi is None else w.cast(_floats(w, roi), x.dtype)
    return w.node("Resize", x, roi, scales, sizes, **attributes)


def _floats(w: GraphWriter, numbers: Any) -> Operand:
    if isinstance(numbers, Operand):
        return w.cast(numbers, dtypes.float32)
    return w.constant(np.asarray(numbers, np.float32).reshape(-1))


def _for_all_axes(
    w: GraphWriter, x: Operand, axes: tuple[int, ...], scales: Any, sizes: Any
) -> tuple[Any, Any]:
    """Return scales and sizes for all axes, for operators without ``axes``."""
    if isinstance(scales, Operand) or isinstance(sizes, Operand):
        w.require(18, "Resize with axes")
    positions = [a % x.rank for a in axes]
    if scales is not None:
        wide = [1.0] * x.rank
        for axis, value in zip(positions, scales, strict=True):
            wide[axis] = float(value)
        return wide, None
    extents = list(x.shape)
    for axis, value in zip(positions, sizes, strict=True):
        extents[axis] = value
    return None, extents


@form("grid_sample")
def grid_sample(
    w: GraphWriter,
    x: Operand,
    grid: Operand,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Operand:
    if w.opset < 20:
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    corners = int(align_corners)
    return w.node(
        "GridSample",
        x,
        grid,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=corners,
    )


@form("roi_align")
def roi_align(
    w: GraphWriter, x: Operand, rois: Operand, batch_indices: Operand, **options: Any
) -> Operand:
    attributes = dict(options)
    size = per_axis(attributes.pop("output_size"), 2)
    names: dict[str, Any] = {"output_height": size[0], "output_width": size[1]}
    return w.node(
        "RoiAlign", x, rois, w.cast(batch_indices, dtypes.int64), **names, **attributes
    )


@form("non_max_suppression")
def non_max_suppression(
    w: GraphWriter,
    boxes: Operand,
    scores: Operand,
    max_output_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    *,
    center_point_box: bool = False,
) -> Operand:
    threshold = (
        None if score_threshold is None else w.scalar(score_threshold, dtypes.float32)
    )
    return w.node(
        *("NonMaxSuppression", boxes, scores, w.integers(max_output_boxes)),
        w.scalar(iou_threshold, dtypes.float32),
        threshold,
        dtype=dtypes.int64,
        center_point_box=int(center_point_box),
    )
