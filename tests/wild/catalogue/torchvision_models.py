"""Every model of torchvision that its registry lists, with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torchvision import models

from tests.wild.catalogue.wrappers import flatten_tensors
from tests.wild.entry import Case, Entry

#: Smallest side of an image that a model accepts, where 64 is not enough.
SIDES = {
    "inception_v3": 299,
    "quantized_inception_v3": 299,
    "alexnet": 64,
    "googlenet": 64,
}
DETECTION = {"min_size": 64, "max_size": 96}
#: Fewer boxes than usual, for detectors in two stages and in one.
TWO_STAGES = {
    "rpn_pre_nms_top_n_test": 50,
    "rpn_post_nms_top_n_test": 10,
    "box_detections_per_img": 5,
}
ONE_STAGE = {"topk_candidates": 20, "detections_per_img": 5}
#: SSD300 multiplies images by 255, for pretrained weights. With random ones its scores
#: are then all 1, and no order of the boxes is better than another.
SSD300 = {"image_std": (1.0, 1.0, 1.0)}


class Detector(torch.nn.Module):
    """A detection model on one image [3, h, w]; boxes, labels, scores and masks."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, image: Any) -> tuple[Any, ...]:
        """Return the detections in ``image``."""
        return tuple(self.model([image])[0].values())


class Flattened(torch.nn.Module):
    """A model whose outputs are flattened to a tuple of tensors."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, image: Any) -> tuple[Any, ...]:
        """Return the tensors that the model returns, in order."""
        return tuple(flatten_tensors(self.model(image)))


class Flow(torch.nn.Module):
    """An optical flow model on two images [n, 3, h, w]; the last flow."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, first: Any, second: Any) -> Any:
        """Return the flow [n, 2, h, w] after two updates."""
        return self.model(first, second, num_flow_updates=2)[-1]


def list_entries() -> list[Entry]:
    """Return an entry for each registered model."""
    return [
        Entry("torchvision", _family(name), name, partial(_build, name))
        for name in models.list_models()
    ]


def _family(name: str) -> str:
    builder = models.get_model_builder(name)
    parts = builder.__module__.split(".")[2:]
    return "/".join(parts) or name


def _build(name: str) -> Case:
    builder = models.get_model_builder(name)
    kind = builder.__module__.split(".")[2]
    if kind == "detection":
        options: dict[str, Any] = TWO_STAGES if "rcnn" in name else ONE_STAGE
        if not name.startswith("ssd"):
            options = options | DETECTION
        if name == "ssd300_vgg16":
            options = options | SSD300
        if name.startswith(("fcos", "retinanet")):
            options = options | {"score_thresh": 0.0}
        model = builder(weights=None, weights_backbone=None, num_classes=5, **options)
        return Case(Detector(model), (torch.rand(3, 64, 80),))
    if kind == "optical_flow":
        images = torch.rand(2, 1, 3, 128, 128)
        return Case(Flow(builder(weights=None)), (images[0], images[1]))
    if kind == "video":
        return _video(name, builder)
    if kind == "segmentation":
        model = builder(weights=None, weights_backbone=None, num_classes=5)
        small, large = torch.rand(1, 3, 64, 64), torch.rand(2, 3, 64, 96)
        return Case(Flattened(model), (small,), (large,))
    return _classifier(name, kind, builder)


def _video(name: str, builder: Any) -> Case:
    model = builder(weights=None, num_classes=10)
    side = 224 if name.startswith(("mvit", "s3d")) else 64
    frames = 16 if name.startswith(("mvit", "s3d")) else 8
    clip = torch.rand(1, 3, frames, side, side)
    return Case(model, (clip,), (torch.rand(2, *clip.shape[1:]),))


def _classifier(name: str, kind: str, builder: Any) -> Case:
    options: dict[str, Any] = {"weights": None, "num_classes": 10}
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    if kind == "quantization":
        options["quantize"] = False
    side = SIDES.get(name, 64)
    if name.startswith("vit_"):
        side = options["image_size"] = 56 if name == "vit_h_14" else 64
    elif name.startswith("maxvit"):
        side, options["input_size"] = 224, (224, 224)
    images = torch.rand(2, 3, side, side), torch.rand(3, 3, side, side)
    return Case(builder(**options), images[:1], images[1:])
