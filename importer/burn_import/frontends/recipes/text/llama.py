"""Llama and similar decoders: Mistral, Qwen2 and Qwen3."""

from functools import partial

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import BATCH, LENGTH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.decoders import (
    KEYS,
    SUPPORTS,
    AttentionOptions,
    check,
    gated_unit,
    head_size,
    masks,
    self_attention,
    windows,
)
from burn_import.frontends.recipes.text.heads import classes, is_headed, next_token
from burn_import.frontends.recipes.text.rope import angles
from burn_ir.raw import RawModel

EPS = 1e-6
#: Prefixes of class names for each kind.
NAMES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}


@recipe(
    "llama",
    "LlamaForCausalLM",
    *KEYS,
    kinds=tuple(NAMES),
    base="model",
    supports=SUPPORTS,
    without=("layers.0.pre_feedforward_layernorm.weight",),
)
def llama(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``LlamaForCausalLM``, or of ``LlamaModel`` without head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    normed = w.has("layers.0.self_attn.q_norm.weight")
    normed = normed or w.has("model.layers.0.self_attn.q_norm.weight")
    family = NAMES[config.kind or ("qwen3" if normed else "llama")]
    headed = is_headed(w, config, "model")
    with w.base("model", f"{family}Model"):
        table = w.key("embed_tokens.weight")
        x = model(w, config, family, input_ids, attention_mask)
    if w.has("score.weight"):
        return classes(w, family, x, attention_mask)
    w.called(f"{family}ForCausalLM" if headed else f"{family}Model")
    if headed:
        return w.model(logits=next_token(w, config, x, table))
    return w.model(last_hidden_state=x)


def model(
    w: RecipeWriter, config: Config, family: str, input_ids: str, attention_mask: str
) -> str:
    """Return the hidden states of all tokens."""
    size = head_size(w, config)
    check(w, config, size)
    norm = partial(w.rms_norm, eps=config.get("rms_norm_eps", EPS))
    seen = windows(w, config, 4096, partial(is_windowed, config))
    places = w.positions(input_ids)
    mask = masks(w, attention_mask, places, seen)
    x = w.embedding("embed_tokens", input_ids)
    with w.module("rotary_emb", f"{family}RotaryEmbedding"):
        table = angles(w, places, config, size)
    act = config.get("hidden_act", "silu")
    for number, window in enumerate(seen):
        options = AttentionOptions(size, mask[window], table)
        with w.module(f"layers.{number}", f"{family}DecoderLayer"):
            y = norm("input_layernorm", x)
            with w.module("self_attn", f"{family}Attention"):
                y = self_attention(w, y, options, norm)
            x = w.add(x, y)
            y = norm("post_attention_layernorm", x)
            with w.module("mlp", f"{family}MLP"):
                y = gated_unit(w, y, act)
            x = w.add(x, y)
    return norm("norm", x)


def is_windowed(config: Config, number: int) -> bool:
    """Return whether a layer attends to a sliding window only."""
    if config.kind in ("qwen2", "qwen3"):
        is_windowed = config.get("use_sliding_window", False)
        return is_windowed and number >= config.get("max_window_layers", 28)
    if config.kind != "mistral":
        return False
    return config.value("sliding_window") is not None or (
        "sliding_window" not in config.values
    )
