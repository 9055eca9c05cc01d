"""DistilBERT: BERT without segments and pooler."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import (
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

EPS = 1e-12
WORDS = "embeddings.word_embeddings.weight"
PLACES = "embeddings.position_embeddings.weight"


@recipe(
    "distilbert",
    "DistilBertModel",
    WORDS,
    "transformer.layer.0.attention.q_lin.weight",
    base="distilbert",
    supports=any_of("sinusoidal_pos_embds", "tie_weights_"),
)
def distilbert(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``DistilBertModel``, or of a class with a head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    with w.base("distilbert", "DistilBertModel"):
        table = w.key(WORDS)
        x = model(w, config, input_ids, attention_mask)
    if w.has("vocab_transform.weight"):
        w.called("DistilBertForMaskedLM")
        act = config.get("activation", "gelu")
        y = w.activation(act, w.linear("vocab_transform", x))
        y = w.layer_norm("vocab_layer_norm", y, EPS)
        return w.model(logits=vocabulary(w, "vocab_projector", y, table))
    pooled = None
    if w.has("pre_classifier.weight"):
        first = w.op("Gather", x, 0, axis=1)
        pooled = w.op("Relu", w.linear("pre_classifier", first))
    return scores(w, "DistilBert", x, pooled) or w.model(last_hidden_state=x)


def model(w: RecipeWriter, config: Config, input_ids: str, attention_mask: str) -> str:
    """Return the hidden states of all tokens."""
    agree(
        config,
        vocab_size=extent(w, WORDS, 0),
        dim=extent(w, WORDS, 1),
        max_position_embeddings=extent(w, PLACES, 0),
        hidden_dim=extent(w, "transformer.layer.0.ffn.lin1.weight", 0),
        n_layers=length(w, "transformer.layer"),
    )
    w.weights.ignore(w.key("embeddings.position_ids"))
    with w.module("embeddings", "Embeddings"):
        words = w.embedding("word_embeddings", input_ids)
        places = w.op("Unsqueeze", w.positions(input_ids), [0])
        x = w.add(words, w.embedding("position_embeddings", places))
        x = w.layer_norm("LayerNorm", x, EPS)
    mask = w.padding_mask(attention_mask)
    with w.module("transformer", "Transformer"):
        for number in range(w.count("layer")):
            with w.module(f"layer.{number}", "TransformerBlock"):
                x = layer(w, config, x, mask)
    return x


def layer(w: RecipeWriter, config: Config, x: str, mask: str) -> str:
    """Apply one layer: attention and two linear layers, each with a residual."""
    with w.module("attention", "DistilBertSelfAttention"):
        count = heads(w, config, "q_lin", "n_heads")
        query, key, value = (
            w.heads(w.linear(f"{name}_lin", x), count) for name in "qkv"
        )
        attended = w.merged(w.attention(query, key, value, mask))
        y = w.linear("out_lin", attended)
    x = w.layer_norm("sa_layer_norm", w.add(y, x), EPS)
    with w.module("ffn", "FFN"):
        act = config.get("activation", "gelu")
        y = w.linear("lin2", w.activation(act, w.linear("lin1", x)))
    return w.layer_norm("output_layer_norm", w.add(y, x), EPS)
