"""CLIP: encoders of text and images with a shared embedding space."""

from math import isqrt

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import (
    Fact,
    agree,
    any_of,
    extent,
    heads,
    length,
)
from burn_import.frontends.recipes.graph_writer import BATCH, LENGTH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_ir import InvalidModel
from burn_ir.dim import Dim, symbol
from burn_ir.raw import RawModel

#: The default ``eos_token_id``. The first configurations have 2 and mean the last token
#: of the vocabulary.
EARLY = 2
WORDS = "embeddings.token_embedding.weight"
PATCHES = "embeddings.patch_embedding.weight"
PLACES = "embeddings.position_embedding.weight"


def text_model(w: RecipeWriter, config: Config, batch: Dim) -> tuple[str, str]:
    """Return the hidden states of texts, and those of their end tokens."""
    ids = w.input("input_ids", "int64", batch, LENGTH)
    mask = w.padding_mask(w.input("attention_mask", "int64", batch, LENGTH))
    with w.module("text_model", "CLIPTextTransformer"):
        agree(
            config,
            vocab_size=extent(w, WORDS, 0),
            max_position_embeddings=extent(w, PLACES, 0),
            **sizes(w),
        )
        w.weights.ignore(w.key("embeddings.position_ids"))
        with w.module("embeddings", "CLIPTextEmbeddings"):
            places = w.op("Unsqueeze", w.positions(ids), [0])
            x = w.embedding("token_embedding", ids)
            x = w.add(x, w.embedding("position_embedding", places))
        x = encoder(w, config, x, mask)
        x = w.layer_norm("final_layer_norm", x, config.get("layer_norm_eps", 1e-5))
        end = config.get("eos_token_id", EARLY)
        if end != EARLY:
            ids = w.op("Cast", w.op("Equal", ids, end), to=7)
        ends = w.op("ArgMax", ids, axis=-1, keepdims=1)
        return x, w.op("GatherND", x, ends, batch_dims=1)


def vision_model(w: RecipeWriter, config: Config, batch: Dim) -> tuple[str, str]:
    """Return the hidden states of images, and the normalized class token."""
    with w.module("vision_model", "CLIPVisionTransformer"):
        eps = config.get("layer_norm_eps", 1e-5)
        x = vision_embeddings(w, config, batch)
        x = encoder(w, config, w.layer_norm("pre_layrnorm", x, eps))
        first = w.op("Gather", x, 0, axis=1)
        return x, w.layer_norm("post_layernorm", first, eps)


def vision_embeddings(w: RecipeWriter, config: Config, batch: Dim) -> str:
    """Return the class token and patches with position embeddings."""
    extent(w, PATCHES, 3)
    _, channels, *size = w.shape(PATCHES)
    count = w.shape(PLACES)[0] - 1
    side = isqrt(count)
    if side * side != count:
        raise InvalidModel(f"expected positions of a square of patches, got {count}")
    extents = [side * each for each in size]
    clause = f"there are {count} patches of {size}"
    agree(
        config,
        patch_size=extent(w, PATCHES, 2),
        image_size=Fact(extents[0], clause),
        **sizes(w),
    )
    w.weights.ignore(w.key("embeddings.position_ids"))
    pixels = w.input("pixel_values", "float32", batch, channels, *extents)
    with w.module("embeddings", "CLIPVisionEmbeddings"):
        patches = w.patches("patch_embedding", pixels, size[0])
        x = w.after_token("class_embedding", patches)
        return w.add(x, w.weight("position_embedding.weight"))


def sizes(w: RecipeWriter) -> dict[str, Fact]:
    """Return the sizes that the layers of both encoders have."""
    first = "encoder.layers.0"
    return {
        "hidden_size": extent(w, f"{first}.self_attn.q_proj.weight", 1),
        "intermediate_size": extent(w, f"{first}.mlp.fc1.weight", 0),
        "num_hidden_layers": length(w, "encoder.layers"),
    }


