"""Llama, Gemma and similar decoders with random weights, against NumPy."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    gelu_tanh,
    linear,
    loaded,
    norm,
    results,
    tokens,
    visible,
)
from tests.modules import Array

HIDDEN, WIDE, WORDS, SIZE, COUNT, GROUPS = 12, 20, 30, 6, 4, 2
EPS = 1e-6
SIZES = ((2, 5), (3, 9))


@dataclass(frozen=True)
class Family:
    """The differences between kinds of decoders."""

    config: Mapping[str, Any]
    plus: float = 0.0
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    windows: tuple[int, ...] = (0, 0, 0)
    thetas: tuple[float, ...] = (1e4, 1e4, 1e4)
    scalar: float = SIZE
    caps: tuple[float, float] = (0, 0)
    normed: bool = False
    bias: bool = False
    head: bool = False


FOUR = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
FAMILIES = {
    "llama": Family({}, head=True),
    "mistral": Family({"model_type": "mistral", "sliding_window": 3}, windows=(3,) * 3),
    "qwen2": Family(
        {
            "model_type": "qwen2",
            "use_sliding_window": True,
            "max_window_layers": 2,
            "sliding_window": 3,
        },
        windows=(0, 0, 3),
        bias=True,
    ),
    "qwen3": Family(
        {"rope_parameters": {"rope_theta": 1e6}}, thetas=(1e6,) * 3, normed=True
    ),
    "gemma": Family({"model_type": "gemma", "hidden_act": "gelu"}, plus=1.0),
    "gemma2": Family(
        {
            "sliding_window": 3,
            "query_pre_attn_scalar": 5,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 1.5,
        },
        1.0,
        FOUR,
        (3, 0, 3),
        scalar=5,
        caps=(2.0, 1.5),
    ),
    "gemma3": Family(
        {
            "model_type": "gemma3_text",
            "sliding_window": 3,
            "sliding_window_pattern": 2,
            "query_pre_attn_scalar": SIZE,
        },
        1.0,
        FOUR,
        (3, 0, 3),
        (1e4, 1e6, 1e4),
        normed=True,
    ),
}


def weights_of(family: Family, prefix: str = "model.") -> dict[str, Array]:
    """Return random weights of a decoder."""
    shapes: Shapes = {f"{prefix}embed_tokens.weight": (WORDS, HIDDEN)}
    shapes |= norm(f"{prefix}norm", HIDDEN, bias=False)
    for number in range(3):
        at = f"{prefix}layers.{number}"
        for name in family.norms:
            shapes |= norm(f"{at}.{name}", HIDDEN, bias=False)
        for name, heads in (("q", COUNT), ("k", GROUPS), ("v", GROUPS)):
            out = heads * SIZE
            shapes |= linear(f"{at}.self_attn.{name}_proj", HIDDEN, out, family.bias)
        shapes |= linear(f"{at}.self_attn.o_proj", COUNT * SIZE, HIDDEN, False)
        for name in ("q", "k") if family.normed else ():
            shapes |= norm(f"{at}.self_attn.{name}_norm", SIZE, bias=False)
        shapes |= linear(f"{at}.mlp.gate_proj", HIDDEN, WIDE, False)
        shapes |= linear(f"{at}.mlp.up_proj", HIDDEN, WIDE, False)
        shapes |= linear(f"{at}.mlp.down_proj", WIDE, HIDDEN, False)
    if family.head:
        shapes |= linear("lm_head", HIDDEN, WORDS, False)
    return drawn(shapes)


def decoder_reference(
    p: ReferenceWeights, family: Family, ids: Array, mask: Array
) -> Array:
    """Return a decoder's hidden states."""
    x = p.get("embed_tokens.weight")[ids]
    x = x * HIDDEN**0.5 if family.plus else x
    for number in range(3):
        at = p.at(f"layers.{number}")
        y = at.rms("input_layernorm", x, EPS, family.plus)
        y = attention(at.at("self_attn"), family, y, mask, number)
        if family.norms == FOUR:
            y = at.rms("post_attention_layernorm", y, EPS, family.plus)
        x = x + y
        y = at.rms(family.norms[2 if family.norms == FOUR else 1], x, EPS, family.plus)
        gate = at.linear("mlp.gate_proj", y)
        gate = gelu_tanh(gate) if family.plus else gate / (1 + np.exp(-gate))
        y = at.linear("mlp.down_proj", gate * at.linear("mlp.up_proj", y))
        if family.norms == FOUR:
            y = at.rms("post_feedforward_layernorm", y, EPS, family.plus)
        x = x + y
    return p.rms("norm", x, EPS, family.plus)


