"""T5 with random weights, against an implementation in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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

HIDDEN, WIDE, WORDS, COUNT, SIZE, ROWS, LAST = 12, 20, 30, 3, 5, 8, 20
EPS = 1e-6


def stack_shapes(at: str, decodes: bool, gated: bool) -> Shapes:
    """Return the shapes of a stack's weights."""
    inner, shapes = COUNT * SIZE, norm(f"{at}.final_layer_norm", HIDDEN, False)
    for number in range(3):
        kinds = ["SelfAttention"] + ["EncDecAttention"] * decodes
        for index, kind in enumerate(kinds):
            layer = f"{at}.block.{number}.layer.{index}"
            shapes |= norm(f"{layer}.layer_norm", HIDDEN, False)
            for name in "qkv":
                shapes |= linear(f"{layer}.{kind}.{name}", HIDDEN, inner, False)
            shapes |= linear(f"{layer}.{kind}.o", inner, HIDDEN, False)
        layer = f"{at}.block.{number}.layer.{len(kinds)}"
        shapes |= norm(f"{layer}.layer_norm", HIDDEN, False)
        for name in ("wi_0", "wi_1") if gated else ("wi",):
            shapes |= linear(f"{layer}.DenseReluDense.{name}", HIDDEN, WIDE, False)
        shapes |= linear(f"{layer}.DenseReluDense.wo", WIDE, HIDDEN, False)
    key = f"{at}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return shapes | {key: (ROWS, COUNT)}


def stack_reference(
    p: ReferenceWeights, x: Array, mask: Array, other: Array | None = None
) -> Array:
    """Return the hidden states of an encoder, or with ``other`` of a decoder."""
    table = p.get("block.0.layer.0.SelfAttention.relative_attention_bias.weight")
    rows = [
        [row(j - i, other is None) for j in range(x.shape[1])]
        for i in range(x.shape[1])
    ]
    bias = table[np.array(rows)].transpose(2, 0, 1)[None]
    own = np.ones(x.shape[:2]) if other is not None else mask
    bias = np.where(visible(own, causal=other is not None), bias, -1e30)
    for number in range(3):
        at = p.at(f"block.{number}.layer.0")
        y = at.rms("layer_norm", x, EPS)
        x = x + attention(at.at("SelfAttention"), y, y, bias)
        if other is not None:
            at = p.at(f"block.{number}.layer.1")
            y = at.rms("layer_norm", x, EPS)
            x = x + attention(at.at("EncDecAttention"), y, other, visible(mask))
        at = p.at(f"block.{number}.layer.{1 if other is None else 2}")
        x = x + network(at.at("DenseReluDense"), at.rms("layer_norm", x, EPS))
    return p.rms("final_layer_norm", x, EPS)


def row(distance: int, both: bool) -> int:
    """Return the bucket of a relative position, query minus key."""
    first, count = 0, ROWS
    if both:
        count = ROWS // 2
        first = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = count // 2
    if distance < exact:
        return first + distance
    share = np.log(distance / exact) / np.log(LAST / exact)
    return first + min(exact + int(share * (count - exact)), count - 1)


def attention(p: ReferenceWeights, x: Array, other: Array, mask: Array) -> Array:
    """Return attention to ``other``."""
    parts = [p.linear("q", x), p.linear("k", other), p.linear("v", other)]
    return p.linear("o", attend(parts, COUNT, mask, 1.0))


def network(p: ReferenceWeights, x: Array) -> Array:
    """Return the result of the MLP."""
    if p.has("wi.weight"):
        return p.linear("wo", np.maximum(p.linear("wi", x), 0))
    return p.linear("wo", gelu_tanh(p.linear("wi_0", x)) * p.linear("wi_1", x))


@pytest.mark.parametrize("gated", [False, True])
def test_t5(gated: bool, tmp_path: Path) -> None:
    shapes = stack_shapes("encoder", False, gated) | stack_shapes(
        "decoder", True, gated
    )
    shapes |= {"shared.weight": (WORDS, HIDDEN)}
    weights = drawn(shapes | (linear("lm_head", HIDDEN, WORDS, False) if gated else {}))
    config: dict[str, Any] = {"model_type": "t5", "tie_word_embeddings": not gated}
    config |= {"relative_attention_max_distance": LAST, "d_kv": SIZE}
    config |= {"feed_forward_proj": "gated-gelu" if gated else "relu"}
    model = loaded(tmp_path, weights, **config)
    p = ReferenceWeights(weights)
    table = p.get("shared.weight")
    for batch, length, behind in ((2, 5, 4), (3, 30, 23)):
        ids, mask = tokens(batch, length, 0)
        decoder_ids, _ = tokens(batch, behind, 0)
        x = stack_reference(p.at("encoder"), table[ids], mask)
        x = stack_reference(p.at("decoder"), table[decoder_ids], mask, x)
        x = p.linear("lm_head", x) if gated else x * HIDDEN**-0.5 @ table.T
        close(results(model, ids, mask, decoder_ids)[0], x)


def test_a_stack_by_itself(tmp_path: Path) -> None:
    words = {"m.encoder.embed_tokens.weight": (WORDS, HIDDEN)}
    weights = drawn(stack_shapes("m.encoder", False, False) | words)
    model = loaded(
        tmp_path, weights, model_type="t5", relative_attention_max_distance=LAST
    )
    p = ReferenceWeights(weights, "m.encoder.")
    for batch, length in ((2, 5), (3, 30)):
        ids, mask = tokens(batch, length, 0)
        x = stack_reference(p, p.get("embed_tokens.weight")[ids], mask)
        close(results(model, ids, mask)[0], x)
