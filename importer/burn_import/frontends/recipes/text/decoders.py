"""Parts shared by decoders with rotary positions: Llama and relatives, Gemma."""

from collections.abc import Callable
from dataclasses import dataclass

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.config_checks import (
    Fact,
    agree,
    any_of,
    extent,
    heads,
    length,
)
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_import.frontends.recipes.text.rope import rotate
from burn_ir import InvalidModel

FIRST = "layers.0.self_attn"
#: Keys that all these decoders have.
KEYS = (
    "embed_tokens.weight",
    f"{FIRST}.q_proj.weight",
    "layers.0.mlp.gate_proj.weight",
    "layers.0.input_layernorm.weight",
    "layers.0.post_attention_layernorm.weight",
)
#: Entries without effect here: weights show biases, and only some rotary scalings
#: depend on the length.
SUPPORTS: dict[str, tuple[object, ...]] = {
    "partial_rotary_factor": (1.0,),
    **any_of("attention_bias", "max_position_embeddings", "mlp_bias"),
}
Norm = Callable[[str, str], str]


@dataclass(frozen=True)
class AttentionOptions:
    """Options of attention: head size, mask, rotation, scale and soft cap."""

    size: int
    mask: str
    angles: tuple[str, str]
    scale: float | None = None
    softcap: float = 0.0


def check(w: RecipeWriter, config: Config, size: int) -> None:
    """Check that the configuration's numbers equal those of the weights.

    Raises:
        InvalidModel: some differ; they are listed.
    """
    groups, rest = divmod(w.shape(f"{FIRST}.k_proj.weight")[0], size)
    shared = extent(w, f"{FIRST}.k_proj.weight", 0)
    if rest:
        raise InvalidModel(
            f"expected a multiple of the head size {size}, since {shared.clause}"
        )
    clause = f"{shared.clause} and heads have {size} features"
    agree(
        config,
        vocab_size=extent(w, "embed_tokens.weight", 0),
        hidden_size=extent(w, "embed_tokens.weight", 1),
        intermediate_size=extent(w, "layers.0.mlp.gate_proj.weight", 0),
        num_hidden_layers=length(w, "layers"),
        num_key_value_heads=Fact(groups, clause),
    )


def head_size(w: RecipeWriter, config: Config, usual: int = 0) -> int:
    """Return the number of features of a head, from its norm or the configuration.

    ``usual`` is the default of ``head_dim`` where that is not width / heads.
    """
    width = w.shape(f"{FIRST}.q_proj.weight")[0]
    if w.has(f"{FIRST}.q_norm.weight"):
        fact = extent(w, f"{FIRST}.q_norm.weight", 0)
        count = Fact(width // fact.number, fact.clause)
        agree(config, head_dim=fact, num_attention_heads=count)
        return fact.number
    size = config.get("head_dim", usual) if usual else config.value("head_dim")
    if isinstance(size, int) and size > 0 and width % size == 0:
        clause = f"{extent(w, f'{FIRST}.q_proj.weight', 0).clause} and 'head_dim' is"
        agree(config, num_attention_heads=Fact(width // size, f"{clause} {size}"))
        return size
    return width // heads(w, config, f"{FIRST}.q_proj")


def windows(
    w: RecipeWriter, config: Config, usual: int, is_windowed: Callable[[int], bool]
) -> list[int]:
    """Return the attention window of each layer, 0 for full attention.

    ``is_windowed`` decides which layers have a window if ``layer_types`` is missing.
    """
    count = w.count("layers")
    kinds = config.value("layer_types")
    if kinds is None:
        chosen = [is_windowed(number) for number in range(count)]
    elif isinstance(kinds, list) and len(kinds) == count:
        if not {*map(str, kinds)} <= {"sliding_attention", "full_attention"}:
            raise NotClaimed(f"config 'layer_types': got {shown(kinds)}")
        chosen = [kind == "sliding_attention" for kind in kinds]
    else:
        raise InvalidModel(
            f"config 'layer_types': expected {count}, got {shown(kinds)}"
        )
    for key in ("sliding_window", "use_sliding_window", "max_window_layers"):
        config.value(key)
    window = config.get("sliding_window", usual) if any(chosen) else 0
    return [window if each else 0 for each in chosen]


def masks(
    w: RecipeWriter, attention_mask: str, places: str, seen: list[int]
) -> dict[int, str]:
    """Return the bool mask for each window size, without the causal mask."""
    mask = w.padding_mask(attention_mask)
    by_window = {0: mask}
    for window in sorted({*seen} - {0}):
        rows, columns = (w.op("Unsqueeze", places, [axis]) for axis in (1, 0))
        near = w.op("Less", w.op("Sub", rows, columns), window)
        by_window[window] = w.op("And", mask, near, name="mask")
    return by_window


def self_attention(
    w: RecipeWriter, x: str, options: AttentionOptions, norm: Norm
) -> str:
    """Apply causal attention with rotary positions and grouped queries."""
    w.weights.ignore(w.key("rotary_emb.inv_freq"))
    parts = []
    for name in "qkv":
        count = w.shape(f"{name}_proj.weight")[0] // options.size
        part = w.linear(f"{name}_proj", x)
        if w.has(f"{name}_norm.weight"):
            split = w.op("Reshape", part, [0, 0, count, options.size])
            normed = norm(f"{name}_norm", split)
            parts.append(w.op("Transpose", normed, perm=(0, 2, 1, 3)))
        else:
            parts.append(w.heads(part, count))
    query, key = (
        rotate(w, part, options.angles, name)
        for part, name in zip(parts[:2], ("query", "key"), strict=True)
    )
    attended = w.attention(
        query, key, parts[2], options.mask, options.scale, True, options.softcap
    )
    return w.linear("o_proj", w.merged(attended))


def gated_unit(w: RecipeWriter, x: str, act: str) -> str:
    """Apply a gated linear unit: ``down(act(gate(x)) * up(x))``."""
    gate = w.activation(act, w.linear("gate_proj", x))
    return w.linear("down_proj", w.op("Mul", gate, w.linear("up_proj", x)))
