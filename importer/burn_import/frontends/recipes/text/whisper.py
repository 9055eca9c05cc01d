"""Whisper: an encoder of spectrograms and a decoder of text."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import (
    agree,
    any_of,
    extent,
    heads,
    length,
)
from burn_import.frontends.recipes.graph_writer import (
    BATCH,
    LENGTH,
    TARGET,
    RecipeWriter,
)
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.heads import is_headed, next_token
from burn_ir.raw import RawModel

EPS = 1e-5
KINDS = ("whisper",)
#: Entries of training, of feature extraction, and of an absent half of the model.
SUPPORTS = any_of(
    *("apply_spec_augment", "classifier_proj_size", "decoder_attention_heads"),
    *("decoder_ffn_dim", "decoder_layers", "encoder_attention_heads"),
    *("encoder_ffn_dim", "encoder_layers", "mask_feature_length"),
    *("mask_feature_min_masks", "mask_feature_prob", "mask_time_length"),
    *("mask_time_min_masks", "mask_time_prob", "max_source_positions"),
    *("max_target_positions", "median_filter_width", "num_hidden_layers"),
    *("num_mel_bins", "scale_embedding", "use_weighted_layer_sum", "vocab_size"),
)
STEM = ("conv1.weight", "conv2.weight", "embed_positions.weight")


@recipe(
    "whisper (decoder)",
    "WhisperModel",
    "decoder.layers.0.encoder_attn.q_proj.weight",
    "decoder.embed_positions.weight",
    "decoder.layer_norm.weight",
    kinds=KINDS,
    supports=SUPPORTS,
    base="model",
    without=("encoder.conv1.weight", "decoder.layers.0.self_attn.k_proj.bias"),
)
@recipe(
    "whisper",
    "WhisperModel",
    *(f"encoder.{key}" for key in STEM),
    kinds=KINDS,
    supports=SUPPORTS,
    base="model",
)
def whisper(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of the encoder, the decoder, or both; a decoder gives logits."""
    headed = is_headed(w, config, "model", "proj_out")
    with w.base("model", "WhisperModel"):
        if w.inside("encoder"):
            with w.module("encoder", "WhisperEncoder"):
                x = encoder(w, config)
            if not w.inside("decoder"):
                return w.model(last_hidden_state=x)
            ids = w.input("decoder_input_ids", "int64", BATCH, TARGET)
        else:
            width = w.shape("decoder.layer_norm.weight")[0]
            ids = w.input("decoder_input_ids", "int64", BATCH, TARGET)
            x = w.input("encoder_hidden_states", "float32", BATCH, LENGTH, width)
        mask = w.input("decoder_attention_mask", "int64", BATCH, TARGET)
        table = w.key("decoder.embed_tokens.weight")
        with w.module("decoder", "WhisperDecoder"):
            x = decoder(w, config, ids, x, mask)
    if not headed:
        return w.model(last_hidden_state=x)
    whole = any(key.startswith("input_features") for key in w.inputs)
    w.called(f"WhisperFor{'ConditionalGeneration' if whole else 'CausalLM'}")
    return w.model(logits=next_token(w, config, x, table, "proj_out"))


@recipe(
    "whisper (encoder)",
    "WhisperEncoder",
    *STEM,
    "layers.0.self_attn.q_proj.weight",
    kinds=KINDS,
    supports=SUPPORTS,
)
def whisper_encoder(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``WhisperEncoder``: hidden states of a spectrogram."""
    return w.model(last_hidden_state=encoder(w, config))


def encoder(w: RecipeWriter, config: Config) -> str:
    """Return the hidden states of ``input_features``, a spectrogram of full length."""
    agree(
        config,
        num_mel_bins=extent(w, "conv1.weight", 1),
        d_model=extent(w, "conv1.weight", 0),
        max_source_positions=extent(w, "embed_positions.weight", 0),
        encoder_ffn_dim=extent(w, "layers.0.fc1.weight", 0),
        encoder_layers=length(w, "layers"),
    )
    bins, frames = w.shape("conv1.weight")[1], 2 * w.shape("embed_positions.weight")[0]
    x = w.input("input_features", "float32", BATCH, bins, frames)
    x = w.op("Gelu", w.conv("conv1", x))
    x = w.op("Gelu", w.conv("conv2", x, stride=2))
    x = w.add(w.op("Transpose", x, perm=(0, 2, 1)), w.weight("embed_positions.weight"))
    for number in range(w.count("layers")):
        with w.module(f"layers.{number}", "WhisperEncoderLayer"):
            count = heads(w, config, "self_attn.q_proj", "encoder_attention_heads")
            y = w.layer_norm("self_attn_layer_norm", x, EPS)
            x = w.add(x, attention(w, "self_attn", count, y, y))
            x = w.add(x, network(w, config, x))
    return w.layer_norm("layer_norm", x, EPS)


def decoder(
    w: RecipeWriter, config: Config, ids: str, other: str, attention_mask: str
) -> str:
    """Return the hidden states of tokens, with cross-attention to ``other``."""
    agree(
        config,
        vocab_size=extent(w, "embed_tokens.weight", 0),
        d_model=extent(w, "embed_tokens.weight", 1),
        max_target_positions=extent(w, "embed_positions.weight", 0),
        decoder_ffn_dim=extent(w, "layers.0.fc1.weight", 0),
        decoder_layers=length(w, "layers"),
    )
    mask = w.padding_mask(attention_mask)
    x = w.embedding("embed_tokens", ids)
    if config.get("scale_embedding", False):
        x = w.op("Mul", x, w.shape("embed_tokens.weight")[1] ** 0.5)
    x = w.add(x, w.embedding("embed_positions", w.positions(ids)))
    for number in range(w.count("layers")):
        with w.module(f"layers.{number}", "WhisperDecoderLayer"):
            count = heads(w, config, "self_attn.q_proj", "decoder_attention_heads")
            y = w.layer_norm("self_attn_layer_norm", x, EPS)
            x = w.add(x, attention(w, "self_attn", count, y, y, mask))
            y = w.layer_norm("encoder_attn_layer_norm", x, EPS)
            x = w.add(x, attention(w, "encoder_attn", count, y, other))
            x = w.add(x, network(w, config, x))
    return w.layer_norm("layer_norm", x, EPS)


def attention(
    w: RecipeWriter, name: str, count: int, x: str, other: str, mask: str | None = None
) -> str:
    """Apply attention to ``other``; causal if there is a ``mask``."""
    with w.module(name, "WhisperAttention"):
        query = w.heads(w.linear("q_proj", x), count)
        key, value = (w.heads(w.linear(f"{n}_proj", other), count) for n in "kv")
        attended = w.attention(query, key, value, mask, causal=mask is not None)
        return w.linear("out_proj", w.merged(attended))


def network(w: RecipeWriter, config: Config, x: str) -> str:
    """Apply two linear layers to the normalized input."""
    y = w.linear("fc1", w.layer_norm("final_layer_norm", x, EPS))
    act = config.get("activation_function", "gelu")
    return w.linear("fc2", w.activation(act, y))
