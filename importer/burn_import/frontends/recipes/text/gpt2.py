"""GPT-2: a decoder whose linear layers store transposed matrices."""

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
from burn_import.frontends.recipes.text.heads import (
    classes,
    is_headed,
    next_token,
    scores,
)
from burn_ir.raw import RawModel


@recipe(
    "gpt2",
    "GPT2LMHeadModel",
    "wte.weight",
    "wpe.weight",
    "h.0.attn.c_attn.weight",
    base="transformer",
    supports={
        "add_cross_attention": (False,),
        **any_of(
            *("n_ctx", "reorder_and_upcast_attn", "summary_activation"),
            *("summary_proj_to_labels", "summary_type", "summary_use_proj"),
        ),
    },
)
def gpt2(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of ``GPT2LMHeadModel``, or of ``GPT2Model`` without head."""
    input_ids = w.input("input_ids", "int64", BATCH, LENGTH)
    attention_mask = w.input("attention_mask", "int64", BATCH, LENGTH)
    headed = is_headed(w, config, "transformer")
    with w.base("transformer", "GPT2Model"):
        table = w.key("wte.weight")
        x = model(w, config, input_ids, attention_mask)
    if w.has("score.weight"):
        return classes(w, "GPT2", x, attention_mask)
    logits = scores(w, "GPT2", x, None)
    if logits is not None:
        return logits
    if headed:
        return w.model(logits=next_token(w, config, x, table))
    w.called("GPT2Model")
    return w.model(last_hidden_state=x)


def model(w: RecipeWriter, config: Config, input_ids: str, attention_mask: str) -> str:
    """Return the hidden states of all tokens."""
    agree(
        config,
        vocab_size=extent(w, "wte.weight", 0),
        n_embd=extent(w, "wte.weight", 1),
        n_positions=extent(w, "wpe.weight", 0),
        n_inner=extent(w, "h.0.mlp.c_fc.weight", 1),
        n_layer=length(w, "h"),
    )
    eps = config.get("layer_norm_epsilon", 1e-5)
    places = w.op("Unsqueeze", w.positions(input_ids), [0])
    x = w.add(w.embedding("wte", input_ids), w.embedding("wpe", places))
    mask = w.padding_mask(attention_mask)
    for number in range(w.count("h")):
        with w.module(f"h.{number}", "GPT2Block"):
            x = block(w, config, x, mask, number, eps)
    return w.layer_norm("ln_f", x, eps)


def block(
    w: RecipeWriter, config: Config, x: str, mask: str, number: int, eps: float
) -> str:
    """Apply one pre-norm layer of attention and MLP."""
    y = w.layer_norm("ln_1", x, eps)
    with w.module("attn", "GPT2Attention"):
        y = self_attention(w, config, y, mask, number)
    x = w.add(y, x)
    y = w.layer_norm("ln_2", x, eps)
    with w.module("mlp", "GPT2MLP"):
        act = config.get("activation_function", "gelu_new")
        y = conv1d(w, "c_proj", w.activation(act, conv1d(w, "c_fc", y)))
    return w.add(x, y)


def self_attention(
    w: RecipeWriter, config: Config, x: str, mask: str, number: int
) -> str:
    """Apply causal attention with a packed projection of q, k and v."""
    w.weights.ignore(w.key("bias"), w.key("masked_bias"))
    count = heads(w, config, "c_proj", "n_head")
    parts = w.many("Split", 3, conv1d(w, "c_attn", x), axis=-1, num_outputs=3)
    query, key, value = (w.heads(part, count) for part in parts)
    scale = scaling(config, w.shape("c_proj.weight")[0] // count, number)
    attended = w.attention(query, key, value, mask, scale=scale, causal=True)
    return conv1d(w, "c_proj", w.merged(attended))


def scaling(config: Config, size: int, number: int) -> float | None:
    """Return the scale of a layer's scores; None for 1 / sqrt(size)."""
    is_scaled = config.get("scale_attn_weights", True)
    divided = config.get("scale_attn_by_inverse_layer_idx", False)
    if is_scaled and not divided:
        return None
    return (size**-0.5 if is_scaled else 1.0) / (number + 1 if divided else 1)


def conv1d(w: RecipeWriter, name: str, x: str) -> str:
    """Apply ``Conv1D`` called ``name``: a linear layer with matrix ``[in, out]``."""
    with w.module(name, "Conv1D"):
        return w.op("Conv1D", x, w.weight("weight"), w.weight("bias"))
