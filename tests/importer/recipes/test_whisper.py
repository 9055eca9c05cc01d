"""Whisper with random weights, against an implementation in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_ir import InvalidModel
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    Shapes,
    attend,
    close,
    drawn,
    gelu,
    linear,
    loaded,
    norm,
    results,
    tokens,
    visible,
)
from tests.modules import Array

HIDDEN, WIDE, WORDS, COUNT, BINS, PLACES = 12, 20, 30, 3, 6, 8
EPS = 1e-5
HEADS: dict[str, Any] = {
    "model_type": "whisper",
    "encoder_attention_heads": COUNT,
    "decoder_attention_heads": COUNT,
}


def layer_shapes(at: str, *kinds: str) -> Shapes:
    """Return the shapes of a layer with these attentions."""
    shapes: Shapes = {}
    for kind in kinds:
        shapes |= norm(f"{at}.{kind}_layer_norm", HIDDEN)
        for name in ("q", "k", "v", "out"):
            bias = name != "k"
            shapes |= linear(f"{at}.{kind}.{name}_proj", HIDDEN, HIDDEN, bias)
    shapes |= norm(f"{at}.final_layer_norm", HIDDEN)
    return (
        shapes | linear(f"{at}.fc1", HIDDEN, WIDE) | linear(f"{at}.fc2", WIDE, HIDDEN)
    )


def encoder_shapes(prefix: str) -> Shapes:
    """Return the shapes of the encoder's weights."""
    shapes: Shapes = {
        f"{prefix}conv1.weight": (HIDDEN, BINS, 3),
        f"{prefix}conv1.bias": (HIDDEN,),
        f"{prefix}conv2.weight": (HIDDEN, HIDDEN, 3),
        f"{prefix}conv2.bias": (HIDDEN,),
        f"{prefix}embed_positions.weight": (PLACES, HIDDEN),
        **norm(f"{prefix}layer_norm", HIDDEN),
    }
    for number in range(2):
        shapes |= layer_shapes(f"{prefix}layers.{number}", "self_attn")
    return shapes


def decoder_shapes(prefix: str) -> Shapes:
    """Return the shapes of the decoder's weights."""
    shapes: Shapes = {
        f"{prefix}embed_tokens.weight": (WORDS, HIDDEN),
        f"{prefix}embed_positions.weight": (16, HIDDEN),
        **norm(f"{prefix}layer_norm", HIDDEN),
    }
    for number in range(2):
        at = f"{prefix}layers.{number}"
        shapes |= layer_shapes(at, "self_attn", "encoder_attn")
    return shapes


def encoder_reference(p: ReferenceWeights, x: Array) -> Array:
    """Return the hidden states of a spectrogram."""
    x = gelu(convolved(p.at("conv1"), x, 1))
    x = gelu(convolved(p.at("conv2"), x, 2)).swapaxes(1, 2)
    x = x + p.get("embed_positions.weight")
    for number in range(2):
        at = p.at(f"layers.{number}")
        y = at.norm("self_attn_layer_norm", x, EPS)
        x = x + attention(at.at("self_attn"), y, y, None)
        x = x + network(at, x)
    return p.norm("layer_norm", x, EPS)


def convolved(p: ReferenceWeights, x: Array, stride: int) -> Array:
    """Return the result of a convolution with kernel 3 and zero padding."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    places = range(0, x.shape[2] - 2, stride)
    windows = np.stack([x[:, :, at : at + 3] for at in places], 1)
    result = np.einsum("blck,ock->bol", windows, p.get("weight"))
    return np.asarray(result + p.get("bias")[:, None])


def decoder_reference(
    p: ReferenceWeights, ids: Array, mask: Array, other: Array
) -> Array:
    """Return the hidden states of tokens."""
    places = p.get("embed_positions.weight")[: ids.shape[1]]
    x = p.get("embed_tokens.weight")[ids] + places
    for number in range(2):
        at = p.at(f"layers.{number}")
        y = at.norm("self_attn_layer_norm", x, EPS)
        x = x + attention(at.at("self_attn"), y, y, visible(mask, causal=True))
        y = at.norm("encoder_attn_layer_norm", x, EPS)
        x = x + attention(at.at("encoder_attn"), y, other, None)
        x = x + network(at, x)
    return p.norm("layer_norm", x, EPS)


def attention(p: ReferenceWeights, x: Array, other: Array, mask: Array | None) -> Array:
    """Return attention to ``other``."""
    parts = p.linear("q_proj", x), p.linear("k_proj", other), p.linear("v_proj", other)
    return p.linear("out_proj", attend(parts, COUNT, mask))


def network(p: ReferenceWeights, x: Array) -> Array:
    """Return the result of the MLP."""
    return p.linear("fc2", gelu(p.linear("fc1", p.norm("final_layer_norm", x, EPS))))


def spectrogram(batch: int) -> Array:
    """Return random features of sounds."""
    rng = np.random.default_rng(batch)
    return rng.normal(size=(batch, BINS, 2 * PLACES)).astype(np.float32)


def test_speech_to_text(tmp_path: Path) -> None:
    shapes = encoder_shapes("model.encoder.") | decoder_shapes("model.decoder.")
    weights = drawn(shapes)
    model = loaded(tmp_path, weights, **HEADS)
    p = ReferenceWeights(weights, "model.")
    for batch, length in ((2, 5), (3, 9)):
        sound, (ids, mask) = spectrogram(batch), tokens(batch, length, 0)
        x = encoder_reference(p.at("encoder"), sound)
        x = decoder_reference(p.at("decoder"), ids, mask, x)
        expected = x @ p.get("decoder.embed_tokens.weight").T
        close(results(model, sound, ids, mask)[0], expected)


@pytest.mark.parametrize("prefix", ["", "model.encoder."])
def test_an_encoder_by_itself(prefix: str, tmp_path: Path) -> None:
    weights = drawn(encoder_shapes(prefix))
    model = loaded(tmp_path, weights, **HEADS)
    for batch in (2, 3):
        sound = spectrogram(batch)
        close(
            results(model, sound)[0],
            encoder_reference(ReferenceWeights(weights, prefix), sound),
        )


def test_a_decoder_by_itself_scales_if_asked_to(tmp_path: Path) -> None:
    weights = drawn(decoder_shapes("decoder."))
    model = loaded(tmp_path, weights, scale_embedding=True, **HEADS)
    key = "decoder.embed_tokens.weight"
    scaled = weights | {key: weights[key] * np.float32(HIDDEN**0.5)}
    rng = np.random.default_rng(3)
    for batch, length in ((2, 5), (3, 9)):
        ids, mask = tokens(batch, length, 0)
        other = rng.normal(size=(batch, length + 1, HIDDEN)).astype(np.float32)
        expected = decoder_reference(
            ReferenceWeights(scaled, "decoder."), ids, mask, other
        )
        close(results(model, ids, other, mask)[0], expected)


def test_sounds_of_another_length_are_refused(tmp_path: Path) -> None:
    weights = drawn(encoder_shapes("model.encoder."))
    path = saved(
        tmp_path,
        weights,
        model_type="whisper",
        max_source_positions=1500,
        num_mel_bins=80,
    )
    with pytest.raises(InvalidModel) as caught:
        read(path)
    assert "'max_source_positions': expected 8" in str(caught.value)
    assert "'num_mel_bins': expected 6" in str(caught.value)
