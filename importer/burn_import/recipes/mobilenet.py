"""MobileNetV2 with the keys of torchvision."""

from __future__ import annotations

import numpy as np

from burn_import.recipes.config import Config
from burn_import.recipes.table import recipe
from burn_import.recipes.vision import depthwise, image, pooled
from burn_import.recipes.writer import LOGITS, Writer
from burn_ir import UnsupportedModel
from burn_ir.raw import RawModel

#: Blocks, counted from 1, that halve the extents.
STEPS = (2, 4, 7, 14)
BLOCKS = 17


@recipe(
    "mobilenet_v2",
    "MobileNetV2",
    "features.0.0.weight",
    "features.1.conv.0.0.weight",
    "features.2.conv.1.0.weight",
    "classifier.1.weight",
)
def mobilenet_v2(w: Writer, config: Config) -> RawModel:
    """The graph of torchvision's ``MobileNetV2``: the scores of the classes.

    Raises:
        UnsupportedModel: it has another number of blocks than 17.
    """
    count = w.count("features") - 2
    if count != BLOCKS:
        raise UnsupportedModel(
            f"expected the {BLOCKS} blocks of MobileNetV2, whose strides are known, "
            f"got {count}"
        )
    w.note(
        "Weights do not tell strides: the first convolution and blocks "
        f"{', '.join(map(str, STEPS))} of {BLOCKS} halve the extents. "
        "Activations are ReLU6."
    )
    x = normed(w, "features.0", image(w, "features.0.0.weight"), 2)
    for number in range(1, count + 1):
        with w.module(f"features.{number}", "InvertedResidual"):
            x = block(w, x, 2 if number in STEPS else 1)
    x = normed(w, f"features.{count + 1}", x)
    return w.model(w.linear("classifier.1", pooled(w, x), LOGITS))


def block(w: Writer, x: str, stride: int) -> str:
    """Wide, by channel, narrow; beside the identity if that has the same shape."""
    last = w.count("conv") - 2
    y = x
    for number in range(last):
        deep = number == last - 1
        y = normed(w, f"conv.{number}", y, stride if deep else 1, deep)
    with w.module("conv"):
        y = w.batch_norm(str(last + 1), w.conv(str(last), y))
    given = w.shape("conv.0.0.weight")[1 if last > 1 else 0]
    same = stride == 1 and given == w.shape(f"conv.{last}.weight")[0]
    return w.add(x, y) if same else y


def normed(w: Writer, name: str, x: str, stride: int = 1, deep: bool = False) -> str:
    """A convolution, batch norm and ReLU6."""
    with w.module(name, "ConvNormActivation"):
        x = depthwise(w, "0", x, stride) if deep else w.conv("0", x, stride)
        dtype = w.weights.dtype(w.key("0.weight"))
        ends = (np.array(end, dtype) for end in (0, 6))
        return w.op("Clip", w.batch_norm("1", x), *ends)
