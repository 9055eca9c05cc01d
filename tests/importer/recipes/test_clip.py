"""CLIP with random weights, against an implementation in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    Shapes,
    attend,
    close,
    drawn,
    linear,
    loaded,
    norm,
    results,
    tokens,
    visible,
)
from tests.modules import Array

HIDDEN, WIDE, WORDS, COUNT, SIZE, SIDE, OUT, EPS = 12, 20, 30, 3, 4, 3, 7, 1e-5
TEXT, VISION = "text_model.embeddings", "vision_model.embeddings"
HEADS: dict[str, Any] = {"num_attention_heads": COUNT}


def layer_shapes(at: str) -> Shapes:
    """Return the shapes of an encoder's layers."""
    shapes: Shapes = {}
    for number in range(2):
        layer = f"{at}.encoder.layers.{number}"
        for name in ("q", "k", "v", "out"):
            shapes |= linear(f"{layer}.self_attn.{name}_proj", HIDDEN, HIDDEN)
        shapes |= norm(f"{layer}.layer_norm1", HIDDEN)
        shapes |= norm(f"{layer}.layer_norm2", HIDDEN)
        shapes |= linear(f"{layer}.mlp.fc1", HIDDEN, WIDE)
        shapes |= linear(f"{layer}.mlp.fc2", WIDE, HIDDEN)
    return shapes


def text_shapes() -> Shapes:
    """Return the shapes of the text encoder's weights."""
    shapes: Shapes = {
        f"{TEXT}.token_embedding.weight": (WORDS, HIDDEN),
        f"{TEXT}.position_embedding.weight": (16, HIDDEN),
    }
    shapes |= norm("text_model.final_layer_norm", HIDDEN)
    return shapes | layer_shapes("text_model")


def vision_shapes() -> Shapes:
    """Return the shapes of the image encoder's weights."""
    shapes: Shapes = {
        f"{VISION}.class_embedding": (HIDDEN,),
        f"{VISION}.patch_embedding.weight": (HIDDEN, 2, SIZE, SIZE),
        f"{VISION}.position_embedding.weight": (SIDE * SIDE + 1, HIDDEN),
    }
    shapes |= norm("vision_model.pre_layrnorm", HIDDEN)
    shapes |= norm("vision_model.post_layernorm", HIDDEN)
    return shapes | layer_shapes("vision_model")


def encoded(p: ReferenceWeights, x: Array, mask: Array | None = None) -> Array:
    """Return the result of an encoder's layers."""
    for number in range(2):
        at = p.at(f"encoder.layers.{number}")
        y = at.norm("layer_norm1", x, EPS)
        parts = (at.linear(f"self_attn.{n}_proj", y) for n in "qkv")
        x = x + at.linear("self_attn.out_proj", attend(parts, COUNT, mask))
        y = at.linear("mlp.fc1", at.norm("layer_norm2", x, EPS))
        x = x + at.linear("mlp.fc2", y / (1 + np.exp(-1.702 * y)))
    return x


def text_reference(
    p: ReferenceWeights, ids: Array, mask: Array, ends: Array
) -> tuple[Array, Array]:
    """Return the hidden states of texts, and those at ``ends``."""
    places = p.get("embeddings.position_embedding.weight")[: ids.shape[1]]
    x = p.get("embeddings.token_embedding.weight")[ids] + places
    x = encoded(p, x, visible(mask, causal=True))
    x = p.norm("final_layer_norm", x, EPS)
    return x, x[np.arange(len(ends)), ends]


def vision_reference(p: ReferenceWeights, pixels: Array) -> tuple[Array, Array]:
    """Return the hidden states of images, and the normalized class tokens."""
    grid = pixels.reshape(len(pixels), 2, SIDE, SIZE, SIDE, SIZE)
    kernel = p.get("embeddings.patch_embedding.weight")
    rows = np.einsum("bchiwj,ocij->bhwo", grid, kernel).reshape(len(pixels), -1, HIDDEN)
    first = np.broadcast_to(p.get("embeddings.class_embedding"), rows[:, :1].shape)
    x = np.concatenate([first, rows], 1)
    x = x + p.get("embeddings.position_embedding.weight")
    x = encoded(p, p.norm("pre_layrnorm", x, EPS))
    return x, p.norm("post_layernorm", x[:, 0], EPS)


def texts(batch: int, length: int, end: int) -> tuple[Array, Array, Array]:
    """Return tokens, their mask, and where each text ends."""
    ids, mask = tokens(batch, length, 0)
    ids[ids == end] = 3
    ends = np.arange(batch) % (length - 3) + 1
    ids[np.arange(batch), ends] = end
    return ids, mask, ends


