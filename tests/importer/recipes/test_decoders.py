"""Decoders of text with random weights, against implementations in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_ir import UnsupportedModel
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    Shapes,
    attend,
    close,
    drawn,
    gelu_tanh,
    loaded,
    norm,
    results,
    tokens,
    visible,
)
from tests.modules import Array

HIDDEN, WIDE, WORDS, COUNT, EPS = 12, 20, 30, 3, 1e-5
SIZES = ((2, 5), (3, 9))


def gpt2_weights(prefix: str) -> dict[str, Array]:
    """Return random weights of GPT-2, with the masks that old files contain."""
    shapes: Shapes = {
        f"{prefix}wte.weight": (WORDS, HIDDEN),
        f"{prefix}wpe.weight": (16, HIDDEN),
        **norm(f"{prefix}ln_f", HIDDEN),
    }
    for number in range(2):
        at = f"{prefix}h.{number}"
        shapes |= norm(f"{at}.ln_1", HIDDEN) | norm(f"{at}.ln_2", HIDDEN)
        for name, size, out in (
            ("attn.c_attn", HIDDEN, 3 * HIDDEN),
            ("attn.c_proj", HIDDEN, HIDDEN),
            ("mlp.c_fc", HIDDEN, WIDE),
            ("mlp.c_proj", WIDE, HIDDEN),
        ):
            shapes |= {f"{at}.{name}.weight": (size, out), f"{at}.{name}.bias": (out,)}
    return drawn(shapes)


def gpt2_reference(
    p: ReferenceWeights, ids: Array, mask: Array, scales: tuple[float, ...]
) -> Array:
    """Return GPT-2's hidden states."""
    x = p.get("wte.weight")[ids] + p.get("wpe.weight")[: ids.shape[1]]
    for number in range(2):
        at = p.at(f"h.{number}")
        parts = np.split(turned(at, "attn.c_attn", at.norm("ln_1", x, EPS)), 3, -1)
        y = attend(parts, COUNT, visible(mask, causal=True), scales[number])
        x = x + turned(at, "attn.c_proj", y)
        y = gelu_tanh(turned(at, "mlp.c_fc", at.norm("ln_2", x, EPS)))
        x = x + turned(at, "mlp.c_proj", y)
    return p.norm("ln_f", x, EPS)


def turned(p: ReferenceWeights, name: str, x: Array) -> Array:
    """Return the result of a ``Conv1D``."""
    return np.asarray(x @ p.get(f"{name}.weight") + p.get(f"{name}.bias"))


@pytest.mark.parametrize(
    ("prefix", "headed", "config"),
    [
        ("transformer.", True, {}),
        ("", True, {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}),
        ("", False, {"scale_attn_by_inverse_layer_idx": True}),
    ],
)
def test_gpt2(
    prefix: str, headed: bool, config: dict[str, Any], tmp_path: Path
) -> None:
    weights = gpt2_weights(prefix)
    given: dict[str, Any] = {"model_type": "gpt2", "n_head": COUNT} | config
    model = loaded(tmp_path, weights, **given)
    p, usual = ReferenceWeights(weights, prefix), (HIDDEN // COUNT) ** -0.5
    scales = usual, usual / (2 if "scale_attn_by_inverse_layer_idx" in config else 1)
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, WORDS)
        x = gpt2_reference(p, ids, mask, scales)
        expected = x @ p.get("wte.weight").T if headed else x
        close(results(model, ids, mask)[0], expected)


def test_masks_of_old_files_are_left_out(tmp_path: Path) -> None:
    weights = gpt2_weights("")
    weights["h.0.attn.bias"] = np.tril(np.ones((1, 1, 16, 16), np.float32))
    weights["h.0.attn.masked_bias"] = np.array(-1e4, np.float32)
    constants = read(
        saved(tmp_path, weights, model_type="gpt2", n_head=COUNT)
    ).graph.constants
    assert set(weights) - set(constants) == {
        "h.0.attn.bias",
        "h.0.attn.masked_bias",
    }


def test_a_head_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        gpt2_weights("transformer."),
        model_type="gpt2",
        n_head=COUNT,
        tie_word_embeddings=False,
    )
    with pytest.raises(
        UnsupportedModel, match=r"'tie_word_embeddings'.*'lm_head\.weight'"
    ):
        read(path)
