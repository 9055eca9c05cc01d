"""Recipes against the same architectures of the zoo, which were exported to ONNX.

The weights are those that the importer finds in the exported file, under the keys of
the state dict; the module that the recipe makes of them alone gives what is recorded.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.record import write_record
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.modules import Array
from tests.zoo.recorded import Case, Golden, zoo_cases

#: The configuration of each model, where its weights do not say everything.
MODELS: Mapping[str, Mapping[str, Any]] = {
    "arch/bert.dynamo-op20": {"model_type": "bert", "num_attention_heads": 4},
    "arch/bert_seqcls.dynamo-op20": {"model_type": "bert", "num_attention_heads": 4},
    "arch/roberta_tokcls.dynamo-op20": {
        "model_type": "roberta",
        "num_attention_heads": 4,
        "layer_norm_eps": 1e-12,
    },
    "arch/distilbert_qa.dynamo-op20": {"model_type": "distilbert", "n_heads": 4},
    "arch/gpt2.dynamo-op20": {"model_type": "gpt2", "n_head": 4},
    "arch/gemma2.dynamo-op20": {
        "model_type": "gemma2",
        "num_attention_heads": 4,
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "attn_logit_softcapping": 30.0,
        "final_logit_softcapping": 20.0,
        "sliding_window": 4,
    },
    "arch/llama.dynamo-op20": {
        "model_type": "llama",
        "num_attention_heads": 4,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    },
    "arch/t5_encoder.dynamo-op20": {"model_type": "t5"},
    "arch/t5_decoder.dynamo-op20": {"model_type": "t5"},
    "arch/whisper_encoder.dynamo-op20": {
        "model_type": "whisper",
        "encoder_attention_heads": 4,
    },
    "arch/whisper_decoder.dynamo-op20": {
        "model_type": "whisper",
        "decoder_attention_heads": 4,
    },
    "arch/clip_text.dynamo-op20": {
        "model_type": "clip_text_model",
        "num_attention_heads": 4,
        "eos_token_id": 98,
    },
    "arch/clip_vision.dynamo-op20": {
        "model_type": "clip_vision_model",
        "num_attention_heads": 4,
    },
    "arch/vit.dynamo-op20": {"model_type": "vit", "num_attention_heads": 4},
    "arch/qwen3.dynamo-op20": {"model_type": "qwen3", "rope_theta": 10000.0},
}

#: The same for files of PyTorch, named like the models that were exported.
STATES: Mapping[str, Mapping[str, Any]] = {
    "pytorch/bert_tiny": {"model_type": "bert", "num_attention_heads": 4},
    "pytorch/gpt2_tiny": {"model_type": "gpt2", "n_head": 4},
}


@pytest.mark.parametrize("name", STATES)
def test_state_dict(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    case = case_of(f"{name}.dynamo-op20", request)
    weights = case.path.with_name(f"{Path(name).name}.state_dict.pt")
    path = tmp_path / weights.name
    path.write_bytes(weights.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(dict(STATES[name])))
    model: Any = load(path)
    for golden in case.goldens:
        compare(model, golden)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sampled(3)
def test_recipe(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    case = case_of(name, request)
    compiled = import_model(case.path, Options(class_name="Net", stem="net"))
    named = ((RENAMED.get(key, key), array) for key, array in compiled.weights)
    weights = {key: kept(name, key, array) for key, array in named}
    model: Any = load(saved(tmp_path, weights, MODELS[name]))
    for golden in case.goldens:
        compare(model, golden)


def kept(name: str, key: str, array: Array) -> Array:
    """Return what the author's state dict has.

    Exporters added 1 to Gemma's norms, and an axis to the places of CLIP's patches.
    """
    if key == f"{VISION}.position_embedding.weight":
        return array.reshape(array.shape[1:])
    return array - 1 if "gemma" in name and "norm" in key else array


VISION = "m.vision_model.embeddings"
#: The norms of a layer of Gemma 2 in the order of their calls.
NORMS = ("input", "post_attention", "pre_feedforward", "post_feedforward")
#: What the exporter computed, and stored without a name of the author's.
RENAMED = {
    "m.folded_bias": "m.embed_positions.weight",
    f"{VISION}.folded_bias": f"{VISION}.position_embedding.weight",
    "m.model.folded_weight": "m.model.norm.weight",
} | {
    f"m.model.layers.{layer}.folded_weight{number or ''}": (
        f"m.model.layers.{layer}.{norm}_layernorm.weight"
    )
    for layer in range(2)
    for number, norm in zip((0, 2, 3, 4), NORMS, strict=True)
}


def case_of(name: str, request: pytest.FixtureRequest) -> Case:
    """Return the exported model called ``name``."""
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no models in {zoo.name}/ (see --zoo)")
    (case,) = (case for case in zoo_cases(zoo) if case.name == name)
    return case


def saved(folder: Path, weights: dict[str, Any], config: Mapping[str, Any]) -> Path:
    """Return the record of the weights that a state dict has, and its configuration."""
    path = folder / "net.safetensors"
    kept = {k.replace("self_.", "self."): v for k, v in weights.items()}
    unsaved = ("inv_freq", "embed_scale")  # buffers with persistent=False
    kept = {
        k: v for k, v in kept.items() if v.dtype.kind != "i" and not k.endswith(unsaved)
    }
    write_record(path, list(kept.items()))
    (folder / "config.json").write_text(json.dumps(dict(config)))
    return path


def compare(model: Any, golden: Golden) -> None:
    """Return if the model gives what is recorded."""
    inputs, expected = golden.read()
    result = model(*map(burn.tensor, inputs))
    results = result if isinstance(result, tuple) else (result,)
    for position, value in expected.items():
        actual = results[position].numpy()
        np.testing.assert_allclose(actual, value, rtol=1e-5, atol=1e-5)
