"""BERT, RoBERTa and DistilBERT with random weights, against NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.recipes import read
from burn_import.pipeline import import_model
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

HIDDEN, WIDE, WORDS, PLACES, COUNT, EPS, SMALL = 12, 20, 30, 16, 3, 1e-5, 1e-12
SIZES = ((2, 5), (3, 9))


def bert_shapes(prefix: str, rows: int = 2, pooler: bool = True) -> Shapes:
    """Return the shapes of BERT's weights."""
    at = f"{prefix}embeddings"
    shapes: Shapes = {
        f"{at}.word_embeddings.weight": (WORDS, HIDDEN),
        f"{at}.position_embeddings.weight": (PLACES, HIDDEN),
        f"{at}.token_type_embeddings.weight": (rows, HIDDEN),
        **norm(f"{at}.LayerNorm", HIDDEN),
    }
    for number in range(2):
        at = f"{prefix}encoder.layer.{number}"
        for name in ("query", "key", "value"):
            shapes |= linear(f"{at}.attention.self.{name}", HIDDEN, HIDDEN)
        shapes |= linear(f"{at}.attention.output.dense", HIDDEN, HIDDEN)
        shapes |= norm(f"{at}.attention.output.LayerNorm", HIDDEN)
        shapes |= linear(f"{at}.intermediate.dense", HIDDEN, WIDE)
        shapes |= linear(f"{at}.output.dense", WIDE, HIDDEN)
        shapes |= norm(f"{at}.output.LayerNorm", HIDDEN)
    return shapes | (linear(f"{prefix}pooler.dense", HIDDEN, HIDDEN) if pooler else {})


def bert_reference(
    p: ReferenceWeights,
    ids: Array,
    places: Array,
    mask: Array,
    segments: Array | int = 0,
) -> Array:
    """Return BERT's hidden states."""
    e = p.at("embeddings")
    x = e.get("word_embeddings.weight")[ids]
    x = x + e.get("token_type_embeddings.weight")[segments]
    x = e.norm("LayerNorm", x + e.get("position_embeddings.weight")[places], EPS)
    for number in range(2):
        at = p.at(f"encoder.layer.{number}")
        parts = (at.linear(f"attention.self.{n}", x) for n in ("query", "key", "value"))
        y = at.linear("attention.output.dense", attend(parts, COUNT, visible(mask)))
        x = at.norm("attention.output.LayerNorm", x + y, EPS)
        y = at.linear("output.dense", gelu(at.linear("intermediate.dense", x)))
        x = at.norm("output.LayerNorm", x + y, EPS)
    return x


BERT: dict[str, Any] = {
    "model_type": "bert",
    "num_attention_heads": COUNT,
    "layer_norm_eps": EPS,
}


def test_masked_language_model_of_bert(tmp_path: Path) -> None:
    at = "cls.predictions"
    shapes = bert_shapes("bert.") | {f"{at}.bias": (WORDS,)}
    shapes |= linear(f"{at}.transform.dense", HIDDEN, HIDDEN)
    shapes |= norm(f"{at}.transform.LayerNorm", HIDDEN)
    weights = drawn(shapes | linear("cls.seq_relationship", HIDDEN, 2))
    model = loaded(tmp_path, weights, **BERT)
    p = ReferenceWeights(weights)
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, 0)
        x = bert_reference(p.at("bert"), ids, np.arange(length), mask)
        y = gelu(p.linear(f"{at}.transform.dense", x))
        y = p.norm(f"{at}.transform.LayerNorm", y, EPS)
        scores, follows = results(model, ids, mask)
        table = p.get("bert.embeddings.word_embeddings.weight")
        close(scores, y @ table.T + p.get(f"{at}.bias"))
        pooled = np.tanh(p.linear("bert.pooler.dense", x[:, 0]))
        close(follows, p.linear("cls.seq_relationship", pooled))


def test_two_texts_are_told_apart(tmp_path: Path) -> None:
    weights = drawn(bert_shapes("") | linear("classifier", HIDDEN, 3))
    model = loaded(tmp_path, weights, None, **BERT)
    assert set(model.state_dict()) == set(weights)
    p = ReferenceWeights(weights)
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, 0)
        segments = np.arange(ids.size).reshape(ids.shape) % 3 % 2
        for given in ([], [segments]):
            x = bert_reference(p, ids, np.arange(length), mask, *given)
            pooled = np.tanh(p.linear("pooler.dense", x[:, 0]))
            result = results(model, ids, mask, *given)[0]
            close(result, p.linear("classifier", pooled))


HEADS: dict[str, Shapes] = {
    "hidden states": {},
    "tokens": linear("classifier", HIDDEN, 4),
    "text": linear("classifier.dense", HIDDEN, HIDDEN)
    | linear("classifier.out_proj", HIDDEN, 4),
    "masked": linear("lm_head.dense", HIDDEN, HIDDEN)
    | norm("lm_head.layer_norm", HIDDEN)
    | {"lm_head.bias": (WORDS,)},
}


