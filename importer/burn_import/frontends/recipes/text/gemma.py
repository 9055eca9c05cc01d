"""Gemma, Gemma 2 and the text model of Gemma 3."""

from functools import partial

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.config_checks import any_of
from burn_import.frontends.recipes.graph_writer import BATCH, LENGTH, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.text.decoders import (
    KEYS,
    SUPPORTS,
    AttentionOptions,
    Norm,
    check,
    gated_unit,
    head_size,
    masks,
    self_attention,
    windows,
)
from burn_import.frontends.recipes.text.heads import (
    classes,
    is_headed,
    next_token,
    soft_cap,
)
from burn_import.frontends.recipes.text.rope import angles, has_layer_types
from burn_ir.raw import RawModel

#: The default size of a head.
HEAD = 256
WINDOW = 4096
#: Values in older configurations that mean the GELU approximation by ``tanh``.
ACTIVATIONS = {"hidden_act": ("gelu", "gelu_pytorch_tanh")}


@recipe(
    "gemma",
    "GemmaForCausalLM",
    *KEYS,
    kinds=("gemma",),
    base="model",
    supports=SUPPORTS | ACTIVATIONS,
    without=(
        "layers.0.pre_feedforward_layernorm.weight",
        "layers.0.self_attn.q_norm.weight",
    ),
)
@recipe(
    "gemma2",
    "Gemma2ForCausalLM",
    *KEYS,
    "layers.0.pre_feedforward_layernorm.weight",
    kinds=("gemma2", "gemma3_text"),
    base="model",
    supports={
        "use_bidirectional_attention": (False,),
        **SUPPORTS,
        **ACTIVATIONS,
        **any_of("_sliding_window_pattern", "final_logit_softcapping"),
        **any_of("rope_local_base_freq", "sliding_window_pattern"),
    },
)
def gemma(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``GemmaForCausalLM``, or of ``GemmaModel`` without head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    headed = is_headed(w, config, "model")
    with w.base("model", "GemmaModel"):
        table = w.key("embed_tokens.weight")
        third = w.has("layers.0.self_attn.q_norm.weight")
        second = w.has("layers.0.pre_feedforward_layernorm.weight")
        family = "Gemma3" if third else "Gemma2" if second else "Gemma"
        w.called(f"{family}Model")
        x = model(w, config, family, input_ids, attention_mask)
    if w.has("score.weight"):
        return classes(w, family, x, attention_mask)
    w.called(f"{family}ForCausalLM" if headed else f"{family}Model")
    if not headed:
        return w.model(last_hidden_state=x)
    logits = next_token(w, config, x, table)
    default = 30.0 if family == "Gemma2" else 0.0
    return w.model(logits=soft_cap(w, logits, cap(config, "final", default)))


def cap(config: Config, which: str, default: float) -> float:
    """Return the soft cap of scores; 0 without one (null in the configuration)."""
    key = f"{which}_logit_softcapping"
    absent = config.value(key) is None and key in config.values
    return config.get(key, default) if default and not absent else 0.0


def model(
    w: RecipeWriter, config: Config, family: str, input_ids: str, attention_mask: str
) -> str:
    """Return the hidden states of all tokens."""
    size = head_size(w, config, HEAD)
    check(w, config, size)
    norm = partial(gemma_norm, w, family, config.get("rms_norm_eps", 1e-6))
    seen = windows(w, config, WINDOW, partial(is_windowed, config, family))
    places = w.positions(input_ids)
    mask = masks(w, attention_mask, places, seen)
    x = w.embedding("embed_tokens", input_ids)
    x = w.op("Mul", x, w.shape("embed_tokens.weight")[1] ** 0.5)
    tables = angles_of(w, config, family, places, size)
    scale, bound = None, 0.0
    if family != "Gemma":
        scalar = config.positive("query_pre_attn_scalar", 256)
        scale = None if scalar == size else scalar**-0.5
    if family == "Gemma2":
        bound = cap(config, "attn", 50.0)
    for number, window in enumerate(seen):
        table = tables[bool(window)]
        options = AttentionOptions(size, mask[window], table, scale, bound)
        with w.module(f"layers.{number}", f"{family}DecoderLayer"):
            x = layer(w, config, family, x, options, norm)
    return norm("norm", x)


def is_windowed(config: Config, family: str, number: int) -> bool:
    """Return whether a layer attends to a sliding window only."""
    if family == "Gemma3":
        return (number + 1) % config.positive("sliding_window_pattern", 6) != 0
    return family == "Gemma2" and number % 2 == 0


def angles_of(
    w: RecipeWriter, config: Config, family: str, places: str, size: int
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the cosines and sines of layers with full and with windowed attention."""
    with w.module("rotary_emb", f"{family}RotaryEmbedding"):
        default = 1e6 if family == "Gemma3" else 1e4
        table = angles(w, places, config, size, default, "full_attention")
    if family != "Gemma3":
        return table, table
    with w.module("rotary_emb_local", f"{family}RotaryEmbedding"):
        if has_layer_types(config):
            return table, angles(w, places, config, size, 1e4, "sliding_attention")
        theta = config.get("rope_local_base_freq", 1e4)
        local = Config({"rope_theta": theta})
        return table, angles(w, places, local, size)


def layer(
    w: RecipeWriter,
    config: Config,
    family: str,
    x: str,
    options: AttentionOptions,
    norm: Norm,
) -> str:
    """Apply one layer; from Gemma 2 on, branches are normalized before addition."""
    y = norm("input_layernorm", x)
    with w.module("self_attn", f"{family}Attention"):
        y = self_attention(w, y, options, norm)
    y = y if family == "Gemma" else norm("post_attention_layernorm", y)
    x = w.add(x, y)
    before = "pre_feedforward" if family != "Gemma" else "post_attention"
    y = norm(f"{before}_layernorm", x)
    with w.module("mlp", f"{family}MLP"):
        # ``hidden_act`` of the first files is wrong: the models were trained with this
        # one.
        y = gated_unit(w, y, config.get("hidden_activation", "gelu_pytorch_tanh"))
    y = y if family == "Gemma" else norm("post_feedforward_layernorm", y)
    return w.add(x, y)


def gemma_norm(w: RecipeWriter, family: str, eps: float, name: str, x: str) -> str:
    """Apply RMS norm called ``name``, which scales by ``1 + weight``."""
    with w.module(name, f"{family}RMSNorm"):
        scale = w.add(w.weight("weight"), 1.0)
        return w.op("RMSNormalization", x, scale, epsilon=eps, axis=-1)
