"""BERT: an encoder with its pooler, and the heads of Hugging Face."""

import numpy as np

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import (
    Supports,
    agree,
    any_of,
    extent,
    heads,
    length,
)
from burn_import.frontends.recipes.graph_writer import BATCH, LENGTH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.heads import scores, vocabulary
from burn_ir.raw import RawModel

#: Default token types: all tokens are of the first segment.
FIRST = np.zeros((1, 1), np.int64)
WORDS = "embeddings.word_embeddings.weight"
KEYS = (
    WORDS,
    "embeddings.token_type_embeddings.weight",
    "encoder.layer.0.attention.self.query.weight",
)


#: Supported settings of Hugging Face's BERT and RoBERTa.
SUPPORTS: Supports = {
    "add_cross_attention": (False,),
    "directionality": ("bidi",),
    "is_decoder": (False,),
    "position_embedding_type": ("absolute",),
    **any_of(
        *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
        *("pooler_size_per_head", "pooler_type"),
    ),
}


@recipe("bert", "BertModel", *KEYS, base="bert", supports=SUPPORTS)
def bert(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``BertModel``, or of a class of Hugging Face with a head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    segments = w.input("token_type_ids", "int64", BATCH, LENGTH, default=FIRST)
    eps = config.get("layer_norm_eps", 1e-12)
    with w.base("bert", "BertModel"):
        table = w.key(WORDS)
        with w.module("embeddings", "BertEmbeddings"):
            places = w.op("Unsqueeze", w.positions(input_ids), [0])
            x = embeddings(w, input_ids, segments, places, eps)
        x, pooled = encoder(w, config, "Bert", x, attention_mask, eps)
    if w.has("cls.predictions.transform.dense.weight"):
        return pretrained(w, config, x, pooled, table, eps)
    return scores(w, "Bert", x, pooled) or bare(w, x, pooled)


def bare(w: RecipeWriter, x: str, pooled: str | None) -> RawModel:
    """Return the model of hidden states, and the pooler's output if there is one."""
    if pooled is None:
        return w.model(last_hidden_state=x)
    return w.model(last_hidden_state=x, pooler_output=pooled)


def pretrained(
    w: RecipeWriter, config: Config, x: str, pooled: str | None, table: str, eps: float
) -> RawModel:
    """Return the model of masked-token and next-sentence scores."""
    w.called("BertForMaskedLM")
    with w.module("cls", "BertPreTrainingHeads"):
        with w.module("predictions", "BertLMPredictionHead"):
            with w.module("transform", "BertPredictionHeadTransform"):
                y = w.linear("dense", x)
                y = w.activation(config.get("hidden_act", "gelu"), y)
                y = w.layer_norm("LayerNorm", y, eps)
            tokens = vocabulary(w, "decoder", y, table, "bias")
        if pooled is None or not w.has("seq_relationship.weight"):
            follows = None
        else:
            follows = w.linear("seq_relationship", pooled)
    if follows is None:
        return w.model(logits=tokens)
    w.called("BertForPreTraining")
    return w.model(prediction_logits=tokens, seq_relationship_logits=follows)


def encoder(
    w: RecipeWriter,
    config: Config,
    family: str,
    x: str,
    attention_mask: str,
    eps: float,
) -> tuple[str, str | None]:
    """Return hidden states, and the pooler's output or None."""
    first = "encoder.layer.0"
    agree(
        config,
        vocab_size=extent(w, WORDS, 0),
        hidden_size=extent(w, WORDS, 1),
        type_vocab_size=extent(w, KEYS[1], 0),
        max_position_embeddings=extent(w, "embeddings.position_embeddings.weight", 0),
        intermediate_size=extent(w, f"{first}.intermediate.dense.weight", 0),
        num_hidden_layers=length(w, "encoder.layer"),
    )
    for name in ("position", "token_type"):
        w.weights.ignore(w.key(f"embeddings.{name}_ids"))
    mask = w.padding_mask(attention_mask)
    with w.module("encoder", f"{family}Encoder"):
        for number in range(w.count("layer")):
            with w.module(f"layer.{number}", f"{family}Layer"):
                x = layer(w, config, family, x, mask, eps)
    if not w.has("pooler.dense.weight"):
        return x, None
    with w.module("pooler", f"{family}Pooler"):
        return x, w.op("Tanh", w.linear("dense", w.op("Gather", x, 0, axis=1)))


def embeddings(
    w: RecipeWriter, input_ids: str, segments: str, position_ids: str, eps: float
) -> str:
    """Return the normalized sum of token, segment and position embeddings."""
    words = w.embedding("word_embeddings", input_ids)
    x = w.add(words, w.embedding("token_type_embeddings", segments))
    x = w.add(x, w.embedding("position_embeddings", position_ids))
    return w.layer_norm("LayerNorm", x, eps)


def layer(
    w: RecipeWriter, config: Config, family: str, x: str, mask: str, eps: float
) -> str:
    """Apply one layer: attention and two linear layers, each with a residual."""
    with w.module("attention", f"{family}Attention"):
        with w.module("self", f"{family}SelfAttention"):
            attended = self_attention(w, config, x, mask)
        with w.module("output", f"{family}SelfOutput"):
            x = w.layer_norm("LayerNorm", w.add(w.linear("dense", attended), x), eps)
    with w.module("intermediate", f"{family}Intermediate"):
        name = config.get("hidden_act", "gelu")
        y = w.activation(name, w.linear("dense", x))
    with w.module("output", f"{family}Output"):
        return w.layer_norm("LayerNorm", w.add(w.linear("dense", y), x), eps)


def self_attention(w: RecipeWriter, config: Config, x: str, mask: str) -> str:
    """Apply attention of every token to all unmasked tokens."""
    count = heads(w, config, "query")
    query, key, value = (
        w.heads(w.linear(name, x), count, name) for name in ("query", "key", "value")
    )
    return w.merged(w.attention(query, key, value, mask))
