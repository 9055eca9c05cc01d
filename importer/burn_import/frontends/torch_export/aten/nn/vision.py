"""Operators of torchvision: boxes, regions of interest, deformable convolution."""

from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel

#: More boxes than any image has.
_ALL = 2**31 - 1


@rule("torchvision.nms.default")
def nms(g: Builder, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """Return indices of boxes after non-maximum suppression, best scores first."""
    of = g.at(dets.dtype)
    boxes, ratings = of.op("Unsqueeze", dets, [0]), of.op("Unsqueeze", scores, [0, 1])
    bound = g.constant(float(iou_threshold), "float32")
    whole = g.at(INT64)
    rows = whole.op("NonMaxSuppression", boxes, ratings, g.ints(_ALL), bound)
    return whole.op("Gather", rows, whole.constant(2), axis=1)


@rule("torchvision.roi_align.default")
def roi_align(
    g: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """Return means of samples in the bins of regions [k, 5]: image, two corners."""
    boxes = g.at(rois.dtype)
    corners = boxes.op("Slice", rois, [1], [5], [1])
    image = boxes.op("Gather", rois, g.at(INT64).constant(0), axis=1)
    return g.op(
        "RoiAlign",
        input,
        corners,
        g.at(INT64).cast(image),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=fixed(pooled_height),
        output_width=fixed(pooled_width),
        sampling_ratio=max(int(sampling_ratio), 0),
        spatial_scale=float(spatial_scale),
    )


def fixed(extent: int | Value) -> int:
    """Return an extent that must be a number.

    Raises:
        UnsupportedModel: it is computed.
    """
    if isinstance(extent, Value):
        raise UnsupportedModel("expected a fixed number of bins, got a computed one")
    return extent


@rule("torchvision.ps_roi_align.default")
def ps_roi_align(
    g: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Value, None]:
    """Apply :func:`roi_align` with separate channels for each bin."""
    sizes = fixed(pooled_height), fixed(pooled_width)
    bins = sizes[0] * sizes[1]
    rest = spatial_scale, *sizes, sampling_ratio, True
    pooled = roi_align(g, input, rois, *rest)
    square = g.op("Reshape", pooled, [0, -1, bins * bins])
    own = g.constant([number * (bins + 1) for number in range(bins)])
    return g.op("Reshape", g.op("Gather", square, own, axis=2), [0, 0, *sizes]), None


@rule("torchvision.roi_pool.default")
def roi_pool(
    g: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Value, None]:
    """Return the largest elements in the bins of regions."""
    sizes = fixed(pooled_height), fixed(pooled_width)
    scale = float(spatial_scale)
    pooled = g.op("MaxRoiPool", input, rois, pooled_shape=sizes, spatial_scale=scale)
    return pooled, None


@rule("torchvision.deform_conv2d.default")
def deform_conv2d(
    g: Builder,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """Apply a convolution that reads each element at its own offset."""
    return g.op(
        "DeformConv",
        input,
        weight,
        offset,
        bias,
        mask if use_mask else None,
        strides=(stride_h, stride_w),
        pads=(pad_h, pad_w, pad_h, pad_w),
        dilations=(dilation_h, dilation_w),
        group=groups,
        offset_group=offset_groups,
    )
