"""BERT: an encoder with its pooler."""

from __future__ import annotations

from burn_import.recipes.config import Config
from burn_import.recipes.table import recipe
from burn_import.recipes.writer import BATCH, LENGTH, Writer
from burn_ir.raw import RawModel

#: The size of a head where no configuration says how many there are.
HEAD = 64


@recipe(
    "bert",
    "BertModel",
    "embeddings.word_embeddings.weight",
    "embeddings.token_type_embeddings.weight",
    "encoder.layer.0.attention.self.query.weight",
)
def bert(w: Writer, config: Config) -> RawModel:
    """The graph of ``BertModel``: hidden states, and what the pooler makes of them."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    w.weights.ignore(
        *(w.key(f"embeddings.{n}_ids") for n in ("position", "token_type"))
    )
    mask = w.padding_mask(attention_mask)
    eps = config.get("layer_norm_eps", 1e-12)
    with w.module("embeddings", "BertEmbeddings"):
        x = embeddings(w, input_ids, eps)
    with w.module("encoder", "BertEncoder"):
        for number in range(w.count("layer")):
            with w.module(f"layer.{number}", "BertLayer"):
                x = layer(w, x, mask, config, eps)
    outputs = [x]
    if w.has("pooler.dense.weight"):
        with w.module("pooler", "BertPooler"):
            first = w.op("Gather", x, 0, axis=1)
            outputs.append(w.op("Tanh", w.linear("dense", first), name="pooled"))
    return w.model(*outputs)


def embeddings(w: Writer, input_ids: str, eps: float) -> str:
    """Words, positions and the first segment, summed and normalised."""
    words = w.embedding("word_embeddings", input_ids)
    zeros = w.op("Mul", input_ids, 0, name="token_type_ids")
    x = w.add(words, w.embedding("token_type_embeddings", zeros))
    positions = w.op("Unsqueeze", w.positions(input_ids), [0], name="position_ids")
    x = w.add(x, w.embedding("position_embeddings", positions))
    return w.layer_norm("LayerNorm", x, eps)


def layer(w: Writer, x: str, mask: str, config: Config, eps: float) -> str:
    """One layer: attention, then two linear layers, both with a residual."""
    with w.module("attention", "BertAttention"):
        with w.module("self", "BertSelfAttention"):
            attended = self_attention(w, x, mask, config)
        with w.module("output", "BertSelfOutput"):
            x = w.layer_norm("LayerNorm", w.add(w.linear("dense", attended), x), eps)
    with w.module("intermediate", "BertIntermediate"):
        name = config.get("hidden_act", "gelu")
        y = w.activation(name, w.linear("dense", x))
    with w.module("output", "BertOutput"):
        return w.layer_norm("LayerNorm", w.add(w.linear("dense", y), x), eps)


def self_attention(w: Writer, x: str, mask: str, config: Config) -> str:
    """Attention of every token to all that the mask leaves."""
    count = config.get(
        "num_attention_heads", max(w.shape("query.weight")[0] // HEAD, 1)
    )
    query, key, value = (
        w.heads(w.linear(name, x), count, name) for name in ("query", "key", "value")
    )
    return w.merged(w.attention(query, key, value, mask))
