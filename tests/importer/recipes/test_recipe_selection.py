"""A family applies only if weights and configuration determine its numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from burn_import.cli.command import burn_import
from burn_import.frontends.recipes import model_of, read
from burn_import.options import Hints
from burn_import.pipeline import import_model
from burn_ir import RawModel, UnsupportedModel
from tests.importer.pytorch_files import tensor, zip_file
from tests.importer.recipes import test_rotary as rotary, test_t5 as t5
from tests.importer.recipes.onnx_net import OnnxNet
from tests.importer.recipes.test_recipes import bert_weights, saved
from tests.importer.recipes.text_references import (
    ReferenceWeights,
    close,
    drawn,
    loaded,
    results,
    tokens,
)
from tests.importer.recipes.vision_references import REFERENCES
from tests.modules import Array

BERT: dict[str, Any] = {"model_type": "bert", "num_attention_heads": 3}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_attention_heads": rotary.COUNT,
    "head_dim": rotary.SIZE,
}


def reason(path: Path) -> str:
    """Return why a file of weights is a skeleton; "" if it is a model."""
    result = model_of(path, Hints())
    return "" if isinstance(result, RawModel) else " ".join(result.notes)


def llama() -> dict[str, Array]:
    """Return random weights of a small Llama."""
    return rotary.weights_of(rotary.FAMILIES["llama"])


@pytest.mark.parametrize("weights", [bert_weights(), llama()])
def test_keys_of_several_architectures_need_a_configuration(
    weights: dict[str, Array], tmp_path: Path
) -> None:
    path = saved(tmp_path, weights)
    assert "model_type of a config.json" in reason(path)
    docstring = " ".join(import_model(path).text.split())
    assert "The architecture is not known: the keys fit" in docstring


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "eurobert"}, "no known architecture called eurobert"),
    ({"model_type": "bert"}, "has no 'num_attention_heads'"),
    ({**BERT, "is_decoder": True}, "'is_decoder': expected False, got True"),
    ({**BERT, "position_embedding_type": "relative_key"}, "expected 'absolute'"),
    ({**BERT, "some_new_switch": 1}, "'some_new_switch': bert has no known entry"),
    ({**BERT, "hidden_act": "xielu"}, "a known activation, got 'xielu'"),
]


@pytest.mark.parametrize(("config", "message"), WRONG)
def test_entries_that_are_not_known(
    config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, bert_weights(), **config)
    assert message in reason(path)
    with pytest.raises(UnsupportedModel, match="No module can be made"):
        read(path)


def test_entries_without_effect_are_known(tmp_path: Path) -> None:
    config = {
        **BERT,
        "architectures": ["BertModel"],
        "attention_probs_dropout_prob": 0.1,
        "classifier_dropout": None,
        "position_embedding_type": "absolute",
        "transformers_version": "4.6.0",
    }
    assert reason(saved(tmp_path, bert_weights(), **config)) == ""


def test_entries_of_angles_are_known(tmp_path: Path) -> None:
    rope = {"rope_type": "default", "rope_theta": 1e4}
    config = {**LLAMA, "rope_parameters": rope}
    assert reason(saved(tmp_path, llama(), **config)) == ""
    config["rope_parameters"] = {**rope, "partial_rotary_factor": 0.5}
    assert "'rope_parameters.partial_rotary_factor': expected 1.0" in reason(
        saved(tmp_path, llama(), **config)
    )


@pytest.mark.parametrize("key", ["embeddings.rotary.weight", "encoder.layer.0.a.bias"])
def test_weights_that_the_family_lacks(key: str, tmp_path: Path) -> None:
    weights = bert_weights() | {key: np.ones(3, np.float32)}
    message = reason(saved(tmp_path, weights, **BERT))
    assert f"weights that the architecture lacks: '{key}'" in message


def test_another_head_than_the_weights_show(tmp_path: Path) -> None:
    weights = bert_weights()
    weights["classifier.weight"] = np.ones((1, 12), np.float32)
    weights["classifier.bias"] = np.ones(1, np.float32)
    for name, claimed in (("SequenceClassification", True), ("MultipleChoice", False)):
        config = {**BERT, "architectures": [f"BertFor{name}"]}
        message = reason(saved(tmp_path, weights, **config))
        assert (message == "") == claimed
    assert "'architectures': expected a class as BertForSequence" in message


SCALES: list[tuple[str, dict[str, Any], bool | None]] = [
    ("t5", {}, True),
    ("t5", {"tie_word_embeddings": False}, False),
    ("t5", {"tie_word_embeddings": True, "scale_decoder_outputs": False}, False),
    ("t5", {"tie_word_embeddings": True, "scale_decoder_outputs": True}, True),
    ("mt5", {"tie_word_embeddings": False}, False),
    ("mt5", {"tie_word_embeddings": True, "transformers_version": "5.1.0"}, False),
    ("mt5", {"tie_word_embeddings": True, "transformers_version": "4.50.0"}, None),
    ("umt5", {"tie_word_embeddings": True, "transformers_version": "5.1.0"}, True),
    ("umt5", {"tie_word_embeddings": False}, None),
]


@pytest.mark.parametrize(("kind", "config", "scaled"), SCALES)
def test_scores_of_t5_are_scaled_as_configured(
    kind: str, config: dict[str, Any], scaled: bool | None, tmp_path: Path
) -> None:
    shapes = t5.stack_shapes("decoder", True, True)
    weights = drawn(shapes | {"shared.weight": (t5.WORDS, t5.HIDDEN)})
    given = {
        "model_type": kind,
        "relative_attention_max_distance": t5.LAST,
        "feed_forward_proj": "gated-gelu",
        **config,
    }
    if scaled is None:
        message = reason(saved(tmp_path, weights, **given))
        assert "'tie_word_embeddings': expected" in message
        return
    model = loaded(tmp_path, weights, **given)
    ids, mask = tokens(2, 5, 0)
    other = np.random.default_rng(1).normal(size=(2, 5, t5.HIDDEN)).astype("f4")
    p = ReferenceWeights(weights)
    table = p.get("shared.weight")
    x = t5.stack_reference(p.at("decoder"), table[ids], mask, other)
    x = x * t5.HIDDEN**-0.5 if scaled else x
    close(results(model, ids, other, mask)[0], x @ table.T)


def resnet() -> dict[str, Array]:
    """Return weights with the keys and shapes of torchvision's ResNet, and timm's."""
    weights: dict[str, Array] = {"conv1.weight": np.ones((4, 3, 7, 7), np.float32)}
    for name in ("bn1", "layer1.0.bn1", "layer1.0.bn2"):
        for leaf in ("weight", "bias", "running_mean", "running_var"):
            weights[f"{name}.{leaf}"] = np.ones(4, np.float32)
    for number in (1, 2):
        shape = 4, 4, 3, 3
        weights[f"layer1.0.conv{number}.weight"] = np.ones(shape, np.float32)
    weights["fc.weight"] = np.ones((5, 4), np.float32)
    return {**weights, "fc.bias": np.ones(5, np.float32)}


def test_a_resnet_without_configuration_is_torchvisions_and_a_note_says_so(
    tmp_path: Path,
) -> None:
    path = saved(tmp_path, resnet())
    output = str(tmp_path / "made.py")
    printed = CliRunner().invoke(burn_import, [str(path), "-o", output]).stderr
    assert "The keys are those of torchvision's ResNet" in printed
    assert "(timm's resnetblur50, resnetaa50) have the same keys and shapes" in printed
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architecture": "resnetaa50"}), "utf-8")
    assert "resnetaa50" in reason(path)
    config.write_text(json.dumps({"architecture": "resnet18"}), "utf-8")
    assert not reason(path)


def test_the_option_that_selects_one_of_several_models_is_named(tmp_path: Path) -> None:
    """Training programs write the weights and their moving average."""
    net = OnnxNet((1, 3, 64, 64))
    REFERENCES["resnet basic"][0](net, "x")
    dicts = {
        name: {key: tensor(f"{name}.{key}", x) for key, x in net.state.items()}
        for name in ("model", "ema")
    }
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file({**dicts, "step": 3}))
    assert "'model' and 'ema' have the weights of a known architecture" in reason(path)
    assert "--top-level-key model" in reason(path)
    assert isinstance(model_of(path, Hints(top_level_key="ema")), RawModel)
