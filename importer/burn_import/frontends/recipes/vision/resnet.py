"""ResNet, ResNeXt and Wide ResNet with the keys of torchvision and of Hugging Face."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import IMAGES, any_of, timm
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import (
    groups_of,
    image,
    max_pool,
    pool,
    relu,
)
from burn_ir.raw import RawModel

NOTE = (
    "Weights do not tell strides: each stage but the first halves the extents, in the "
    "3x3 convolution of its first block."
)
SAME_KEYS = (
    "The keys are those of torchvision's ResNet; networks that blur before they halve "
    "the extents (timm's resnetblur50, resnetaa50) have the same keys and shapes and "
    "are another function. To be sure, compare an output with the program that the "
    "weights come from, or import an export of it (torch.export or torch.onnx.export)."
)


@recipe(
    "resnet",
    "ResNet",
    "conv1.weight",
    "bn1.running_mean",
    "layer1.0.conv1.weight",
    "layer1.0.bn2.running_mean",
    "fc.weight",
    is_configured=False,
    supports=timm(
        *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
        *("resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d"),
        *("wide_resnet50_2", "wide_resnet101_2"),
    ),
)
def resnet(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``ResNet``: the scores of the classes."""
    w.note(NOTE, SAME_KEYS)
    x = w.conv("conv1", image(w, "conv1.weight"), stride=2)
    x = max_pool(w, relu(w, w.batch_norm("bn1", x)), 3, 2, 1)
    stage = 1
    while w.count(f"layer{stage}"):
        for number in range(w.count(f"layer{stage}")):
            stride = 2 if stage > 1 and number == 0 else 1
            x = block(w, f"layer{stage}.{number}", x, stride)
        stage += 1
    return w.model(w.linear("fc", pool(w, x), LOGITS))


def block(w: RecipeWriter, name: str, x: str, stride: int) -> str:
    """Apply two or three convolutions with a residual, maybe through a convolution."""
    deep = f"{w.key(name)}.conv3.weight" in w.weights
    with w.module(name, "Bottleneck" if deep else "BasicBlock"):
        y = x
        for number in range(1, 4 if deep else 3):
            if number > 1:
                y = relu(w, y)
            conv, step = f"conv{number}", stride if number == 1 + deep else 1
            input_channels = w.shape("conv1.weight")[0] if number == 2 else 0
            groups = groups_of(w, conv, input_channels) if input_channels else 1
            y = w.batch_norm(f"bn{number}", w.conv(conv, y, step, groups=groups))
        if w.has("downsample.0.weight"):
            x = w.conv("downsample.0", x, stride)
            x = w.batch_norm("downsample.1", x)
        return relu(w, w.add(y, x))


@recipe(
    "resnet (Hugging Face)",
    "ResNetForImageClassification",
    "resnet.embedder.embedder.convolution.weight",
    "resnet.encoder.stages.0.layers.0.layer.0.convolution.weight",
    "classifier.1.weight",
    kinds=("resnet",),
    supports={
        **IMAGES,
        **any_of("depths", "embedding_size", "hidden_sizes", "layer_type"),
    },
)
def hugging_face(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``ResNetForImageClassification``: class scores."""
    w.note(NOTE)
    act = config.get("hidden_act", "relu")
    with w.module("resnet", "ResNetModel"):
        with w.module("embedder", "ResNetEmbeddings"):
            x = image(w, "embedder.convolution.weight", name="pixel_values")
            x = layer(w, "embedder", x, 2, act)
            x = max_pool(w, x, 3, 2, 1)
        with w.module("encoder", "ResNetEncoder"):
            for number in range(w.count("stages")):
                with w.module(f"stages.{number}", "ResNetStage"):
                    x = stage(w, x, number, config)
    return w.model(w.linear("classifier.1", pool(w, x), LOGITS))


def stage(w: RecipeWriter, x: str, number: int, config: Config) -> str:
    """Apply blocks at one resolution; the first block downsamples."""
    act = config.get("hidden_act", "relu")
    smaller = number > 0 or config.get("downsample_in_first_stage", False)
    early = config.get("downsample_in_bottleneck", False)
    for index in range(w.count("layers")):
        stride = 2 if smaller and index == 0 else 1
        with w.module(f"layers.{index}"):
            count = w.count("layer")
        name = "ResNetBottleNeckLayer" if count == 3 else "ResNetBasicLayer"
        with w.module(f"layers.{index}", name):
            at = 0 if early or count < 3 else 1
            y = x
            for each in range(count):
                last = each == count - 1
                step = stride if each == at else 1
                y = layer(w, f"layer.{each}", y, step, "" if last else act)
            if w.has("shortcut.convolution.weight"):
                x = layer(w, "shortcut", x, stride, "", "ResNetShortCut")
            x = w.activation(act, w.add(y, x))
    return x


def layer(
    w: RecipeWriter,
    name: str,
    x: str,
    stride: int,
    act: str,
    kind: str = "ResNetConvLayer",
) -> str:
    """Apply a convolution, batch norm, and the activation if there is one."""
    with w.module(name, kind):
        x = w.batch_norm("normalization", w.conv("convolution", x, stride))
        return w.activation(act, x) if act else x
