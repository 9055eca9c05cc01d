"""CLIP: encoders of text and images with a shared embedding space."""

from __future__ import annotations

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import any_of
from burn_import.frontends.recipes.graph_writer import BATCH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.clip_encoders import (
    PATCHES,
    WORDS,
    text_model,
    vision_model,
)
from burn_ir.dim import symbol
from burn_ir.raw import RawModel

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
