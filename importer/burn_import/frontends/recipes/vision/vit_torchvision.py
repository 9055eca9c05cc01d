"""The vision transformer with the keys of torchvision."""

from math import isqrt

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import image
from burn_ir import InvalidModel
from burn_ir.raw import RawModel

EPS = 1e-6
#: The number of heads of published networks, by width.
HEADS = {768: 12, 1024: 16, 1280: 16}


@recipe(
    "vit (torchvision)",
    "VisionTransformer",
    "class_token",
    "conv_proj.weight",
    "encoder.pos_embedding",
    "encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
    "heads.head.weight",
    kinds=("vit",),
    is_configured=False,
)
def vit(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``VisionTransformer``: class scores."""
    width = w.shape("conv_proj.weight")[0]
    if width in HEADS:
        heads = config.get("num_attention_heads", HEADS[width])
    else:
        heads = config.required("num_attention_heads", 1)
    w.note(f"Weights do not tell the epsilon of norms, here {EPS:g}.")
    x = patches(w)
    with w.module("encoder", "Encoder"):
        x = w.add(x, w.weight("pos_embedding"))
        number = 0
        while w.has(f"layers.encoder_layer_{number}.ln_1.weight"):
            with w.module(f"layers.encoder_layer_{number}", "EncoderBlock"):
                x = block(w, x, heads)
            number += 1
        x = w.layer_norm("ln", x, EPS)
    x = w.op("Gather", x, 0, axis=1)
    if w.has("heads.pre_logits.weight"):
        x = w.op("Tanh", w.linear("heads.pre_logits", x))
    return w.model(w.linear("heads.head", x, LOGITS))


def patches(w: RecipeWriter) -> str:
    """Return the class token and patches.

    Raises:
        InvalidModel: the number of positions is not a square plus one.
    """
    count = w.shape("encoder.pos_embedding")[1] - 1
    side = isqrt(count)
    if side * side != count:
        raise InvalidModel(f"expected positions of a square of patches, got {count}")
    size = w.shape("conv_proj.weight")[-1]
    x = image(w, "conv_proj.weight", side * size, side * size)
    return w.after_token("class_token", w.patches("conv_proj", x, size))


def block(w: RecipeWriter, x: str, heads: int) -> str:
    """Apply one pre-norm layer of attention and MLP with residuals."""
    y = w.layer_norm("ln_1", x, EPS)
    with w.module("self_attention", "MultiheadAttention"):
        x = w.add(x, attention(w, y, heads))
    y = w.layer_norm("ln_2", x, EPS)
    with w.module("mlp", "MLPBlock"):
        first, last = ("0", "3") if w.has("0.weight") else ("linear_1", "linear_2")
        return w.add(w.linear(last, w.activation("gelu", w.linear(first, y))), x)


def attention(w: RecipeWriter, x: str, heads: int) -> str:
    """Apply self-attention with a packed projection of q, k and v."""
    transposed = w.op("Transpose", w.weight("in_proj_weight"), perm=(1, 0))
    x = w.add(w.op("MatMul", x, transposed), w.weight("in_proj_bias"))
    parts = w.many("Split", 3, x, axis=-1, num_outputs=3)
    query, key, value = (
        w.heads(part, heads, name)
        for part, name in zip(parts, ("query", "key", "value"), strict=True)
    )
    return w.linear("out_proj", w.merged(w.attention(query, key, value)))
