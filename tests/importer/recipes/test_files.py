"""Files in practice: narrow floats, old names, unused weights."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.text.rope import frequencies
from burn_import.pipeline import import_model
from tests.importer.recipes import (
    test_encoders as encoders,
    test_rotary as rotary,
    test_t5 as t5,
)
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    close,
    drawn,
    loaded,
    results,
    tokens,
)
from tests.modules import Array

DECODER: dict[str, Any] = {
    "model_type": "llama",
    "num_attention_heads": rotary.COUNT,
    "head_dim": rotary.SIZE,
}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_become_float32(dtype: Any, tmp_path: Path) -> None:
    family = rotary.FAMILIES["llama"]
    narrow = {k: v.astype(dtype) for k, v in rotary.weights_of(family).items()}
    path = saved(tmp_path, narrow, **DECODER)
    note = f"The file has weights of {np.dtype(dtype).name}; they are float32 here"
    assert note in " ".join(import_model(path).text.split())
    wide = {key: array.astype(np.float32) for key, array in narrow.items()}
    model = loaded(tmp_path, narrow, wide, **DECODER)
    p = ReferenceWeights(wide)
    ids, mask = tokens(2, 5, 0)
    expected = rotary.decoder_reference(p.at("model"), family, ids, mask)
    close(results(model, ids, mask)[0], p.linear("lm_head", expected))


def test_the_first_names_of_norms_are_known(tmp_path: Path) -> None:
    weights = drawn(encoders.bert_shapes("bert."))
    old = {
        key.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
        for key, v in weights.items()
    }
    assert old.keys() != weights.keys()
    loaded(tmp_path, old, weights, model_type="bert", num_attention_heads=2)


def test_angles_in_the_file_are_left_out(tmp_path: Path) -> None:
    weights = rotary.weights_of(rotary.FAMILIES["llama"])
    old: dict[str, Array] = dict(weights)
    for number in range(3):
        key = f"model.layers.{number}.self_attn.rotary_emb.inv_freq"
        old[key] = np.ones(rotary.SIZE // 2, np.float32)
    actual = read(saved(tmp_path, old, **DECODER)).graph.constants
    assert set(actual) - set(weights) == {"model.rotary_emb.inv_freq"}


def test_distances_that_nobody_reads_are_left_out(tmp_path: Path) -> None:
    shapes = t5.stack_shapes("decoder", True, False)
    shapes |= {"shared.weight": (t5.WORDS, t5.HIDDEN)}
    weights = drawn(shapes)
    unread = (
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
        "decoder.embed_tokens.weight",
    )
    old = weights | dict.fromkeys(unread, np.ones((2, 3), np.float32))
    assert set(read(saved(tmp_path, old, model_type="t5")).graph.constants) == set(
        weights
    )


def test_angles_are_scaled_as_configured() -> None:
    plain = 1e4 ** -(np.arange(0, 8, 2) / 8)
    actual = frequencies(Config({"rope_scaling": {"type": "linear", "factor": 4}}), 8)
    np.testing.assert_allclose(actual, plain / 4, rtol=1e-6)
    settings = {
        "rope_type": "llama3",
        "rope_theta": 1e4,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256,
    }
    actual = frequencies(Config({"rope_parameters": settings}), 8)
    # Wavelengths of 6.3, 63, 630 and 6300 positions: those longer than 256 are scaled,
    # those shorter than 256 / 4 are kept.
    expected = [plain[0], plain[1], plain[2] / 8, plain[3] / 8]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    settings["original_max_position_embeddings"] = 128
    actual = frequencies(Config({"rope_parameters": settings}), 8)
    share = (128 * plain[1] / (2 * np.pi) - 1) / 3
    mixed = (1 - share) * plain[1] / 8 + share * plain[1]
    np.testing.assert_allclose(actual[1], mixed, rtol=1e-6)
