"""Weights of known architectures: the whole model, from the state dict alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import burn
from burn.record import write_record
from burn_import import load
from burn_import.cli.command import burn_import
from burn_import.frontends.recipes import read, registry as table
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from tests.modules import Array

HIDDEN, WIDE, WORDS = 12, 20, 30


def bert_weights(prefix: str = "", layers: int = 2) -> dict[str, Array]:
    """Return random weights of a small BERT."""
    rng = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, HIDDEN),
        "embeddings.position_embeddings.weight": (9, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        **norm("embeddings.LayerNorm"),
        **linear("pooler.dense", HIDDEN, HIDDEN),
    }
    for number in range(layers):
        at = f"encoder.layer.{number}"
        for name in ("query", "key", "value"):
            shapes |= linear(f"{at}.attention.self.{name}", HIDDEN, HIDDEN)
        shapes |= linear(f"{at}.attention.output.dense", HIDDEN, HIDDEN)
        shapes |= norm(f"{at}.attention.output.LayerNorm")
        shapes |= linear(f"{at}.intermediate.dense", HIDDEN, WIDE)
        shapes |= linear(f"{at}.output.dense", WIDE, HIDDEN)
        shapes |= norm(f"{at}.output.LayerNorm")
    return {
        prefix + key: rng.normal(size=shape).astype(np.float32)
        for key, shape in shapes.items()
    }


def linear(name: str, size: int, out: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a linear layer."""
    return {f"{name}.weight": (out, size), f"{name}.bias": (out,)}


def norm(name: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer norm."""
    return {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}


def saved(folder: Path, weights: dict[str, Array], **config: Any) -> Path:
    """Return the record of weights, with a configuration beside it."""
    path = folder / "net.safetensors"
    write_record(path, list(weights.items()))
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("prefix", ["", "model.bert."])
def test_every_weight_keeps_its_key(tmp_path: Path, prefix: str) -> None:
    weights = bert_weights(prefix)
    path = saved(tmp_path, weights, model_type="bert", num_attention_heads=3)
    model: Any = load(path)
    found = {k: v for k, v in model.state_dict().items()}
    assert set(found) == set(weights)
    for key, value in weights.items():
        np.testing.assert_array_equal(found[key].numpy(), value)
    for batch, length in ((2, 5), (3, 9)):
        ids = np.arange(batch * length).reshape(batch, length) % WORDS
        hidden, pooled = model(burn.tensor(ids), burn.tensor(np.ones_like(ids)))
        assert hidden.shape == (batch, length, HIDDEN)
        assert pooled.shape == (batch, HIDDEN)


def test_the_mask_takes_tokens_out(tmp_path: Path) -> None:
    path = saved(tmp_path, bert_weights(), model_type="bert", num_attention_heads=3)
    model: Any = load(path)
    ids = np.arange(12).reshape(2, 6)
    mask = np.ones_like(ids)
    mask[:, 4:] = 0
    other = np.where(mask == 1, ids, 20)
    first, second = (
        model(burn.tensor(x), burn.tensor(mask))[0].numpy() for x in (ids, other)
    )
    np.testing.assert_array_equal(first[:, :4], second[:, :4])
    assert np.abs(first[:, 4:] - second[:, 4:]).max() > 0.01


def test_a_weight_too_many_is_refused(tmp_path: Path) -> None:
    weights = bert_weights()
    weights["encoder.layer.0.adapter.weight"] = np.ones((2, 3), np.float32)
    with pytest.raises(
        UnsupportedModel, match=r"lacks: 'encoder\.layer\.0\.adapter\.weight'"
    ):
        read(saved(tmp_path, weights, model_type="bert", num_attention_heads=3))


def test_a_weight_too_few_is_refused(tmp_path: Path) -> None:
    weights = bert_weights()
    del weights["encoder.layer.1.output.dense.weight"]
    with pytest.raises(
        UnsupportedModel, match=r"'encoder\.layer\.1\.output\.dense\.weight'"
    ):
        read(saved(tmp_path, weights, model_type="bert", num_attention_heads=3))


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="Known architectures: .*bert"):
        read(saved(tmp_path, {"a.weight": np.ones(3, np.float32)}))
    with pytest.raises(UnsupportedModel, match="No module can be made"):
        read(saved(tmp_path, bert_weights(), model_type="something"))


def test_a_configuration_has_its_types(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="'num_attention_heads': expected int"):
        read(
            saved(
                tmp_path, bert_weights(), model_type="bert", num_attention_heads="three"
            )
        )
    (tmp_path / "config.json").write_text("[" * 10000)
    with pytest.raises(UnreadableFile, match=r"config\.json"):
        read(tmp_path / "net.safetensors")


def test_the_command_writes_a_module(tmp_path: Path) -> None:
    path = saved(tmp_path, bert_weights(), model_type="bert", num_attention_heads=3)
    output = tmp_path / "model.py"
    answer = CliRunner().invoke(burn_import, [str(path), "-o", str(output)])
    assert answer.exit_code == 0, answer.output
    assert "class BertLayer(nn.Module):" in output.read_text()


def test_weights_that_fit_several_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "RECIPES", list(table.RECIPES))
    for name in ("first", "second"):
        table.recipe(name, "Net", "odd.weight", is_configured=False)(
            lambda w, _: w.model(w.weight("x"))
        )
    path = saved(tmp_path, {"odd.weight": np.ones(3, np.float32)})
    with pytest.raises(UnsupportedModel, match="keys fit first, second, and"):
        read(path)
    path = saved(tmp_path, {"odd.weight": np.ones(3, np.float32)}, model_type="third")
    with pytest.raises(UnsupportedModel, match="Known architectures"):
        read(path)
