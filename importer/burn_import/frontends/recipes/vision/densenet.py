"""DenseNet with the keys of torchvision."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import timm
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import (
    average_pool,
    image,
    max_pool,
    pool,
    relu,
)
from burn_ir.raw import RawModel


@recipe(
    "densenet",
    "DenseNet",
    "features.conv0.weight",
    "features.norm0.running_mean",
    "features.norm5.running_mean",
    "classifier.weight",
    is_configured=False,
    supports=timm("densenet121", "densenet161", "densenet169", "densenet201"),
)
def densenet(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``DenseNet``: the scores of the classes."""
    w.note(
        "Weights do not tell strides: the first convolution, the max pool behind it "
        "and the 2x2 mean in each transition halve the extents."
    )
    with w.module("features", "Features"):
        x = w.conv("conv0", image(w, "conv0.weight"), stride=2)
        x = max_pool(w, relu(w, w.batch_norm("norm0", x)), 3, 2, 1)
        number = 1
        while has_layer(w, f"denseblock{number}.denselayer1"):
            with w.module(f"denseblock{number}", "DenseBlock"):
                x = block(w, x)
            if w.has(f"transition{number}.conv.weight"):
                with w.module(f"transition{number}", "Transition"):
                    x = w.conv("conv", relu(w, w.batch_norm("norm", x)))
                    x = average_pool(w, x, 2)
            number += 1
        x = relu(w, w.batch_norm("norm5", x))
    return w.model(w.linear("classifier", pool(w, x), LOGITS))


def has_layer(w: RecipeWriter, name: str) -> bool:
    """Return whether there is such a layer, with keys of any version."""
    return any(w.has(f"{name}.{conv}.weight") for conv in ("conv1", "conv.1"))


def block(w: RecipeWriter, x: str) -> str:
    """Apply layers each of which reads the outputs of all before it."""
    parts = [x]
    while has_layer(w, f"denselayer{len(parts)}"):
        with w.module(f"denselayer{len(parts)}", "DenseLayer"):
            parts.append(layer(w, w.op("Concat", *parts, axis=1)))
    return w.op("Concat", *parts, axis=1)


def layer(w: RecipeWriter, x: str) -> str:
    """Apply two convolutions, each after batch norm and ReLU."""
    dot = "" if w.has("conv1.weight") else "."
    for number in (1, 2):
        x = relu(w, w.batch_norm(f"norm{dot}{number}", x))
        x = w.conv(f"conv{dot}{number}", x)
    return x
