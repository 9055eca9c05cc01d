"""ConvNeXt with the keys of torchvision and of Hugging Face."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import IMAGES, any_of
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import (
    channels_first,
    channels_last,
    depthwise,
    image,
    norm_2d,
    pool,
)
from burn_ir.raw import RawModel

EPS = 1e-6


@recipe(
    "convnext",
    "ConvNeXt",
    "features.0.0.weight",
    "features.1.0.layer_scale",
    "features.1.0.block.5.weight",
    "classifier.2.weight",
    is_configured=False,
)
def convnext(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``ConvNeXt``: the scores of the classes."""
    w.note(f"Weights do not tell the epsilon of norms, here {EPS:g}, and that of GELU.")
    patch = w.shape("features.0.0.weight")[-1]
    x = w.conv("features.0.0", image(w, "features.0.0.weight"), patch, padding=0)
    x = norm_2d(w, "features.0.1", x, EPS)
    for stage in range(1, w.count("features")):
        if w.has(f"features.{stage}.1.weight"):
            x = norm_2d(w, f"features.{stage}.0", x, EPS)
            step = w.shape(f"features.{stage}.1.weight")[-1]
            x = w.conv(f"features.{stage}.1", x, step, padding=0)
            continue
        for number in range(w.count(f"features.{stage}")):
            with w.module(f"features.{stage}.{number}", "CNBlock"):
                x = block(w, x)
    x = w.op("GlobalAveragePool", x)
    x = w.op("Flatten", norm_2d(w, "classifier.0", x, EPS), axis=1)
    return w.model(w.linear("classifier.2", x, LOGITS))


def block(w: RecipeWriter, x: str) -> str:
    """Apply a depthwise convolution and two linear layers, scaled, with a residual."""
    with w.module("block"):
        y = channels_last(w, depthwise(w, "0", x))
        y = w.activation("gelu", w.linear("3", w.layer_norm("2", y, EPS)))
        y = channels_first(w, w.linear("5", y))
    return w.add(x, w.op("Mul", y, w.weight("layer_scale")))


@recipe(
    "convnext (Hugging Face)",
    "ConvNextForImageClassification",
    "convnext.embeddings.patch_embeddings.weight",
    "convnext.encoder.stages.0.layers.0.dwconv.weight",
    "convnext.layernorm.weight",
    "classifier.weight",
    kinds=("convnext",),
    supports={
        **IMAGES,
        **any_of(
            "depths",
            "hidden_sizes",
            "image_size",
            "layer_scale_init_value",
            "patch_size",
        ),
    },
)
def hugging_face(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``ConvNextForImageClassification``: class scores."""
    with w.module("convnext", "ConvNextModel"):
        with w.module("embeddings", "ConvNextEmbeddings"):
            patch = w.shape("patch_embeddings.weight")[-1]
            x = image(w, "patch_embeddings.weight", name="pixel_values")
            x = w.conv("patch_embeddings", x, patch, padding=0)
            x = norm_2d(w, "layernorm", x, EPS)
        with w.module("encoder", "ConvNextEncoder"):
            for number in range(w.count("stages")):
                with w.module(f"stages.{number}", "ConvNextStage"):
                    x = stage(w, x, config)
        eps = config.get("layer_norm_eps", 1e-12)
        x = w.layer_norm("layernorm", pool(w, x), eps)
    return w.model(w.linear("classifier", x, LOGITS))


def stage(w: RecipeWriter, x: str, config: Config) -> str:
    """Apply blocks at one resolution, after a downsampling convolution if any."""
    if w.has("downsampling_layer.1.weight"):
        step = w.shape("downsampling_layer.1.weight")[-1]
        x = norm_2d(w, "downsampling_layer.0", x, EPS)
        x = w.conv("downsampling_layer.1", x, step, padding=0)
    act = config.get("hidden_act", "gelu")
    for number in range(w.count("layers")):
        with w.module(f"layers.{number}", "ConvNextLayer"):
            y = channels_last(w, depthwise(w, "dwconv", x))
            y = w.linear("pwconv1", w.layer_norm("layernorm", y, EPS))
            y = w.linear("pwconv2", w.activation(act, y))
            if w.has("layer_scale_parameter"):
                y = w.op("Mul", y, w.weight("layer_scale_parameter"))
            x = w.add(x, channels_first(w, y))
    return x