def encoder(w: RecipeWriter, config: Config, x: str, mask: str | None = None) -> str:
    """Apply layers of attention and MLP; causal if there is a mask."""
    eps = config.get("layer_norm_eps", 1e-5)
    with w.module("encoder", "CLIPEncoder"):
        for number in range(w.count("layers")):
            with w.module(f"layers.{number}", "CLIPEncoderLayer"):
                y = w.layer_norm("layer_norm1", x, eps)
                with w.module("self_attn", "CLIPAttention"):
                    y = self_attention(w, config, y, mask)
                x = w.add(x, y)
                y = w.layer_norm("layer_norm2", x, eps)
                with w.module("mlp", "CLIPMLP"):
                    act = config.get("hidden_act", "quick_gelu")
                    y = w.linear("fc2", w.activation(act, w.linear("fc1", y)))
                x = w.add(x, y)
    return x


def self_attention(w: RecipeWriter, config: Config, x: str, mask: str | None) -> str:
    """Apply self-attention; causal if there is a mask."""
    count = heads(w, config, "q_proj")
    query, key, value = (w.heads(w.linear(f"{n}_proj", x), count) for n in "qkv")
    attended = w.attention(query, key, value, mask, causal=mask is not None)
    return w.linear("out_proj", w.merged(attended))


TEXT, IMAGES = symbol("texts"), symbol("images")
#: Entries that weights determine, and those of an encoder that is absent.
SUPPORTS = any_of(
    *("logit_scale_init_value", "num_channels", "projection_dim", "text_config"),
    *("text_config_dict", "vision_config", "vision_config_dict"),
)


@recipe(
    "clip (vision)",
    "CLIPVisionModel",
    f"vision_model.{PATCHES}",
    "vision_model.pre_layrnorm.weight",
    kinds=("clip_vision_model", "clip"),
    supports=SUPPORTS,
)
@recipe(
    "clip",
    "CLIPTextModel",
    f"text_model.{WORDS}",
    "text_model.encoder.layers.0.self_attn.q_proj.weight",
    kinds=("clip", "clip_text_model"),
    supports=SUPPORTS,
)
def clip(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of the text or image encoder, or of both with similarities."""
    texts, images = w.inside("text_model"), w.inside("vision_model")
    if texts and images:
        w.called("CLIPModel")
        text = projected(w, "text", text_model(w, config.part("text_config"), TEXT)[1])
        pooled = vision_model(w, config.part("vision_config"), IMAGES)[1]
        return compared(w, text, projected(w, "visual", pooled))
    if texts:
        name, key, output = "CLIPTextModel", "text", "text_embeds"
        x, pooled = text_model(w, config.part("text_config"), BATCH)
    else:
        name, key, output = "CLIPVisionModel", "visual", "image_embeds"
        x, pooled = vision_model(w, config.part("vision_config"), BATCH)
    if not w.has(f"{key}_projection.weight"):
        w.called(name)
        return w.model(last_hidden_state=x, pooler_output=pooled)
    w.called(f"{name}WithProjection")
    return w.model(**{output: projected(w, key, pooled), "last_hidden_state": x})


def projected(w: RecipeWriter, name: str, x: str) -> str:
    """Return the embedding of a text or an image in the shared space."""
    return w.linear(f"{name}_projection", x)


def compared(w: RecipeWriter, text: str, image: str) -> RawModel:
    """Return the model of similarities between texts and images."""
    text, image = (
        w.op("Div", x, w.op("ReduceL2", x, [-1], keepdims=1)) for x in (text, image)
    )
    scale = w.op("Exp", w.weight("logit_scale"))
    product = w.op("MatMul", text, w.op("Transpose", image, perm=(1, 0)))
    per_text = w.op("Mul", product, scale)
    return w.model(
        logits_per_image=w.op("Transpose", per_text, perm=(1, 0)),
        logits_per_text=per_text,
        text_embeds=text,
        image_embeds=image,
    )
