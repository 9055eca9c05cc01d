"""Configurations of transformers with every size reduced, by the names of fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

VOCABULARY = 100
#: Sizes by the ends of field names; the first pattern that matches counts.
RULES: tuple[tuple[str, int], ...] = (
    (r"(num|n)_(key_value|kv)_heads|head_kv|_kv_heads", 2),
    (r"vision_hidden_dim|hidden_act\w*", 0),
    (r"moe_intermediate_size|expert_(hidden|intermediate)_size|moe_ffn\w*", 32),
    (r"(intermediate|feed_?forward|ffn_hidden|ffn|inner)_size|d_ff|d_inner", 64),
    (r"(ffn|mlp|inner|feed_?forward|fc|filter)_dim|n_inner", 64),
    (r"(hidden|embed(ding)?|projection|proj|model|encoder|decoder)_(size|dim)", 32),
    (r"hidden_(size|dim)_per_layer_input|word_embed_proj_dim|classifier_proj_size", 32),
    (r"d_model|n_embd|dim|emb_dim|width|hidden_channels|d_embed|model_dimension", 32),
    (r"(query|key|value|qkv|attention|attn|text|image|audio|vision)_dim", 32),
    (r"(hidden_)?layers|n_layer|n_layers|depth|num_blocks|num_layer", 2),
    (r"attention_heads|n_heads?|num_heads|nhead|heads", 4),
    (r"(head|rope|nope)_dim|kv_channels|d_kv|attention_head_size", 8),
    (r"lora_rank|lora_dim|(q|o|kv)_rank|(low|laurel)_rank", 16),
    (r"codebook_size|n_codes", 64),
    (r"vocab_size\w*|num_embeddings", VOCABULARY),
    (r"(max|n)_\w*positions?(_embeddings)?|max_seq_?len\w*|n_ctx|seq_length", 64),
    (r"(source|target)_positions|max_length|position_buckets|max_sequence_length", 64),
    (r"(local|routed|num|n)_experts|moe_num_experts|experts", 4),
    (r"experts_per_tok\w*|moe_k|moe_topk|top_k_experts|num_selected_experts", 2),
    (r"n_group|topk_group|num_expert_group", 1),
    (r"num_queries|num_object_queries|num_proposals", 10),
    (r"conv_dim|channels_out|upsample_initial_channel", 32),
    (r"sliding_window|attention_window|local_attention|chunk_size|context_size", 8),
)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
#: Settings of types of models whose fields depend on each other.
SETTINGS: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 16, "n_groups": 1},
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 8},
    "zamba2": {"n_mamba_heads": 8, "mamba_headdim": 8, "mamba_ngroups": 1},
    "nemotron_h": {"mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 1},
    "reformer": {
        "axial_pos_embds": False,
        "attn_layers": ["local", "local"],
        "local_attn_chunk_length": 4,
    },
    "funnel": {"block_sizes": [1, 1], "d_head": 8, "n_head": 4},
    "xlnet": {"d_model": 32, "n_head": 4, "d_head": 8},
    "longformer": {"attention_window": 4},
    "led": {"attention_window": 4},
    "big_bird": {"attention_type": "original_full"},
    "swin": {"image_size": 64, "window_size": 4},
    "mobilebert": {"intra_bottleneck_size": 16, "true_hidden_size": 16},
    "efficientnet": {"width_coefficient": 1.0, "depth_coefficient": 1.0}
    | {"hidden_dim": 1280, "image_size": 64},
    "align_vision_model": {"width_coefficient": 1.0, "depth_coefficient": 1.0}
    | {"hidden_dim": 1280, "image_size": 64},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "cohere_compass_text": {"layer_types": ["sliding_attention", "full_attention"]},
    "timm_backbone": {"backbone": "resnet18", "use_pretrained_backbone": False},
    "xmod": {"default_language": "en_XX"},
    "chameleon": {"vocabulary_map": {"<image>": 90}},
    "zoedepth": {"bottleneck_features": 32, "fusion_hidden_size": 32},
    "cosmos3_edge_text": {
        "head_dim": 8,
        "rope_parameters": ROPE | {"mrope_section": [2, 1, 1]},
    },
    "musicgen_decoder": {"num_codebooks": 1},
    "musicgen_melody_decoder": {"num_codebooks": 1},
    "bridgetower": {"hidden_size": 128},
    "bridgetower_text_model": {"hidden_size": 128},
    "bridgetower_vision_model": {"hidden_size": 128},
    "helium": {"head_dim": 8},
    "glm4v_moe_text": {"rope_parameters": ROPE | {"mrope_section": [1, 1, 0]}},
    "glm_image_text": {"rope_parameters": ROPE | {"mrope_section": [2, 1, 1]}},
    "gptj": {"rotary_dim": 4},
    "codegen": {"rotary_dim": 4},
}


#: Numbers that are set whatever the default is, by the whole name of the field.
EXACT: dict[str, int] = {
    "num_kv_shared_layers": 0,
    "prediction_length": 4,
    "context_length": 16,
    "upsample_groups": 32,
    "qk_head_dim": 16,
}
#: Fields whose number follows from another field and is kept.
DERIVED = re.compile(r"num_feat_extract_layers|hidden_size_per_layer_input")
#: Lists with an entry for each stage whose entries depend on other lists.
STAGES = re.compile("stem_|stage_")
#: What a field gets that is None by default, where models need a number.
FILLED: dict[str, Any] = {
    "head_dim": 8,
    "num_key_value_heads": 4,
    "num_attention_heads": 4,
    "hidden_size": 32,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "num_hidden_layers": 2,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
    "top_k_experts": 2,
    "n_group": 1,
    "topk_group": 1,
    "num_experts": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "prediction_length": 4,
    "context_length": 16,
    "image_token_id": 90,
    "image_token_index": 90,
}

TOKEN = re.compile(r"_token_(id|ids|index|indices)$|_token$|_idx$")
#: Fields that may change alone, where widths depend on each other in other ways.
DEPTH = re.compile(
    r"(layers|n_layers?|depth|num_blocks|vocab_size\w*|experts|positions?(_embeddings)?)$"
)
KEPT = re.compile("model_type|layer_types|mlp_layer_types")
#: Fields that classes compute from others.
COMPUTED = (
    *("stage_names", "id2label", "label2id", "transformers_version", "dtype"),
    "per_layer_config",
)
#: Types whose rotary embeddings have sections for time, height and width.
SECTIONS = re.compile(r"qwen2\w*(vl|omni)|paddleocr_vl|ernie4_5_vl|hunyuan_vl|glm4v")


def small_config(
    kind: Any, model_type: str, is_shallow_only: bool = False, is_filled: bool = False
) -> Any:
    """Return a configuration of class ``kind`` with small sizes.

    ``is_shallow_only`` keeps widths and images, and has fewer layers, words and
    experts. ``is_filled`` also sets numbers that are None by default.
    """
    changes = _changes(kind().to_dict(), model_type, [VOCABULARY - 1], is_filled)
    return kind(**(_only_depth(changes) if is_shallow_only else changes))


def _only_depth(changes: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in changes.items():
        if _is_configuration(name, value):
            kept[name] = _only_depth(value)
        elif KEPT.fullmatch(name) or TOKEN.search(name) or DEPTH.search(name):
            kept[name] = value
    return kept


def _is_configuration(name: str, value: Any) -> bool:
    """Return whether the field holds an inner configuration."""
    is_mapping = isinstance(value, Mapping) and name not in COMPUTED
    return is_mapping and (name.endswith("_config") or "model_type" in value)


def _changes(
    defaults: Mapping[str, Any], model_type: str, token: list[int], is_filled: bool
) -> dict[str, Any]:
    """Return the fields to set, inner configurations included."""
    layers = _layer_count(defaults)
    changes: dict[str, Any] = {}
    for name, value in defaults.items():
        if _is_configuration(name, value):
            changes[name] = _inner_fields(value, token, is_filled)
        elif value is None and is_filled and name in FILLED:
            changes[name] = FILLED[name]
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int):
            _set_number(changes, name, value, token)
        elif isinstance(value, list | tuple) and value:
            if name == "out_channels" and "in_channels" in defaults:
                continue  # one entry for each block, as the other lists
            _set_list(changes, name, list(value), layers)
        elif name == "rope_parameters" and isinstance(value, Mapping):
            changes[name] = _small_rope(value)
    _keep_head_ratio(changes, defaults)
    _set_image(changes, defaults)
    if SECTIONS.search(model_type) and isinstance(
        defaults.get("rope_parameters"), Mapping
    ):
        changes["rope_parameters"] = ROPE | {"mrope_section": [2, 1, 1]}
    return changes | SETTINGS.get(model_type, {})


def _inner_fields(
    value: Mapping[str, Any], token: list[int], is_filled: bool
) -> dict[str, Any]:
    """Return all fields of an inner configuration, the small ones among them.

    The outer class may have set other values than the defaults of the inner class,
    such as the name of a backbone.
    """
    small = _changes(value, str(value.get("model_type", "")), token, is_filled)
    kept = {k: v for k, v in value.items() if v is not None and k not in COMPUTED}
    fields = kept | small
    stages, heads = fields.get("out_features"), fields.get("num_hidden_layers")
    if isinstance(stages, list) and isinstance(heads, int) and "depths" not in fields:
        fields["num_hidden_layers"] = len(stages)
        fields["out_features"] = [f"stage{k + 1}" for k in range(len(stages))]
        fields.pop("out_indices", None)
    return fields


def _layer_count(defaults: Mapping[str, Any]) -> int:
    if "depths" in defaults:
        return 0  # lists have an entry for each stage
    for name in ("num_hidden_layers", "num_layers", "n_layer", "n_layers"):
        if isinstance(defaults.get(name), int):
            return int(defaults[name])
    return 0


def _set_number(
    changes: dict[str, Any], name: str, value: int, token: list[int]
) -> None:
    if TOKEN.search(name):
        if value >= VOCABULARY:
            changes[name] = token[0]
            token[0] -= 1
        return
    small = small_size(name)
    if name in EXACT:
        changes[name] = EXACT[name]
    elif small and value > small and not DERIVED.fullmatch(name):
        changes[name] = small


def small_size(name: str) -> int:
    """Return the size for a field of this name, 0 to leave it as it is."""
    for pattern, size in RULES:
        if re.search(rf"(?:^|_)(?:{pattern})$", name):
            return size
    return 0


def _set_list(
    changes: dict[str, Any], name: str, value: list[Any], layers: int
) -> None:
    if STAGES.match(name):
        return
    if layers and len(value) == layers and layers > 2:
        size = small_size(name)
        last = next((item for item in reversed(value) if item != value[0]), value[-1])
        ends = [value[0], last]
        numeric = isinstance(value[0], int) and not isinstance(value[0], bool)
        changes[name] = [size, size] if size and numeric else ends
    elif not all(isinstance(item, int) for item in value):
        return
    elif re.search(r"depths|layers$|num_blocks|layer_depths", name):
        changes[name] = [1] * len(value)
    elif re.search(r"heads$", name):
        changes[name] = [min(2**k, 8) for k in range(len(value))]
    elif re.search(r"hidden_sizes|embed_dims|channels$|out_channels|neck_hidden", name):
        if all(a <= b for a, b in zip(value, value[1:], strict=False)):
            changes[name] = [16 * 2 ** min(k, 3) for k in range(len(value))]
    elif name == "conv_dim":
        changes[name] = [32] * len(value)


def _small_rope(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return rotary settings for heads of 8."""
    result = dict(value)
    if "mrope_section" in result:
        result["mrope_section"] = [2, 1, 1]
    for name in ("long_factor", "short_factor"):
        if isinstance(result.get(name), list):
            result[name] = result[name][:4]
    return result


def _keep_head_ratio(changes: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Keep as many heads of keys as of queries where the default has."""
    heads, shared = defaults.get("num_attention_heads"), "num_key_value_heads"
    if shared in changes and heads == defaults[shared]:
        changes[shared] = changes.get("num_attention_heads", heads)


def _set_image(changes: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Make images four patches wide, or 64 where patches are small."""
    patch, side = defaults.get("patch_size"), defaults.get("image_size")
    if not isinstance(side, int | list | tuple):
        return
    if isinstance(patch, list | tuple):
        patch = patch[0] if len(patch) == 2 else None
    if isinstance(patch, int) and patch > 16:
        changes["patch_size"] = patch = 16
    small = 4 * patch if isinstance(patch, int) and patch >= 8 else 64
    changes["image_size"] = small if isinstance(side, int) else [small] * len(side)