@pytest.mark.parametrize("head", HEADS)
def test_roberta(head: str, tmp_path: Path) -> None:
    weights = drawn(bert_shapes("roberta.", 1, pooler=False) | HEADS[head])
    model = loaded(tmp_path, weights, model_type="roberta", num_attention_heads=COUNT)
    p = ReferenceWeights(weights)
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, 1)
        places = np.where(ids == 1, 1, np.arange(length) + 2)
        x = bert_reference(p.at("roberta"), ids, places, mask)
        if head == "tokens":
            x = p.linear("classifier", x)
        elif head == "text":
            x = np.tanh(p.linear("classifier.dense", x[:, 0]))
            x = p.linear("classifier.out_proj", x)
        elif head == "masked":
            x = gelu(p.linear("lm_head.dense", x))
            x = p.norm("lm_head.layer_norm", x, EPS)
            x = x @ p.get("roberta.embeddings.word_embeddings.weight").T
            x = x + p.get("lm_head.bias")
        close(results(model, ids, mask)[0], x)


def test_roberta_without_a_name_before_its_keys(tmp_path: Path) -> None:
    weights = drawn(bert_shapes("", 1))
    model = loaded(tmp_path, weights, model_type="roberta", num_attention_heads=COUNT)
    ids, mask = tokens(2, 5, 1)
    places = np.where(ids == 1, 1, np.arange(5) + 2)
    close(
        results(model, ids, mask)[0],
        bert_reference(ReferenceWeights(weights), ids, places, mask),
    )


@pytest.mark.parametrize("head", ["hidden states", "text", "masked"])
def test_distilbert(head: str, tmp_path: Path) -> None:
    weights = {**distilled(), **drawn(DISTILLED_HEADS[head])}
    model = loaded(tmp_path, weights, model_type="distilbert", n_heads=COUNT)
    p = ReferenceWeights(weights)
    for batch, length in SIZES:
        ids, mask = tokens(batch, length, 0)
        x = distilbert_reference(p.at("distilbert"), ids, mask)
        if head == "text":
            x = np.maximum(p.linear("pre_classifier", x[:, 0]), 0)
            x = p.linear("classifier", x)
        elif head == "masked":
            x = p.norm("vocab_layer_norm", gelu(p.linear("vocab_transform", x)), SMALL)
            x = p.linear("vocab_projector", x)
        close(results(model, ids, mask)[0], x)


DISTILLED_HEADS: dict[str, Shapes] = {
    "hidden states": {},
    "text": linear("pre_classifier", HIDDEN, HIDDEN) | linear("classifier", HIDDEN, 3),
    "masked": linear("vocab_transform", HIDDEN, HIDDEN)
    | norm("vocab_layer_norm", HIDDEN)
    | linear("vocab_projector", HIDDEN, WORDS),
}


def distilled() -> dict[str, Array]:
    """Return random weights of DistilBERT."""
    at = "distilbert.embeddings"
    shapes: Shapes = {
        f"{at}.word_embeddings.weight": (WORDS, HIDDEN),
        f"{at}.position_embeddings.weight": (PLACES, HIDDEN),
        **norm(f"{at}.LayerNorm", HIDDEN),
    }
    for number in range(2):
        at = f"distilbert.transformer.layer.{number}"
        for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
            shapes |= linear(f"{at}.attention.{name}", HIDDEN, HIDDEN)
        shapes |= norm(f"{at}.sa_layer_norm", HIDDEN)
        shapes |= linear(f"{at}.ffn.lin1", HIDDEN, WIDE)
        shapes |= linear(f"{at}.ffn.lin2", WIDE, HIDDEN)
        shapes |= norm(f"{at}.output_layer_norm", HIDDEN)
    return drawn(shapes)


def distilbert_reference(p: ReferenceWeights, ids: Array, mask: Array) -> Array:
    """Return DistilBERT's hidden states."""
    e = p.at("embeddings")
    places = e.get("position_embeddings.weight")[: ids.shape[1]]
    x = e.norm("LayerNorm", e.get("word_embeddings.weight")[ids] + places, SMALL)
    for number in range(2):
        at = p.at(f"transformer.layer.{number}")
        parts = (at.linear(f"attention.{n}_lin", x) for n in "qkv")
        y = at.linear("attention.out_lin", attend(parts, COUNT, visible(mask)))
        x = at.norm("sa_layer_norm", x + y, SMALL)
        y = at.linear("ffn.lin2", gelu(at.linear("ffn.lin1", x)))
        x = at.norm("output_layer_norm", x + y, SMALL)
    return x


def test_a_configuration_that_contradicts_is_refused(tmp_path: Path) -> None:
    weights = drawn(bert_shapes(""))
    path = saved(
        tmp_path, weights, model_type="bert", hidden_size=16, num_hidden_layers=12
    )
    with pytest.raises(InvalidModel) as caught:
        read(path)
    said = str(caught.value)
    shape = [WORDS, HIDDEN]
    assert (
        f"'hidden_size': expected {HIDDEN}, since weight "
        f"'embeddings.word_embeddings.weight' has shape {shape}, got 16" in said
    )
    assert "'num_hidden_layers': expected 2" in said
    path = saved(tmp_path, weights, model_type="bert", num_attention_heads=5)
    with pytest.raises(InvalidModel, match=r"a divisor of 12, .*query.weight.*got 5"):
        read(path)


def test_what_was_assumed_stands_in_the_docstring(tmp_path: Path) -> None:
    weights = drawn(bert_shapes(""))
    text = import_model(
        saved(
            tmp_path,
            weights,
            model_type="bert",
            num_attention_heads=2,
            hidden_act="relu",
        )
    ).text
    head = " ".join(text.split('"""')[1].split())
    assert "otherwise: layer_norm_eps 1e-12." in head
    assert "hidden_act" not in head