def attention(
    p: ReferenceWeights, family: Family, x: Array, mask: Array, number: int
) -> Array:
    """Return the attention of a layer."""
    seen, length = visible(mask, causal=True), x.shape[1]
    if family.windows[number]:
        places = np.arange(length)
        seen = seen & (places[:, None] - places < family.windows[number])
    parts = []
    for name, heads in (("q", COUNT), ("k", GROUPS), ("v", GROUPS)):
        part = p.linear(f"{name}_proj", x).reshape(*x.shape[:2], heads, SIZE)
        if name != "v":
            if family.normed:
                part = p.rms(f"{name}_norm", part, EPS, family.plus)
            part = rotated(part, family.thetas[number])
        parts.append(np.repeat(part, COUNT // heads, 2).reshape(*x.shape[:2], -1))
    scale, bound = family.scalar**-0.5, family.caps[0]
    return p.linear("o_proj", attend(parts, COUNT, seen, scale, bound))


def rotated(x: Array, theta: float) -> Array:
    """Return heads ``[batch, length, heads, size]`` rotated by their positions."""
    turns = theta ** (-np.arange(0, SIZE, 2) / SIZE)
    angles = np.arange(x.shape[1])[:, None, None] * turns
    first, second = np.split(x, 2, -1)
    cos, sin = np.cos(angles), np.sin(angles)
    halves = first * cos - second * sin, second * cos + first * sin
    return np.concatenate(halves, -1)


@pytest.mark.parametrize("name", FAMILIES)
def test_decoder(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    weights = weights_of(family)
    config: dict[str, Any] = {
        "model_type": name,
        "num_attention_heads": COUNT,
        "head_dim": SIZE,
    }
    config |= family.config
    model = loaded(tmp_path, weights, **config)
    p = ReferenceWeights(weights)
    table = p.get("lm_head.weight" if family.head else "model.embed_tokens.weight")
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, 0)
        expected = decoder_reference(p.at("model"), family, ids, mask) @ table.T
        if family.caps[1]:
            expected = np.tanh(expected / family.caps[1]) * family.caps[1]
        close(results(model, ids, mask)[0], expected)


def test_without_a_prefix_there_are_hidden_states(tmp_path: Path) -> None:
    family = FAMILIES["qwen3"]
    weights = weights_of(family, "")
    model = loaded(tmp_path, weights, model_type="qwen3", rope_theta=1e6)
    ids, mask = tokens(2, 5, 0)
    close(
        results(model, ids, mask)[0],
        decoder_reference(ReferenceWeights(weights), family, ids, mask),
    )


def test_heads_have_to_share_what_there_is(tmp_path: Path) -> None:
    weights = weights_of(FAMILIES["llama"])
    given: dict[str, Any] = {"model_type": "llama", "head_dim": SIZE}
    given |= {"num_attention_heads": 3, "num_key_value_heads": 2}
    with pytest.raises(InvalidModel, match=r"'num_attention_heads': expected 4, since"):
        read(saved(tmp_path, weights, **given))
    given |= {"num_attention_heads": 4, "num_key_value_heads": 3, "vocab_size": 31}
    with pytest.raises(InvalidModel) as caught:
        read(saved(tmp_path, weights, **given))
    assert "'num_key_value_heads': expected 2" in str(caught.value)
    assert "'vocab_size': expected 30" in str(caught.value)
