"""Rotary angles scaled for long texts, and text classes, against NumPy."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_ir import InvalidModel
from tests.importer.recipes import test_decoders as decoders, test_rotary as rotary
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.test_rotary import (
    COUNT,
    FAMILIES,
    SIZE,
    decoder_reference,
    weights_of,
)
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    close,
    loaded,
    results,
    tokens,
)
from tests.modules import Array

THETA = 500.0
PLAIN = THETA ** -(np.arange(0, SIZE, 2) / SIZE)
SHORT, LONG = [1.0, 1.5, 2.0], [1.0, 4.0, 9.0]


def yarn(length: int) -> tuple[Array, float]:
    """Return equations 18, 20 and 22 of YaRN, for texts of 64 tokens, 8 times longer.

    With the bounds of pairs rounded outwards, as its authors' code has them.
    """

    def pair(turns: float) -> float:
        return SIZE * math.log(64 / (turns * 2 * math.pi)) / (2 * math.log(THETA))

    low, high = math.floor(pair(3)), math.ceil(pair(0.5))
    assert 0 <= low < high <= SIZE
    ramp = np.clip((np.arange(SIZE // 2) - low) / (high - low), 0, 1)
    return (1 - ramp) * PLAIN + ramp * PLAIN / 8, 0.1 * math.log(8) + 1


def dynamic(length: int) -> tuple[Array, float]:
    """Return the angles of dynamic NTK, for texts of 6 tokens."""
    grown = 4 * max(length, 6) / 6 - 3
    base = THETA * grown ** (SIZE / (SIZE - 2))
    return base ** -(np.arange(0, SIZE, 2) / SIZE), 1.0


def long(length: int) -> tuple[Array, float]:
    """Return the angles of LongRoPE, for texts of 6 tokens."""
    divided = PLAIN / np.array(LONG if length > 6 else SHORT)
    return divided, math.sqrt(1 + math.log(24 / 6) / math.log(6))


SCALED: dict[str, tuple[dict[str, Any], Callable[[int], tuple[Array, float]]]] = {
    "yarn": (
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 8.0,
                "beta_fast": 3,
                "beta_slow": 0.5,
                "original_max_position_embeddings": 64,
            }
        },
        yarn,
    ),
    "dynamic": (
        {
            "rope_scaling": {"type": "dynamic", "factor": 4},
            "max_position_embeddings": 6,
        },
        dynamic,
    ),
    "longrope": (
        {
            "rope_scaling": {
                "type": "su",
                "short_factor": SHORT,
                "long_factor": LONG,
            },
            "original_max_position_embeddings": 6,
            "max_position_embeddings": 24,
        },
        long,
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_scaled_angles(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, expected = SCALED[name]

    def rotated(x: Array, theta: float) -> Array:
        inverse, factor = expected(x.shape[1])
        angles = np.arange(x.shape[1])[:, None, None] * inverse
        cos, sin = np.cos(angles) * factor, np.sin(angles) * factor
        first, second = np.split(x, 2, -1)
        halves = first * cos - second * sin, second * cos + first * sin
        return np.concatenate(halves, -1)

    monkeypatch.setattr(rotary, "rotated", rotated)
    weights = weights_of(FAMILIES["llama"])
    sizes: dict[str, Any] = {
        "model_type": "llama",
        "head_dim": SIZE,
        "num_attention_heads": COUNT,
    }
    model = loaded(tmp_path, weights, rope_theta=THETA, **sizes, **config)
    p = ReferenceWeights(weights)
    for batch, length in ((2, 5), (3, 9)):
        ids, mask = tokens(batch, length, 0)
        hidden = decoder_reference(p.at("model"), FAMILIES["llama"], ids, mask)
        result = hidden @ p.get("lm_head.weight").T
        close(results(model, ids, mask)[0], result)


def test_factors_are_as_many_as_angles(tmp_path: Path) -> None:
    scaling = {"type": "longrope", "short_factor": [1.0], "long_factor": LONG}
    path = saved(
        tmp_path,
        weights_of(FAMILIES["llama"]),
        model_type="llama",
        head_dim=SIZE,
        rope_scaling=scaling,
    )
    with pytest.raises(InvalidModel, match="'short_factor': expected 3 numbers"):
        read(path)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "gemma2"])
def test_classes(name: str, each: bool, tmp_path: Path) -> None:
    family = FAMILIES[name]
    weights = weights_of(family)
    weights.pop("lm_head.weight", None)
    rng = np.random.default_rng(4)
    weights["score.weight"] = rng.normal(size=(4, rotary.HIDDEN)).astype(np.float32)
    if each:
        weights["score.bias"] = rng.normal(size=4).astype(np.float32)
    config: dict[str, Any] = {"model_type": name, "num_attention_heads": COUNT}
    config |= {"head_dim": SIZE, **family.config}
    model = loaded(tmp_path, weights, **config)
    for batch, length in ((2, 5), (3, 9)):
        ids, mask = tokens(batch, length, 0)
        hidden = decoder_reference(
            ReferenceWeights(weights).at("model"), family, ids, mask
        )
        scores = hidden @ weights["score.weight"].T
        if each:
            expected = scores + weights["score.bias"]
        else:
            ends = [np.flatnonzero(row)[-1] for row in mask]
            expected = scores[np.arange(batch), ends]
        close(results(model, ids, mask)[0], expected)


@pytest.mark.parametrize("name", ["score", "classifier", "qa_outputs"])
def test_gpt2_with_classes(name: str, tmp_path: Path) -> None:
    rng, count = np.random.default_rng(5), 2 if name == "qa_outputs" else 4
    weights = decoders.gpt2_weights("transformer.")
    width = decoders.HIDDEN
    weights[f"{name}.weight"] = rng.normal(size=(count, width)).astype(np.float32)
    if name != "score":
        weights[f"{name}.bias"] = rng.normal(size=count).astype(np.float32)
    model = loaded(tmp_path, weights, model_type="gpt2", n_head=decoders.COUNT)
    scale = (width // decoders.COUNT) ** -0.5
    for batch, length in ((2, 5), (3, 7)):
        ids, mask = tokens(batch, length, 0)
        p = ReferenceWeights(weights, "transformer.")
        hidden = decoders.gpt2_reference(p, ids, mask, (scale, scale))
        scores = hidden @ weights[f"{name}.weight"].T
        if name == "score":
            ends = [np.flatnonzero(row)[-1] for row in mask]
            expected = [scores[np.arange(batch), ends]]
        else:
            scores = scores + weights[f"{name}.bias"]
            parts = [scores[..., 0], scores[..., 1]]
            expected = parts if name == "qa_outputs" else [scores]
        for result, right in zip(results(model, ids, mask), expected, strict=True):
            close(result, right)
