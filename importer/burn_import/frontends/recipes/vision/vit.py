"""The vision transformer for image classification."""

from math import isqrt

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import IMAGES, any_of, heads
from burn_import.frontends.recipes.graph_writer import BATCH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_ir import InvalidModel
from burn_ir.raw import RawModel


@recipe(
    "vit",
    "ViTForImageClassification",
    "vit.embeddings.cls_token",
    "vit.embeddings.patch_embeddings.projection.weight",
    "vit.layernorm.weight",
    "classifier.weight",
    supports={**IMAGES, **any_of("encoder_stride", "pooler_act", "pooler_output_size")},
)
def vit(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``ViTForImageClassification``: the scores of the classes."""
    eps = config.get("layer_norm_eps", 1e-12)
    with w.module("vit", "ViTModel"):
        pixels = w.input("pixel_values", "float32", BATCH, *image(w))
        with w.module("embeddings", "ViTEmbeddings"):
            x = embeddings(w, pixels)
        at = "layers" if w.count("layers") else "encoder.layer"
        for number in range(w.count(at)):
            with w.module(f"{at}.{number}", "ViTLayer"):
                x = layer(w, x, config, eps)
        x = w.layer_norm("layernorm", x, eps)
    return w.model(w.linear("classifier", w.op("Gather", x, 0, axis=1)))


def image(w: RecipeWriter) -> tuple[int, int, int]:
    """Return channels, height and width, from a square number of patches.

    Raises:
        InvalidModel: the number of positions is not a square plus one.
    """
    _, channels, height, width = w.shape(
        "embeddings.patch_embeddings.projection.weight"
    )
    count = w.shape("embeddings.position_embeddings")[1] - 1
    side = isqrt(count)
    if side * side != count:
        raise InvalidModel(f"expected positions of a square of patches, got {count}")
    return channels, side * height, side * width


def embeddings(w: RecipeWriter, pixels: str) -> str:
    """Return the class token and patches with position embeddings."""
    with w.module("patch_embeddings", "ViTPatchEmbeddings"):
        size = w.shape("projection.weight")[-1]
        patches = w.patches("projection", pixels, size)
    x = w.after_token("cls_token", patches)
    return w.add(x, w.weight("position_embeddings"))


def layer(w: RecipeWriter, x: str, config: Config, eps: float) -> str:
    """Apply one pre-norm layer of attention and MLP.

    Transformers 5 has other keys in memory than in files.
    """
    is_file = w.has("intermediate.dense.weight")
    y = w.layer_norm("layernorm_before", x, eps)
    with w.module("attention", "ViTAttention"):
        attended = stored_attention if is_file else self_attention
        x = w.add(attended(w, y, config), x)
    y = w.layer_norm("layernorm_after", x, eps)
    act = config.get("hidden_act", "gelu")
    if is_file:
        y = w.activation(act, w.linear("intermediate.dense", y))
        return w.add(w.linear("output.dense", y), x)
    with w.module("mlp", "ViTMLP"):
        y = w.activation(act, w.linear("fc1", y))
        return w.add(w.linear("fc2", y), x)


def stored_attention(w: RecipeWriter, x: str, config: Config) -> str:
    """Apply self-attention with the keys of files."""
    with w.module("attention", "ViTSelfAttention"):
        count = heads(w, config, "query")
        query, key, value = (
            w.heads(w.linear(name, x), count) for name in ("query", "key", "value")
        )
        attended = w.merged(w.attention(query, key, value))
    return w.linear("output.dense", attended)


def self_attention(w: RecipeWriter, x: str, config: Config) -> str:
    """Apply self-attention with the keys in memory."""
    count = heads(w, config, "q_proj")
    query, key, value = (w.heads(w.linear(f"{name}_proj", x), count) for name in "qkv")
    return w.linear("o_proj", w.merged(w.attention(query, key, value)))
