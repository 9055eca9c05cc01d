"""Plain PyTorch versions of torchvision's C++ operators.

torchvision cannot be imported when its extension does not load, for example because
it was built for another version of PyTorch. ``ensure_operators`` then defines the
operators with the same schemas, so that models can be built, run and exported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROI = "Tensor input, Tensor rois, float spatial_scale, "
SIZE = "SymInt pooled_height, SymInt pooled_width"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({ROI}{SIZE}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({ROI}{SIZE}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({ROI}{SIZE}) -> (Tensor, Tensor)",
    f"ps_roi_align({ROI}{SIZE}, int sampling_ratio) -> (Tensor, Tensor)",
    f"ps_roi_pool({ROI}{SIZE}) -> (Tensor, Tensor)",
    "_cuda_version() -> int",
)
#: Libraries with definitions live as long as these objects do.
_kept: list[Any] = []


def ensure_operators() -> bool:
    """Return whether torchvision's own operators load; define substitutes if not."""
    if _extension_loads():
        return True
    if not _kept:
        _define_operators()
    import torchvision.extension
    import torchvision.ops.roi_align

    torchvision.extension._has_ops = has_operators
    roi_align_module = sys.modules["torchvision.ops.roi_align"]
    if hasattr(roi_align_module, "_has_ops"):  # a name of its own since 0.27
        roi_align_module._has_ops = has_operators  # type: ignore[attr-defined]
    return False


def has_operators() -> bool:
    """Return True; the exporters compile the source of this function."""
    return True


def _extension_loads() -> bool:
    import torch

    operators: Any = torch.ops
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    for path in sorted(Path(spec.origin).parent.glob("_C*.so")):
        try:
            operators.load_library(str(path))
        except OSError:
            continue
        return hasattr(operators.torchvision, "nms")
    return False


def _define_operators() -> None:
    import torch

    torch_library: Any = torch.library
    library = torch_library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    library.impl("nms", nms, "CPU")
    library.impl("roi_align", roi_align, "CPU")
    library.impl("roi_align", _differentiable(roi_align), "AutogradCPU")
    _kept.append(library)


def _differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` as a kernel of autograd: backward recomputes it."""
    import torch

    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            ctx.save_for_backward(x, rest[0])
            ctx.rest = rest[1:]
            with torch.no_grad():
                return function(x, *rest)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x, boxes = (t.detach() for t in ctx.saved_tensors)
            with torch.enable_grad():
                x.requires_grad_()
                result = function(x, boxes, *ctx.rest)
                (of_x,) = torch.autograd.grad(result, x, gradient)
            return of_x, None, *(None for _ in ctx.rest)

    kernel: Any = Recomputed
    return lambda *args: kernel.apply(*args)


def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the indices of boxes [n, 4] kept by non-maximum suppression, best first.

    ``scores`` is [n]; the result is int64.
    """
    import numpy as np
    import torch

    boxes, order = dets.detach().numpy(), np.argsort(
        -scores.detach().numpy(), 0, "stable"
    )
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        overlap = (high - low).clip(min=0).prod(-1)
        union = area[best] + area[order] - overlap
        order = order[~(overlap > iou_threshold * union)]
    return torch.tensor(kept, dtype=torch.int64)


def roi_align(
    x: Any, rois: Any, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> Any:
    """Return regions [k, c, height, width] of ``x`` [n, c, h, w], by bilinear samples.

    ``rois`` is [k, 5]: the index of the image and two corners of each region.
    """
    import torch

    offset = 0.5 if aligned else 0.0
    regions = [x.new_zeros(0, x.shape[1], height, width)]
    for roi in rois:
        image = x[int(roi[0])]
        x1, y1, x2, y2 = (roi[1:] * scale - offset).unbind()
        w, h = x2 - x1, y2 - y1
        if not aligned:
            w, h = w.clamp(min=1.0), h.clamp(min=1.0)
        rows = ratio if ratio > 0 else int(torch.ceil(h / height))
        columns = ratio if ratio > 0 else int(torch.ceil(w / width))
        ys = y1 + (torch.arange(height * rows) + 0.5) * (h / (height * max(rows, 1)))
        xs = x1 + (torch.arange(width * columns) + 0.5) * (
            w / (width * max(columns, 1))
        )
        samples = _bilinear(image, ys, xs)
        blocks = samples.reshape(-1, height, rows, width, columns)
        regions.append(blocks.mean((2, 4))[None])
    return torch.cat(regions)


def _bilinear(image: Any, ys: Any, xs: Any) -> Any:
    """Return ``image`` [c, h, w] at ``ys`` x ``xs``; zeros further than 1 outside."""
    h, w = image.shape[1:]
    inside = ((ys >= -1) & (ys <= h))[:, None] & ((xs >= -1) & (xs <= w))
    ys, xs = ys.clamp(0, h - 1), xs.clamp(0, w - 1)
    top, left = ys.floor().long(), xs.floor().long()
    bottom, right = (top + 1).clamp(max=h - 1), (left + 1).clamp(max=w - 1)
    dy, dx = (ys - top)[:, None], xs - left
    upper = image[:, top][:, :, left] * (1 - dx) + image[:, top][:, :, right] * dx
    lower = image[:, bottom][:, :, left] * (1 - dx) + image[:, bottom][:, :, right] * dx
    return (upper * (1 - dy) + lower * dy) * inside