def pictures(count: int) -> Array:
    """Return random images."""
    rng = np.random.default_rng(count)
    shape = count, 2, SIDE * SIZE, SIDE * SIZE
    return rng.normal(size=shape).astype(np.float32)


def test_texts_and_images_are_compared(tmp_path: Path) -> None:
    shapes = text_shapes() | vision_shapes() | {"logit_scale": ()}
    shapes |= linear("text_projection", HIDDEN, OUT, False)
    weights = drawn(shapes | linear("visual_projection", HIDDEN, OUT, False))
    weights[f"{TEXT}.position_ids"] = np.arange(16)[None]
    config = {
        "model_type": "clip",
        "text_config": {"eos_token_id": 5, **HEADS},
        "vision_config": HEADS,
    }
    path = saved(tmp_path, weights, **config)
    del weights[f"{TEXT}.position_ids"]
    assert f"{TEXT}.position_ids" not in read(path).graph.constants
    p = ReferenceWeights(weights)
    stored = {key: array for key, array in weights.items() if array.ndim}
    model = loaded(tmp_path, weights, stored, **config)
    for count, length, images in ((2, 5, 3), (3, 9, 1)):
        (ids, mask, ends), pixels = texts(count, length, 5), pictures(images)
        pooled = text_reference(p.at("text_model"), ids, mask, ends)[1]
        text = unit(p.linear("text_projection", pooled))
        pooled = vision_reference(p.at("vision_model"), pixels)[1]
        image = unit(p.linear("visual_projection", pooled))
        per_text = text @ image.T * np.exp(p.get("logit_scale"))
        result = results(model, ids, mask, pixels)
        for got, expected in zip(
            result, (per_text.T, per_text, text, image), strict=True
        ):
            close(got, expected)


def unit(x: Array) -> Array:
    """Return rows of length 1."""
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


@pytest.mark.parametrize("head", [False, True])
def test_texts(head: bool, tmp_path: Path) -> None:
    shapes = text_shapes()
    shapes |= linear("text_projection", HIDDEN, OUT, False) if head else {}
    weights = drawn(shapes)
    model = loaded(tmp_path, weights, model_type="clip_text_model", **HEADS)
    p = ReferenceWeights(weights)
    for count, length in ((2, 5), (3, 9)):
        ids, mask, ends = texts(count, length, WORDS - 1)
        x, pooled = text_reference(p.at("text_model"), ids, mask, ends)
        result = results(model, ids, mask)
        close(result[1 if head else 0], x)
        close(
            result[0 if head else 1],
            p.linear("text_projection", pooled) if head else pooled,
        )


@pytest.mark.parametrize("head", [False, True])
def test_images(head: bool, tmp_path: Path) -> None:
    shapes = vision_shapes()
    shapes |= linear("visual_projection", HIDDEN, OUT, False) if head else {}
    weights = drawn(shapes)
    model = loaded(tmp_path, weights, model_type="clip", vision_config=HEADS)
    p = ReferenceWeights(weights)
    for count in (2, 3):
        pixels = pictures(count)
        x, pooled = vision_reference(p.at("vision_model"), pixels)
        result = results(model, pixels)
        close(result[1 if head else 0], x)
        close(
            result[0 if head else 1],
            p.linear("visual_projection", pooled) if head else pooled,
        )


def test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    weights = drawn(vision_shapes())
    config: dict[str, Any] = {
        "model_type": "clip",
        "vision_config": {"image_size": 224, **HEADS},
    }
    with pytest.raises(
        InvalidModel, match=r"'image_size': expected 12, since.*got 224"
    ):
        read(saved(tmp_path, weights, **config))
    key = f"{VISION}.position_embedding.weight"
    weights[key] = weights[key][:-1]
    with pytest.raises(InvalidModel, match="a square of patches, got 8"):
        read(saved(tmp_path, weights, model_type="clip"))


def test_each_part_says_what_was_assumed(tmp_path: Path) -> None:
    shapes = text_shapes() | vision_shapes() | {"logit_scale": ()}
    shapes |= linear("text_projection", HIDDEN, OUT, False)
    weights = drawn(shapes | linear("visual_projection", HIDDEN, OUT, False))
    config = {"model_type": "clip", "text_config": HEADS, "vision_config": HEADS}
    text = " ".join(import_model(saved(tmp_path, weights, **config)).text.split())
    assert "text_config.layer_norm_eps 1e-05" in text
    assert "vision_config.layer_norm_eps 1e-05" in text
