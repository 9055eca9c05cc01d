"""One model of each family of timm: the smallest by its name, with random weights."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import timm
import torch

from tests.wild.entry import Case, Entry

#: Words in names of models, from the smallest size up.
SIZES = (
    *("zepto", "atto", "femto", "pico", "nano", "micro", "xxs", "xxt"),
    *("xt", "tiny", "xs", "mini", "small", "lite", "s", "t", "b0", "a0", "y_002"),
)
#: Families whose smallest model cannot be told by its name.
CHOSEN = {"vgg": "vgg11", "dla": "dla34", "dpn": "dpn48b", "resnet": "resnet10t"}


def list_entries() -> list[Entry]:
    """Return an entry for each module of ``timm.models`` with a registered model."""
    entries = []
    for family in timm.list_modules():
        names = timm.list_models(module=family)
        if names:
            name = CHOSEN.get(family) or min(names, key=_size_order)
            entries.append(Entry("timm", family, name, partial(_build, name)))
    return entries


def _size_order(name: str) -> tuple[int, int, int, str]:
    """Return a key that sorts names of models by the size that they tell."""
    words = name.split("_")
    ranks = [SIZES.index(word) for word in words if word in SIZES]
    numbers = [int(n) for n in re.findall(r"\d+", name)]
    return min(ranks, default=len(SIZES)), sum(numbers), len(name), name


def _build(name: str) -> Case:
    for side in (64, 96, 128, 192, 224, 256):
        model = _create(name, side)
        if model is None:
            continue
        images = torch.rand(2, 3, side, side), torch.rand(3, 3, side, side)
        try:
            with torch.no_grad():
                model.eval()(images[0])
        except (RuntimeError, AssertionError, ValueError, IndexError):
            continue
        return Case(model, images[:1], images[1:])
    native = timm.create_model(name, pretrained=False, num_classes=10)
    shape = native.default_cfg["input_size"]
    return Case(native, (torch.rand(1, *shape),), (torch.rand(2, *shape),))


def _create(name: str, side: int) -> Any:
    """Return the model for images of ``side``, or None if it takes no such images."""
    try:
        return timm.create_model(name, pretrained=False, num_classes=10, img_size=side)
    except (TypeError, AssertionError, ValueError, RuntimeError):
        pass
    config = timm.get_pretrained_cfg(name)
    if config is not None and config.fixed_input_size:
        return None
    try:
        return timm.create_model(name, pretrained=False, num_classes=10)
    except (TypeError, AssertionError, ValueError, RuntimeError):
        return None
