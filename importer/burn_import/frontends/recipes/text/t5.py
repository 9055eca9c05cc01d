"""T5: an encoder and a decoder with relative position biases."""

import re
from dataclasses import dataclass
from math import log

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.config_checks import (
    Fact,
    Supports,
    agree,
    any_of,
    extent,
    length,
)
from burn_import.frontends.recipes.graph_writer import (
    BATCH,
    LENGTH,
    TARGET,
    RecipeWriter,
)
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.heads import vocabulary
from burn_ir import InvalidModel
from burn_ir.raw import RawModel

TABLE = "relative_attention_bias.weight"
LOWEST = float(np.finfo(np.float32).min)


def distances(w: RecipeWriter, places: str, last: int, mask: str | None) -> str:
    """Return the bias of scores by relative position, ``[1, heads, ...]``.

    Distances of ``last`` or more share one bias. With a ``mask`` attention is
    bidirectional, and the bias includes the mask.
    """
    ahead, here = (w.op("Unsqueeze", places, [axis]) for axis in (0, 1))
    rows = buckets(w, w.op("Sub", ahead, here), last, both=mask is not None)
    with w.module("relative_attention_bias", "Embedding"):
        weights = w.op("Gather", w.weight("weight"), rows)
    bias = w.op("Unsqueeze", w.op("Transpose", weights, perm=(2, 0, 1)), [0])
    if mask is None:
        return bias
    return w.op("Where", mask, bias, LOWEST, name="mask")


