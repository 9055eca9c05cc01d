"""Llama and the decoders that are like it: Mistral, Qwen2 and Qwen3."""

from __future__ import annotations

from burn_import.recipes.config import Config
from burn_import.recipes.rope import angles, frequencies, turned
from burn_import.recipes.table import recipe
from burn_import.recipes.writer import BATCH, LENGTH, Writer
from burn_ir.raw import RawModel

#: The size of a head where no configuration says how many there are.
HEAD = 128
EPS = 1e-6
#: How the classes of each kind begin.
NAMES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}


@recipe(
    "llama",
    "LlamaForCausalLM",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.0.mlp.gate_proj.weight",
    "model.layers.0.post_attention_layernorm.weight",
    "model.embed_tokens.weight",
    kinds=tuple(NAMES),
)
def llama(w: Writer, config: Config) -> RawModel:
    """The graph of ``LlamaForCausalLM``: logits of the next token at every place."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    family = NAMES.get(config.kind, "Llama")
    eps = config.get("rms_norm_eps", EPS)
    with w.module("model", f"{family}Model"):
        size = head_size(w, config)
        x = w.embedding("embed_tokens", input_ids)
        mask = visible(w, attention_mask, config)
        places = w.positions(input_ids)
        with w.module("rotary_emb", f"{family}RotaryEmbedding"):
            turn = angles(w, places, frequencies(config, size))
        for number in range(w.count("layers")):
            with w.module(f"layers.{number}", f"{family}DecoderLayer"):
                x = layer(w, x, mask, turn, size, family, config)
        x = w.rms_norm("norm", x, eps)
    return w.model(logits=head(w, x))


def head(w: Writer, x: str) -> str:
    """The scores of all tokens; the table of tokens may be the weight."""
    if w.has("lm_head.weight"):
        return w.linear("lm_head", x)
    with w.module("lm_head", "Linear"):
        return w.op("Linear", x, "model.embed_tokens.weight")


def head_size(w: Writer, config: Config) -> int:
    """How many features a head has."""
    width = w.shape("layers.0.self_attn.q_proj.weight")[0]
    if w.has("layers.0.self_attn.q_norm.weight"):
        return w.shape("layers.0.self_attn.q_norm.weight")[0]
    count = config.get("num_attention_heads", max(width // HEAD, 1))
    return config.get("head_dim", width // count)


def visible(w: Writer, attention_mask: str, config: Config) -> str:
    """What tokens may see of each other beside their order, bool."""
    mask = w.padding_mask(attention_mask)
    window = config.get("sliding_window", 0)
    if not window or not config.get("use_sliding_window", config.kind != "qwen2"):
        return mask
    places = w.positions(attention_mask)
    rows, columns = (w.op("Unsqueeze", places, [axis]) for axis in (1, 0))
    near = w.op("Less", w.op("Sub", rows, columns), window)
    return w.op("And", mask, near, name="mask")


def layer(
    w: Writer,
    x: str,
    mask: str,
    turn: tuple[str, str],
    size: int,
    family: str,
    config: Config,
) -> str:
    """One layer: attention and a gated network, each on what is normalised."""
    eps = config.get("rms_norm_eps", EPS)
    y = w.rms_norm("input_layernorm", x, eps)
    with w.module("self_attn", f"{family}Attention"):
        y = self_attention(w, y, mask, turn, size, eps)
    x = w.add(x, y)
    y = w.rms_norm("post_attention_layernorm", x, eps)
    with w.module("mlp", f"{family}MLP"):
        gate = w.activation(config.get("hidden_act", "silu"), w.linear("gate_proj", y))
        y = w.linear("down_proj", w.op("Mul", gate, w.linear("up_proj", y)))
    return w.add(x, y)


def self_attention(
    w: Writer, x: str, mask: str, turn: tuple[str, str], size: int, eps: float
) -> str:
    """Causal attention of turned queries and keys; several queries share a key."""
    parts = []
    for name in ("q", "k", "v"):
        count = w.shape(f"{name}_proj.weight")[0] // size
        part = w.linear(f"{name}_proj", x)
        if w.has(f"{name}_norm.weight"):
            split = w.op("Reshape", part, [0, 0, count, size])
            normed = w.rms_norm(f"{name}_norm", split, eps)
            part = w.op("Transpose", normed, perm=(0, 2, 1, 3))
        else:
            part = w.heads(part, count)
        parts.append(part)
    query, key, value = parts
    query = turned(w, query, turn, "query")
    key = turned(w, key, turn, "key")
    attended = w.attention(query, key, value, mask, causal=True)
    return w.linear("o_proj", w.merged(attended))
