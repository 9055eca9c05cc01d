"""Invalid weights and configurations are refused without other errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel, build
from tests.importer.recipes import (
    test_clip as clip,
    test_decoders as decoders,
    test_encoders as encoders,
    test_rotary as rotary,
    test_t5 as t5,
    test_whisper as whisper,
)
from tests.importer.recipes.test_recipes import saved
from tests.importer.recipes.text_references import drawn
from tests.modules import Array

ERRORS = InvalidModel, UnreadableFile, UnsupportedModel
SHAPES: list[tuple[int, ...]] = [(), (0,), (7,), (0, 0), (1, 1), (12, 1), (2, 3, 4)]
NETS: dict[str, dict[str, Array]] = {
    "bert": drawn(encoders.bert_shapes("")),
    "distilbert": encoders.distilled(),
    "gpt2": decoders.gpt2_weights("transformer."),
    "qwen3": rotary.weights_of(rotary.FAMILIES["qwen3"]),
    "gemma2": rotary.weights_of(rotary.FAMILIES["gemma2"]),
    "t5": drawn(
        t5.stack_shapes("decoder", True, True) | {"shared.weight": (30, t5.HIDDEN)}
    ),
    "whisper": drawn(whisper.encoder_shapes("")),
    "clip": drawn(clip.vision_shapes()),
}
CONFIG: dict[str, dict[str, Any]] = {
    "bert": {"num_attention_heads": 2},
    "distilbert": {"n_heads": 2},
    "gpt2": {"n_head": 2},
    "qwen3": {"head_dim": rotary.SIZE},
    "gemma2": {"head_dim": rotary.SIZE},
    "t5": {},
    "whisper": {"encoder_attention_heads": 2},
    "clip": {"vision_config": {"num_attention_heads": 2}},
}
#: Keys whose information the first layer already gives.
REPEATED = (".1.", ".2.")


def refused(path: Path) -> bool:
    """Return whether a file is refused with an error of burn-import; raise others."""
    try:
        build(read(path))
    except ERRORS as error:
        return len(str(error)) > 10
    return False


@pytest.mark.parametrize("name", NETS)
def test_other_shapes(name: str, tmp_path: Path) -> None:
    weights = NETS[name]
    config: dict[str, Any] = {"model_type": name, **CONFIG[name]}
    assert not refused(saved(tmp_path, weights, **config))
    for number, key in enumerate(weights):
        if any(part in key for part in REPEATED):
            continue
        for shape in (SHAPES[number % len(SHAPES)], (), (0,)):
            wrong = weights | {key: np.ones(shape, np.float32)}
            actual = refused(saved(tmp_path, wrong, **config))
            assert actual or 0 not in shape, (key, shape)


CONFIGS: list[tuple[str, str, Any]] = [
    ("bert", "num_attention_heads", 0),
    ("bert", "hidden_act", "x"),
    ("bert", "layer_norm_eps", "small"),
    ("qwen3", "rope_theta", 0),
    ("qwen3", "rope_scaling", {"rope_type": "linear", "factor": 0.0}),
    ("qwen3", "rope_scaling", {"rope_type": "linear", "factor": "a"}),
    ("qwen3", "rope_scaling", {"rope_type": "llama3", "high_freq_factor": 0.5}),
    ("qwen3", "rope_scaling", {"rope_type": ["yarn"]}),
    ("qwen3", "layer_types", ["full_attention"]),
    ("qwen3", "head_dim", 5),
    ("gemma2", "query_pre_attn_scalar", 0),
    ("gemma2", "sliding_window", "x"),
    ("t5", "relative_attention_max_distance", 2),
    ("t5", "d_kv", 7),
    ("whisper", "encoder_attention_heads", 5),
    ("clip", "vision_config", {"patch_size": 16}),
]


@pytest.mark.parametrize(("name", "key", "value"), CONFIGS)
def test_other_configurations(name: str, key: str, value: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"model_type": name, **CONFIG[name], key: value}
    last = key if not isinstance(value, dict) else list(value)[-1]
    with pytest.raises(ERRORS, match=f"'{last}'|a known (activation|scaling)"):
        read(saved(tmp_path, NETS[name], **given))
