"""MobileNetV2 with the keys of torchvision and of Hugging Face."""

import numpy as np

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import IMAGES, any_of
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import depthwise, image, pool
from burn_ir import UnsupportedModel
from burn_ir.raw import RawModel

#: Blocks, counted from 1, with stride 2.
STEPS = (2, 4, 7, 14)
BLOCKS = 17


@recipe(
    "mobilenet_v2",
    "MobileNetV2",
    "features.0.0.weight",
    "features.1.conv.0.0.weight",
    "features.2.conv.1.0.weight",
    "classifier.1.weight",
    is_configured=False,
)
def mobilenet_v2(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``MobileNetV2``: the scores of the classes.

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
    x = conv_norm(w, "features.0", image(w, "features.0.0.weight"), 2)
    for number in range(1, count + 1):
        with w.module(f"features.{number}", "InvertedResidual"):
            x = block(w, x, 2 if number in STEPS else 1)
    x = conv_norm(w, f"features.{count + 1}", x)
    return w.model(w.linear("classifier.1", pool(w, x), LOGITS))


def block(w: RecipeWriter, x: str, stride: int) -> str:
    """Apply an inverted residual block, with a residual if shapes are equal."""
    last = w.count("conv") - 2
    y = x
    for number in range(last):
        deep = number == last - 1
        y = conv_norm(w, f"conv.{number}", y, stride if deep else 1, deep)
    with w.module("conv"):
        y = w.batch_norm(str(last + 1), w.conv(str(last), y))
    input_channels = w.shape("conv.0.0.weight")[1 if last > 1 else 0]
    same = stride == 1 and input_channels == w.shape(f"conv.{last}.weight")[0]
    return w.add(x, y) if same else y


def conv_norm(
    w: RecipeWriter, name: str, x: str, stride: int = 1, deep: bool = False
) -> str:
    """Apply a convolution, batch norm and ReLU6."""
    with w.module(name, "ConvNormActivation"):
        x = depthwise(w, "0", x, stride) if deep else w.conv("0", x, stride)
        return relu6(w, w.batch_norm("1", x), "0.weight")


@recipe(
    "mobilenet_v2 (Hugging Face)",
    "MobileNetV2ForImageClassification",
    "mobilenet_v2.conv_stem.first_conv.convolution.weight",
    "mobilenet_v2.layer.0.conv_3x3.convolution.weight",
    "mobilenet_v2.conv_1x1.convolution.weight",
    "classifier.weight",
    kinds=("mobilenet_v2",),
    supports={
        "hidden_act": ("relu6",),
        **IMAGES,
        **any_of(
            "depth_divisible_by",
            "depth_multiplier",
            "expand_ratio",
            "finegrained_output",
            "first_layer_is_expansion",
            "min_depth",
        ),
    },
)
def hugging_face(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``MobileNetV2ForImageClassification``: class scores.

    Raises:
        UnsupportedModel: it has another number of layers, or dilations.
    """
    size = config.get("image_size", 224)
    with w.module("mobilenet_v2", "MobileNetV2Model"):
        count = w.count("layer") + 1
        if count != BLOCKS or config.get("output_stride", 32) != 32:
            raise UnsupportedModel(
                f"expected the {BLOCKS - 1} layers of MobileNetV2 and an output_stride "
                f"of 32, got {count - 1} and {config.get('output_stride', 32)}"
            )
        w.note(
            "Weights do not tell strides: the first convolution and layers "
            f"{', '.join(str(step - 2) for step in STEPS)} halve the extents."
        )
        with w.module("conv_stem", "MobileNetV2Stem"):
            first = "first_conv.convolution.weight"
            x = image(w, first, size, size, name="pixel_values")
            x = inverted(w, layer(w, "first_conv", x, config, 2), config, 1)
        for number in range(count - 1):
            with w.module(f"layer.{number}", "MobileNetV2InvertedResidual"):
                y = inverted(w, x, config, 2 if number + 2 in STEPS else 1)
                input_channels = w.shape("expand_1x1.convolution.weight")[1]
                same = input_channels == w.shape("reduce_1x1.convolution.weight")[0]
            x = w.add(x, y) if same and number + 2 not in STEPS else y
        x = layer(w, "conv_1x1", x, config)
    return w.model(w.linear("classifier", pool(w, x), LOGITS))


def inverted(w: RecipeWriter, x: str, config: Config, stride: int) -> str:
    """Apply an inverted residual block without its residual."""
    if w.has("expand_1x1.convolution.weight"):
        x = layer(w, "expand_1x1", x, config)
    x = layer(w, "conv_3x3", x, config, stride, deep=True)
    return layer(w, "reduce_1x1", x, config, act=False)


def layer(
    w: RecipeWriter,
    name: str,
    x: str,
    config: Config,
    stride: int = 1,
    *,
    deep: bool = False,
    act: bool = True,
) -> str:
    """Apply a convolution with TensorFlow's padding, batch norm and ReLU6."""
    with w.module(name, "MobileNetV2ConvLayer"):
        same = config.get("tf_padding", True)
        with w.module("convolution", "Conv2d"):
            out, _, *kernel = w.shape("weight")
            x = w.op(
                "Conv",
                *(x, w.weight("weight")),
                strides=(stride, stride),
                auto_pad="SAME_UPPER" if same else None,
                pads=None if same else [k // 2 for k in kernel] * 2,
                group=out if deep else 1,
            )
        x = w.batch_norm("normalization", x, config.get("layer_norm_eps", 1e-3))
        return relu6(w, x, "convolution.weight") if act else x


def relu6(w: RecipeWriter, x: str, weight: str) -> str:
    """Return ``x`` clipped to 0 and 6, in the dtype of a weight."""
    dtype = w.weights.dtype(w.key(weight))
    return w.op("Clip", x, *(np.array(end, dtype) for end in (0, 6)))
