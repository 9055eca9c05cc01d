"""RoBERTa: BERT with positions that skip padding, and its own heads."""

import numpy as np

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import BATCH, LENGTH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.bert import (
    KEYS,
    SUPPORTS,
    WORDS,
    bare,
    embeddings,
    encoder,
)
from burn_import.frontends.recipes.text.heads import scores, vocabulary
from burn_ir.raw import RawModel

ZERO = np.zeros(1, np.int64)


@recipe(
    "roberta",
    "RobertaModel",
    *KEYS,
    kinds=("roberta", "xlm-roberta", "camembert"),
    base="roberta",
    supports=SUPPORTS,
)
def roberta(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``RobertaModel``, or of a class with a head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    eps = config.get("layer_norm_eps", 1e-5)
    with w.base("roberta", "RobertaModel"):
        table = w.key(WORDS)
        with w.module("embeddings", "RobertaEmbeddings"):
            places = positions(w, input_ids, config.get("pad_token_id", 1))
            segments = w.op("ConstantOfShape", w.op("Shape", input_ids), value=ZERO)
            x = embeddings(w, input_ids, segments, places, eps)
        x, pooled = encoder(w, config, "Roberta", x, attention_mask, eps)
    if w.has("lm_head.dense.weight"):
        return masked(w, x, table, eps)
    if w.has("classifier.dense.weight"):
        return classified(w, x)
    return scores(w, "Roberta", x, pooled) or bare(w, x, pooled)


def positions(w: RecipeWriter, input_ids: str, padding: int) -> str:
    """Return positions of tokens from ``padding + 1`` on; padding has ``padding``."""
    tokens = w.op("Not", w.op("Equal", input_ids, padding))
    real = w.op("Cast", tokens, to=7, name="real")
    places = w.op("Mul", w.op("CumSum", real, 1), real)
    return w.op("Add", places, padding, name="position_ids")


def masked(w: RecipeWriter, x: str, table: str, eps: float) -> RawModel:
    """Return the model of masked-token scores."""
    w.called("RobertaForMaskedLM")
    with w.module("lm_head", "RobertaLMHead"):
        x = w.layer_norm("layer_norm", w.op("Gelu", w.linear("dense", x)), eps)
        return w.model(logits=vocabulary(w, "decoder", x, table, "bias"))


def classified(w: RecipeWriter, x: str) -> RawModel:
    """Return the model of class scores of the text, from its first token."""
    w.called("RobertaForSequenceClassification")
    with w.module("classifier", "RobertaClassificationHead"):
        first = w.op("Gather", x, 0, axis=1)
        y = w.op("Tanh", w.linear("dense", first))
        return w.model(logits=w.linear("out_proj", y))