def buckets(w: RecipeWriter, distance: str, last: int, both: bool) -> str:
    """Return the bucket of each distance: exact if near, logarithmic if far."""
    rows = w.shape(TABLE)[0]
    if not both:
        back = w.op("Neg", w.op("Min", distance, 0))
        return rows_of(w, back, rows, last)
    near = rows_of(w, w.op("Abs", distance), rows // 2, last)
    ahead = w.op("Cast", w.op("Greater", distance, 0), to=7)
    return w.add(near, w.op("Mul", ahead, rows // 2))


def rows_of(w: RecipeWriter, distance: str, rows: int, last: int) -> str:
    """Return the bucket of non-negative distances; half of the buckets are exact.

    Raises:
        InvalidModel: ``last`` is not above the exact distances.
    """
    exact = rows // 2
    table = f"weight {shown(w.key(TABLE))} has {rows} rows for each direction"
    if not 0 < exact < last:
        raise InvalidModel(
            f"config 'relative_attention_max_distance': expected more than {exact}, "
            f"and rows for both near and far, since {table}, got {last}"
        )
    ratio = w.op("Div", w.op("Cast", w.op("Max", distance, exact), to=1), exact * 1.0)
    steps = w.op("Div", w.op("Log", ratio), log(last / exact))
    far = w.op("Cast", w.op("Mul", steps, float(rows - exact)), to=7)
    far = w.op("Min", w.add(far, exact), rows - 1)
    return w.op("Where", w.op("Less", distance, exact), distance, far)


def attend(
    w: RecipeWriter, x: str, other: str, mask: str, count: int, causal: bool = False
) -> str:
    """Apply attention to ``other`` without scaling, as in T5."""
    w.weights.ignore(w.key(TABLE))  # unused in old files
    query = w.heads(w.linear("q", x), count)
    key, value = (w.heads(w.linear(name, other), count) for name in "kv")
    attended = w.attention(query, key, value, mask, 1.0, causal)
    return w.linear("o", w.merged(attended))


FIRST = "block.0.layer.0.SelfAttention"
KINDS = ("t5", "mt5", "umt5")


@dataclass(frozen=True)
class AttentionInputs:
    """Inputs of attention in a stack: heads, positions, mask, and encoder states."""

    count: int
    places: str
    mask: str
    other: str = ""


SUPPORTS: Supports = {
    "is_decoder": (False,),
    **any_of("is_gated_act", "n_positions", "num_decoder_layers", "num_layers"),
    **any_of("scale_decoder_outputs"),
}


@recipe(
    "t5 (decoder)",
    "T5Model",
    f"decoder.{FIRST}.{TABLE}",
    kinds=KINDS,
    supports=SUPPORTS,
)
@recipe(
    "t5", "T5EncoderModel", f"encoder.{FIRST}.{TABLE}", kinds=KINDS, supports=SUPPORTS
)
def t5(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of T5's encoder, its decoder, or both (with logits)."""
    if w.inside("encoder"):
        input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
        mask = w.padding_mask(w.input("attention_mask", "int64", BATCH, LENGTH))
        x = stack(w, config, "encoder", input_ids, mask)
        if not w.inside("decoder"):
            w.called("T5EncoderModel")
            return w.model(last_hidden_state=x)
        ids = w.input("decoder_input_ids", "int64", BATCH, TARGET)
    else:
        width = w.shape("decoder.final_layer_norm.weight")[0]
        ids = w.input("decoder_input_ids", "int64", BATCH, TARGET)
        x = w.input("encoder_hidden_states", "float32", BATCH, LENGTH, width)
        mask = w.padding_mask(w.input("attention_mask", "int64", BATCH, LENGTH))
    return logits(w, config, stack(w, config, "decoder", ids, mask, x))


def logits(w: RecipeWriter, config: Config, x: str) -> RawModel:
    """Return the model of next-token scores, or of hidden states for ``T5Model``."""
    if any(name.endswith("T5Model") for name in config.architectures):
        w.called("T5Model")
        return w.model(last_hidden_state=x)
    w.called("T5ForConditionalGeneration")
    name = table_of(w, "decoder")
    table, width = w.key(name), extent(w, name, 1).number
    if is_scaled(config):
        x = w.op("Mul", x, width**-0.5)
    return w.model(logits=vocabulary(w, "lm_head", x, table))


def is_scaled(config: Config) -> bool:
    """Return whether the decoder's output is scaled by width**-0.5 before scores.

    T5 does so unless ``scale_decoder_outputs`` is false. Configurations that were
    written before Transformers 5 have ``tie_word_embeddings`` in its place. From
    Transformers 5 on mT5 never does so, and UMT5 always.

    Raises:
        NotClaimed: the result depends on an unknown version of Transformers.
    """
    is_tied = config.get("tie_word_embeddings", config.kind != "mt5")
    if config.kind == "t5":
        return config.get("scale_decoder_outputs", is_tied)
    version = str(config.value("transformers_version") or "")
    is_old = not re.match(r"([5-9]|\d\d)\.", version)
    if is_tied == (config.kind == "mt5") and is_old:
        raise NotClaimed(
            f"config 'tie_word_embeddings': expected {not is_tied}, since versions of "
            f"Transformers differ in {config.kind}'s scores if it is {is_tied}"
        )
    return config.kind == "umt5"


def table_of(w: RecipeWriter, name: str) -> str:
    """Return the key of a stack's token embedding: the shared one, or its own."""
    return "shared.weight" if w.has("shared.weight") else f"{name}.embed_tokens.weight"


def stack(
    w: RecipeWriter, config: Config, name: str, ids: str, mask: str, other: str = ""
) -> str:
    """Apply the encoder or, given encoder states ``other``, the decoder."""
    words = extent(w, table_of(w, name), 0)
    shared = w.has("shared.weight")
    if shared:
        w.weights.ignore(w.key(f"{name}.embed_tokens.weight"))
        x = w.embedding("shared", ids)
    with w.module(name, "T5Stack"):
        x = x if shared else w.embedding("embed_tokens", ids)
        count = check(w, config, words, bool(other))
        seen = AttentionInputs(count, w.positions(x), mask, other)
        bias = ""
        for number in range(w.count("block")):
            with w.module(f"block.{number}", "T5Block"):
                x, bias = block(w, config, x, bias, seen)
        return norm(w, config, "final_layer_norm", x)


def check(w: RecipeWriter, config: Config, words: Fact, decodes: bool) -> int:
    """Return the number of heads, after comparing configuration and weights."""
    count = extent(w, f"{FIRST}.{TABLE}", 1)
    inner = extent(w, f"{FIRST}.q.weight", 0)
    layers = {"num_decoder_layers" if decodes else "num_layers": length(w, "block")}
    agree(
        config,
        vocab_size=words,
        d_model=extent(w, "final_layer_norm.weight", 0),
        d_ff=extent(w, f"block.0.layer.{1 + decodes}.DenseReluDense.wo.weight", 1),
        num_heads=count,
        d_kv=Fact(inner.number // count.number, inner.clause),
        relative_attention_num_buckets=extent(w, f"{FIRST}.{TABLE}", 0),
        **layers,
    )
    return count.number


def block(
    w: RecipeWriter, config: Config, x: str, bias: str, seen: AttentionInputs
) -> tuple[str, str]:
    """Apply one layer: self-attention, cross-attention in a decoder, and MLP."""
    with w.module("layer.0", "T5LayerSelfAttention"):
        y = norm(w, config, "layer_norm", x)
        with w.module("SelfAttention", "T5Attention"):
            if w.has(TABLE):
                last = config.positive("relative_attention_max_distance", 128)
                hidden = None if seen.other else seen.mask
                bias = distances(w, seen.places, last, hidden)
            y = attend(w, y, y, bias, seen.count, causal=bool(seen.other))
        x = w.add(x, y)
    if seen.other:
        with w.module("layer.1", "T5LayerCrossAttention"):
            y = norm(w, config, "layer_norm", x)
            with w.module("EncDecAttention", "T5Attention"):
                y = attend(w, y, seen.other, seen.mask, seen.count)
            x = w.add(x, y)
    with w.module("layer.2" if seen.other else "layer.1", "T5LayerFF"):
        y = norm(w, config, "layer_norm", x)
        return w.add(x, network(w, config, y)), bias


def norm(w: RecipeWriter, config: Config, name: str, x: str) -> str:
    """Apply RMS norm called ``name``."""
    return w.rms_norm(name, x, config.get("layer_norm_epsilon", 1e-6))


def network(w: RecipeWriter, config: Config, x: str) -> str:
    """Apply the MLP: two linear layers, or three in a gated linear unit."""
    gated = w.has("DenseReluDense.wi_0.weight")
    with w.module(
        "DenseReluDense", "T5DenseGatedActDense" if gated else "T5DenseActDense"
    ):
        default = "relu" if config.kind == "t5" else "gated-gelu"
        act = config.get("feed_forward_proj", default).removeprefix("gated-")
        act = "gelu_new" if gated and act == "gelu" else act
        if config.value("dense_act_fn") is not None:
            act = config.get("dense_act_fn", act)
        if not gated:
            return w.linear("wo", w.activation(act, w.linear("wi", x)))
        gate = w.activation(act, w.linear("wi_0", x))
        return w.linear("wo", w.op("Mul", gate, w.linear("wi_1", x)))
